"""Fit the head of the near-duplicate guard, choose its threshold, and write it.

python tests/bench/fit_duplicates.py
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.judging.duplicates import alignment
from memories.judging.duplicates.values import values_differ, values_of
from memoryhub.llm.base import Vectors
from memoryhub.llm.e5.encoder import MultilingualEncoder
from memoryhub.llm.e5.weights import WIDTH
from tests.bench.judging_data import Pair, pairs
from tests.memories.duplicate_pairs import EDITS, edits, held_out, rewordings

TARGET = Path(alignment.__file__).with_name("head.npz")
L2 = 3.0
SPREAD = 4.0  # of the dimensions together, beside measures of variance 1
MARGIN = 0.9
MERGED = (
    0.012  # share of the edits of the tuning part that may come through; edits inside rewordings not counted
)


def all_pairs() -> list[Pair]:
    """Those of the older file too: they were looked at while the rules before this head were written."""
    older = [Pair("en", "!", a, b, "fit") for kind in EDITS for a, b in edits(kind)]
    older += [Pair("en", "=", a, b, "fit") for a, b in rewordings()]
    late_edits, late_rewordings = held_out()
    older += [Pair("en", "!", a, b, "tune") for a, b in late_edits]
    older += [Pair("en", "=", a, b, "tune") for a, b in late_rewordings]
    return older + [pair for pair in pairs() if pair.split != "held back"]


def logistic(measured: Vectors, same: Vectors, l2: float) -> Vectors:
    """Weights and bias by Newton's method; the bias is not shrunk."""
    given = np.hstack([measured, np.ones((len(measured), 1))]).astype(np.float64)
    weights = np.zeros(given.shape[1])
    shrink = np.full(len(weights), l2)
    shrink[-1] = 0
    for _ in range(30):
        chance = 1 / (1 + np.exp(-given @ weights))
        slope = given.T @ (chance - same) + shrink * weights
        bend = (given * (chance * (1 - chance))[:, None]).T @ given + np.diag(shrink + 1e-6)
        weights -= np.linalg.solve(bend, slope)
    return weights


def main() -> None:
    known = all_pairs()
    encoder = MultilingualEncoder()
    reads = encoder.states([text for pair in known for text in (pair.a, pair.b)])
    centre = np.concatenate([read.vectors for read in reads]).mean(axis=0)
    alignment.head = lambda: {"centre": centre}  # type: ignore[assignment]  # nothing is fitted yet
    words = [alignment.words_of(read) for read in reads]
    measured = np.stack([alignment.measure(*words[2 * at : 2 * at + 2]) for at in range(len(known))])
    same = np.array([pair.same for pair in known])
    tune = np.array([pair.split == "tune" for pair in known])
    asked = np.array(
        [
            not values_differ(values_of(pair.a), values_of(pair.b))
            and not alignment.roles_differ(*words[2 * at : 2 * at + 2])
            for at, pair in enumerate(known)
        ]
    )
    fit = ~tune & asked
    mean, scale = measured[fit].mean(axis=0), measured[fit].std(axis=0) + 1e-3
    scale[-WIDTH:] = np.linalg.norm((measured[fit] - mean)[:, -WIDTH:], axis=1).mean() / SPREAD
    *weights, bias = logistic((measured[fit] - mean) / scale, same[fit], L2)
    score = (measured - mean) / scale @ np.array(weights) + bias
    plain = np.array([pair.kind in "!r" for pair in known])
    wrong = np.sort(np.where(asked, score, -9.0)[tune & plain])[::-1]
    floor = max(float(wrong[int(MERGED * len(wrong))]) + MARGIN, 0.0)
    bias -= floor
    caught = (score > floor) & asked
    for at in np.argsort(-np.where(asked & tune & plain, score, -9))[:8]:
        print(f"highest edit {score[at] - floor:.2f}: {known[at].a}  |  {known[at].b}")
    for at in np.flatnonzero(tune & caught & ~same):
        print(f"merged {score[at] - floor:.2f}: {known[at].a}  |  {known[at].b}")
    for language in sorted({pair.language for pair in known}):
        of = tune & np.array([pair.language == language for pair in known])
        print(
            language,
            f"rewordings {caught[of & same].mean():.2f} of {int((of & same).sum())}",
            f"edits {caught[of & ~same].mean():.3f} of {int((of & ~same).sum())}",
        )
    np.savez_compressed(
        TARGET, centre=centre.astype(np.float16), mean=mean, scale=scale,
        weights=np.array(weights, np.float32), bias=np.float32(bias),
    )  # fmt: skip


if __name__ == "__main__":
    main()
