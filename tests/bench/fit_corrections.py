"""Fit the head that finds which memory a message corrects, choose its threshold, and write it. Run after
fit_duplicates.

python tests/bench/fit_corrections.py
"""

import random
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.judging import corrections
from memories.judging.duplicates import alignment
from memories.judging.encoder_interface import logits
from memoryhub.llm.bert import WIDTH
from memoryhub.llm.e5 import MultilingualEncoder
from tests.bench.judging_data import Correction, bucket, corrections_said, messages, pairs
from tests.bench.nets import Remembering, fit_net, together

TARGET = Path(corrections.__file__).with_name("head.npz")
FOLDS, HIDDEN, STEPS, DROPPED = 5, 16, 1000, 0.4
SPREAD = 12.0  # as in fit_duplicates
OFTENER = 2  # times as often: of ten pairs of a message, one is a replacement
NEAR, FROM, ANY = (
    4,
    3,
    2,
)  # facts of other messages beside it; the three nearest may state the same
# Percent of the pairs for duplicates: a different value without a correcting word corrects nothing
PLAIN = 15
WRONG = 0.015  # share of false positives on unfitted pairs

# The stored text, the message, whether the message replaces it, and the fold
Row = tuple[str, str, bool, int]


def rows(said: list[Correction], beside: "Facts") -> list[Row]:
    chance = random.Random(0)
    found: list[Row] = []
    for each in said:
        found += [(old, each.said, at == each.replaces, each.line) for at, old in enumerate(each.kept)]
        others = beside.near(each.language, each.said, NEAR, FROM) + chance.sample(
            beside.of[each.language], ANY
        )
        found += [(old, each.said, False, each.line) for old in others]
    plain = [pair for pair in pairs() if pair.split == "fit" and pair.kind in "!="]
    return found + [(p.a, p.b, False, bucket(p.a)) for p in plain if bucket(p.a + p.b) < PLAIN]


class Facts:
    """The facts of the messages for keeping, by language, with the encoder's states."""

    def __init__(self, said: list[Correction]) -> None:
        self.of: dict[str, list[str]] = {}
        for message in messages():
            if message.split in ("fit", "tune"):
                self.of.setdefault(message.language, []).extend(
                    message.text[a:b] for a, b, _ in message.facts
                )
        self.of = {language: sorted(set(facts)) for language, facts in self.of.items()}
        texts = [text for facts in self.of.values() for text in facts]
        texts += [text for each in said for text in (each.said, *each.kept)]
        texts += [text for pair in pairs() for text in (pair.a, pair.b)]
        self.encoder = Remembering(MultilingualEncoder(), texts)
        self.words = {text: alignment.words_of(read) for text, read in self.encoder.known.items()}

    def near(self, language: str, said: str, number: int, skip: int = 0) -> list[str]:
        whole = self.words[said].direction
        facts = self.of[language]
        return sorted(facts, key=lambda fact: -float(self.words[fact].direction @ whole))[
            skip : skip + number
        ]


def main() -> None:
    said = list(corrections_said())
    facts = Facts(said)
    known = rows([each for each in said if each.split == "fit"], facts)
    given = np.stack(
        [corrections.network_input(facts.words[old], facts.words[new]) for old, new, *_ in known]
    )
    wanted = np.array([replaces for *_, replaces, _ in known])
    fold = np.array([line % FOLDS for *_, line in known])
    mean, scale = given.mean(axis=0), given.std(axis=0) + 1e-3
    for start in (alignment.MEASURES, -2 * WIDTH, -WIDTH):
        vector = slice(start, start + WIDTH or None)
        scale[vector] = np.linalg.norm((given - mean)[:, vector], axis=1).mean() / SPREAD
    given = ((given - mean) / scale).astype(np.float32)
    drawn = np.concatenate([np.arange(len(known)), np.repeat(np.flatnonzero(wanted), OFTENER)])
    nets = []
    for at in range(FOLDS):
        of = drawn[fold[drawn] != at]
        nets.append(
            fit_net(given[of], wanted[of].astype(np.float32), at, hidden=HIDDEN, steps=STEPS, dropped=DROPPED)
        )
    fitted = together(nets)
    score = logits(given, fitted)[fold, np.arange(len(known))]
    floor = float(np.sort(score[~wanted])[::-1][int(WRONG * (~wanted).sum())])
    print(f"floor {floor:.2f}: {(score[wanted] > floor).mean():.3f} of {wanted.sum()} replaced")
    np.savez_compressed(
        TARGET, mean=mean.astype(np.float32), scale=scale.astype(np.float32), floor=np.float32(floor),
        **{name: value.astype(np.float16) for name, value in fitted.items()},
    )  # fmt: skip


if __name__ == "__main__":
    main()
