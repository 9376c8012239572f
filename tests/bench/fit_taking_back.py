"""Fit the head that recognizes "Scratch that.", choose its floor, and print its results on held-out messages.

python tests/bench/fit_taking_back.py [--keep] [--show]

Fitted on the messages of `data/back` that are not held back and on the short ones for keeping, of which some end in
such a sentence. The floor is chosen on folds of these.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.judging import corrections
from memories.judging.encoder_interface import logits
from memoryhub.llm.base import Vectors
from memoryhub.llm.e5 import MultilingualEncoder
from tests.bench.judging_data import bucket, messages, takings_back
from tests.bench.nets import Remembering, fit_net, together

TARGET = Path(corrections.__file__).with_name("back.npz")
FOLDS, NETS, HIDDEN, STEPS, DROPPED = 5, 4, 16, 1000, 0.4
OFTENER = 6  # times as often, for messages that take back
WRONG = 0.0015  # share of false positives among unfitted messages


def known() -> Iterator[tuple[str, bool]]:
    for each in takings_back():
        if each.split == "fit":
            yield each.text, each.takes_back
    for message in messages():
        if message.split in ("fit", "tune") and len(message.text) <= corrections.LONGEST:
            if message.takes_back is None:
                yield message.text, False
            elif not any(end > message.takes_back for __, end, *__ in message.facts):
                yield message.text[message.takes_back :], True


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", action="store_true", help="write the head")
    parser.add_argument("--show", action="store_true", help="print what was mistaken while fitting, by folds")
    options = parser.parse_args()
    rows = sorted(set(known()))
    encoder = Remembering(
        MultilingualEncoder(), [*(text for text, _ in rows), *(m.text for m in takings_back())]
    )
    reads = encoder.states([text for text, _ in rows])
    own = np.stack([read.vectors.mean(axis=0) for read in reads])
    centre = own.mean(axis=0)
    fitted = {"centre": centre, "spread": np.linalg.norm(own - centre, axis=1).mean() / 12}
    given, wanted = corrections.taking_back_given(reads, fitted), np.array([is_back for _, is_back in rows])
    fold = np.array([bucket(text) % FOLDS for text, _ in rows])
    drawn = np.concatenate([np.arange(len(rows)), np.repeat(np.flatnonzero(wanted), OFTENER)])
    nets = [
        fit_net(given[of], wanted[of].astype(np.float32), seed, hidden=HIDDEN, steps=STEPS, dropped=DROPPED)
        for at in range(FOLDS)
        for of in [drawn[fold[drawn] != at]]
        for seed in range(at * NETS, at * NETS + NETS)
    ]
    fitted |= together(nets)
    said = logits(given, fitted).reshape(FOLDS, NETS, len(rows)).mean(axis=1)
    score = said[fold, np.arange(len(rows))]
    fitted["floor"] = np.sort(score[~wanted])[::-1][int(WRONG * (~wanted).sum())]
    heard = score > fitted["floor"]
    print(
        f"floor {fitted['floor']:.2f}: {heard[wanted].mean():.3f} of {wanted.sum()}, by folds; {len(rows)} messages"
    )
    if options.show:
        for (text, is_back), is_heard, at in zip(rows, heard, score, strict=True):
            if is_back != is_heard:
                print("   mistaken" if is_heard else "   missed", f"{at:.1f}", text)
    left_out(encoder, fitted)
    if options.keep:
        np.savez_compressed(TARGET, **{name: np.asarray(value, np.float16) for name, value in fitted.items()})


def left_out(encoder: Remembering, fitted: dict[str, Vectors]) -> None:
    """Print by language how many messages that take back are recognized, and how many others are mistaken for one."""
    print("held back: heard, mistaken")
    corrections.taking_back_head = lambda: fitted  # type: ignore[assignment]
    held = [each for each in takings_back() if each.split == "held back"]
    heard = {each: corrections.only_takes_back(each.text, encoder) for each in held}
    languages = sorted({each.language for each in held})
    for name, of in [*((language, {language}) for language in languages), ("all", set(languages))]:
        cells = [
            (sum(heard[each] for each in group), len(group))
            for group in (
                [each for each in held if each.language in of and each.takes_back == is_back]
                for is_back in (True, False)
            )
        ]
        print(f"{name:4}" + ", ".join(f"{number} of {all_}" for number, all_ in cells))


if __name__ == "__main__":
    main()
