"""Fit the head of the near-duplicate guard, choose its threshold, and write it.

python tests/bench/fit_duplicates.py

Each fifth of the pairs is judged by a net that was fitted on the others. The threshold is chosen on these judgements,
and the five nets together are the head.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.judging.duplicates import alignment, roles_differ, states_differ
from memories.judging.duplicates.alignment import values_differ, values_of
from memories.judging.encoder_interface import logits
from memoryhub.llm.base import Vectors
from memoryhub.llm.bert import WIDTH
from memoryhub.llm.e5 import MultilingualEncoder
from tests.bench.judging_data import DATA, Pair, bucket, pairs
from tests.bench.nets import Remembering, fit_net, together

TARGET = Path(alignment.__file__).with_name("head.npz")
FOLDS = 5
HIDDEN, STEPS, DROPPED = 32, 1500, 0.4
SPREAD = 12.0  # of all dimensions of a vector together, beside measures of variance 1
MERGED = 0.025  # share of the edits, those inside rewordings included, that pass unfitted


def all_pairs() -> list[Pair]:
    """Return all pairs, including the older file, which was seen while the earlier rules were written."""
    lines = (DATA / "older" / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    older = [line.split("\t") for line in lines]
    known = [Pair("en", kind, a, b, "fit", bucket(a)) for kind, a, b in older]
    return known + [pair for pair in pairs() if pair.split == "fit"]


def main() -> None:
    known = all_pairs()
    reads = Remembering(MultilingualEncoder(), [text for pair in known for text in (pair.a, pair.b)]).known
    centre = np.concatenate([read.vectors for read in reads.values()]).mean(axis=0)
    alignment.head = lambda: {"centre": centre}  # type: ignore[assignment]  # nothing is fitted yet
    words = {text: alignment.words_of(read) for text, read in reads.items()}
    known = [pair for pair in known if _is_asked(pair, words)]
    measured = np.stack([alignment.measure(words[pair.a], words[pair.b]) for pair in known])
    same = np.array([pair.same for pair in known])
    mean, scale = measured.mean(axis=0), measured.std(axis=0) + 1e-3
    for vector in (slice(-2 * WIDTH, -WIDTH), slice(-WIDTH, None)):
        scale[vector] = np.linalg.norm((measured - mean)[:, vector], axis=1).mean() / SPREAD
    given = ((measured - mean) / scale).astype(np.float32)
    fold = np.array([pair.line % FOLDS for pair in known])
    nets = [
        fit_net(given[fold != at], same[fold != at].astype(np.float32), at,
                hidden=HIDDEN, steps=STEPS, dropped=DROPPED)
        for at in range(FOLDS)
    ]  # fmt: skip
    fitted = together(nets)
    score = logits(given, fitted)[fold, np.arange(len(known))]
    wrong = np.sort(score[~same])[::-1]
    floor = float(wrong[int(MERGED * len(wrong))])
    show(known, score > floor)
    np.savez_compressed(
        TARGET, centre=centre.astype(np.float16), mean=mean, scale=scale, floor=np.float32(floor),
        **{name: value.astype(np.float16) for name, value in fitted.items()},
    )  # fmt: skip


def _is_asked(pair: Pair, words: dict[str, alignment.Words]) -> bool:
    """Return whether the rules before the head let the pair through."""
    differ = values_differ(values_of(pair.a), values_of(pair.b))
    differ = differ or states_differ(pair.a, pair.b)
    return not differ and not roles_differ(words[pair.a], words[pair.b])


def show(known: list[Pair], caught: Vectors) -> None:
    print("of what the rules before let through, judged by nets that were fitted on the others:")
    for language in sorted({pair.language for pair in known}):
        cells = []
        for name, kinds in (("rewordings", "="), ("edits", "!r"), ("edits inside rewordings", "-")):
            of = np.array([pair.language == language and pair.kind in kinds for pair in known])
            cells.append(f"{name} {caught[of].mean():.3f} of {of.sum()}")
        print(language, *cells)


if __name__ == "__main__":
    main()
