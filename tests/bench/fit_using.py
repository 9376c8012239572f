# ruff: noqa: E402 settings are needed before what reads conversations
"""Fits memories/recalling/using.npz: whether a found memory is used. Prints what it does on the half that it left out.

    python -m tests.bench.fit_using prefeval_dev.jsonl locomo_dev_facts.jsonl [--keep] [--without NAME … …]

Files as for bench_recall; the first of advice that hangs on a preference, the second of questions about facts. Which
of them is fitted on says using_data.py. ``--keep`` writes the file; each ``--without`` leaves out heads (asks,
advice, mine), measures (english, multilingual, behind, wish) or all ``pairs`` and prints what is left. What comes
through the product: bench_threshold.py. OMP_NUM_THREADS=1 makes it many times quicker on a busy machine.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")

import django

django.setup()

from memories.recalling import using
from memories.recalling.evaluation import read_conversations
from memoryhub.llm.base import Vectors
from memoryhub.llm.two_encoders import ENGLISH, MULTILINGUAL, TwoEncoders
from tests.bench.nets import Net, fit_net, together
from tests.bench.using_data import Asked, Half, conversations_of

FOUND = 5  # of what is recalled, the first are looked at
SEEDS, FOLDS, HIDDEN, STEPS, DROPPED = 3, 5, 16, 1500, 0.5
ROWS = 300  # of each kind of question, as often as it takes
RIDGE = 0.1
OTHERS_WEIGH, LACKING_WEIGHS, PERSONAL_WEIGHS = 0.3, 0.2, 0.8  # where the evidence of a question weighs 1
DEFAULT = 0.57  # MEMORYHUB_RECALL_THRESHOLD
SILENT, USED = 0.99, 0.98  # of the fitted half, in folds: small talk left alone, and evidence of facts used
MEASURES = ("english", "multilingual", "behind", "wish", "advice", "mine", "share")
Shares = dict[tuple[str, int], tuple[float, float, int]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("advice", type=Path)
    parser.add_argument("facts", type=Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--without", nargs="+", action="append", default=[])
    options = parser.parse_args()
    advice, facts = ([*read_conversations(path)] for path in (options.advice, options.facts))
    embedder = TwoEncoders()
    halves = [Half(embedder, half, conversations_of(half, advice, facts)) for half in (0, 1)]
    fit, held = ([*half.asked()] for half in halves)
    model = Model(fit, _wish(halves[0]))
    if options.keep:
        model.keep()
    print("\nleft out: used of the found, or nothing brought at all; memories brought a question")
    for (kind, size), (share, brought, count) in model.table(map(model.row, held)).items():
        print(f"{kind:24}{size or 'whole':>6} {share:7.3f} of {count:5}, {brought:.1f}")
    for names in [[], *options.without]:
        model.fit_sum(names)
        print(f"\nleft out, without {' '.join(names) or 'nothing'}; all sizes")
        for kind, (share, brought) in model.together(map(model.row, held)).items():
            print(f"{kind:18} {share:7.3f}, {brought:.1f}")


class Row:
    """A question with the columns of what is found."""

    def __init__(self, asked: Asked, question: using.Question, wish: Vectors) -> None:
        self.kind, self.size, self.wanted, self.asks = asked.kind, asked.size, asked.wanted, question.asks
        self.is_lacking = "lacking" in asked.kind
        self.is_talk = asked.kind.startswith("talk")
        english, own = asked.found[:, ENGLISH], asked.found[:, MULTILINGUAL]
        products = [english @ asked.vector[ENGLISH], own @ asked.vector[MULTILINGUAL], own @ wish]
        given = np.stack([*products, np.linalg.norm(english, axis=1)], axis=1)
        self.columns = using.columns(question, given)
        self.strict = using.columns(using.strictly(question), given)


class Model:
    """Networks, and the sum of what they and the cosines say. Fitted in folds, so that no question's own reading of
    itself is fitted on."""

    def __init__(self, fit: list[Asked], wish: Vectors) -> None:
        self.wish, self.offset = wish, 0.0
        self.without: list[str] = []
        own = {asked.vector.tobytes(): asked for asked in fit}
        questions = [*own.values()]
        fold = {key: at % FOLDS for at, key in enumerate(own)}
        self.heads = self._nets(questions)
        in_folds = [
            self._nets([q for q in questions if fold[q.vector.tobytes()] != at]) for at in range(FOLDS)
        ]
        self.fit = [
            (asked, using.read(asked.vector, in_folds[fold[asked.vector.tobytes()]])) for asked in fit
        ]
        said = [question.asks for asked, question in self.fit if asked.kind.startswith("talk")]
        self.offset = np.log(DEFAULT / (1 - DEFAULT)) - float(np.quantile(said, SILENT))
        self.fit_sum([])

    def fit_sum(self, without: list[str]) -> None:
        """The weights of the sum, without these parts."""
        self.without = without
        rows = [self._row(asked, question) for asked, question in self.fit]
        self.weights = self._shifted(rows, self._sum(rows)).astype(np.float32)

    def _nets(self, questions: list[Asked]) -> list[using.Nets]:
        wanted: tuple[Callable[[str], bool | None], ...] = (
            lambda kind: not kind.startswith("talk"),
            lambda kind: kind.startswith("advice"),
            lambda kind: (
                None
                if kind.startswith("talk")
                else kind.startswith(("facts own", "facts abroad", "facts across", "personal"))
            ),
        )
        return [
            _fitted([(q, label) for q in questions if (label := of(q.kind)) is not None]) for of in wanted
        ]

    def _row(self, asked: Asked, question: using.Question) -> Row:
        gone = {name: 0.0 for name in ("advice", "mine") if name in self.without}
        question = question._replace(
            **gone, asks=using.MOST if "asks" in self.without else question.asks + self.offset
        )
        row = Row(asked, question, self.wish)
        at = {place for place, name in enumerate(MEASURES) if name in self.without}
        pairs = [(one, other) for one in range(len(MEASURES)) for other in range(one, len(MEASURES))]
        left = {len(MEASURES) + n for n, pair in enumerate(pairs) if "pairs" in self.without or at & {*pair}}
        for each in (row.columns, row.strict):
            each[:, sorted(at | left)] = 0
        return row

    def row(self, asked: Asked) -> Row:
        return self._row(asked, using.read(asked.vector, self.heads))

    def _sum(self, rows: list[Row]) -> Vectors:
        """A logistic sum, every kind of question in every size with a weight of its own whatever their number."""
        groups: dict[tuple[str, int, bool], list[Vectors]] = defaultdict(list)
        for row in rows:
            if row.is_talk:
                continue
            if row.is_lacking:
                groups[row.kind, row.size, False].append(row.columns[:3])
            else:
                groups[row.kind, row.size, True].append(row.columns[:FOUND][row.wanted[:FOUND]])
                groups[row.kind, row.size, False].append(row.columns[~row.wanted])
        parts = []
        for (kind, _, evidence), found in groups.items():
            lacking = PERSONAL_WEIGHS if kind.startswith("personal") else LACKING_WEIGHS
            weight = 1.0 if evidence else lacking if "lacking" in kind else OTHERS_WEIGH
            parts.append((np.concatenate(found), float(evidence), weight))
        weights: Vectors = _logistic([part for part in parts if len(part[0])])
        return weights

    def _shifted(self, rows: list[Row], weights: Vectors) -> Vectors:
        """So that enough of the evidence is used in workspaces of every size; not for what one asks of one's own
        affairs: its evidence is far nearer than anything else, and what nobody stored is to bring nothing."""
        found: dict[int, list[Vectors]] = defaultdict(list)
        for row in rows:
            if row.kind == "facts":
                found[row.size].append(row.columns[:FOUND][row.wanted[:FOUND]])
        sure = [np.concatenate(each) @ weights[:-1] + weights[-1] for each in found.values()]
        shift = -min(np.quantile(each, 1 - USED) for each in sure)
        weights[MEASURES.index("mine")] -= shift / 2
        weights[-1] += shift / 2 + np.log(DEFAULT / (1 - DEFAULT))
        return weights

    def together(self, rows: Iterable[Row]) -> dict[str, tuple[float, float]]:
        """The table's means over sizes and kinds of one family."""
        found: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for (kind, _), (share, brought, _count) in self.table(rows).items():
            family = (
                kind
                if "lacking" in kind or kind in ("advice", "facts")
                else kind.split(",")[0].split(" ")[0] + ", ours"
            )
            found[family].append((share, brought))
        return {
            kind: (float(np.mean([s for s, _ in each])), float(np.mean([b for _, b in each])))
            for kind, each in found.items()
        }

    def table(self, rows: Iterable[Row]) -> Shares:
        told: dict[tuple[str, int], list[tuple[int, int, int]]] = defaultdict(list)
        at = np.log(DEFAULT / (1 - DEFAULT))
        for row in rows:
            answers, strict = (
                each @ self.weights[:-1] + self.weights[-1] for each in (row.columns, row.strict)
            )
            used = using.both_so(row.asks, answers, strict) >= at
            used &= used.cumsum() <= FOUND
            found = row.wanted[:FOUND]
            right, of = (
                (int(not used.any()), 1)
                if row.is_talk or row.is_lacking
                else (used[:FOUND][found].sum(), found.sum())
            )
            told[row.kind, row.size].append((right, of, used.sum()))
        sums = {key: np.array(counts) for key, counts in told.items()}
        return {
            key: (each[:, 0].sum() / max(1, each[:, 1].sum()), each[:, 2].mean(), int(each[:, 1].sum()))
            for key, each in sums.items()
        }

    def keep(self) -> None:
        self.heads[0]["outer_bias"] = self.heads[0]["outer_bias"] + self.offset
        named = zip(using.HEADS, self.heads, strict=True)
        nets: dict[str, Any] = {
            f"{head}_{part}": each[part].astype(np.float16) for head, each in named for part in each
        }
        np.savez(using.FILE, wish=self.wish, weights=self.weights, **nets)
        self.heads[0]["outer_bias"] = self.heads[0]["outer_bias"] - self.offset


def _fitted(labelled: list[tuple[Asked, bool]]) -> using.Nets:
    """Networks that tell these apart; every kind weighs the same, and so do both answers."""
    chance = np.random.default_rng(0)
    kinds: dict[tuple[str, bool], list[Vectors]] = defaultdict(list)
    for asked, label in labelled:
        own = asked.vector[MULTILINGUAL]
        kinds[asked.kind, label].append(using.LARGER * own / np.linalg.norm(own))
    sides = [
        [np.stack(found) for (_, label), found in kinds.items() if label == side] for side in (True, False)
    ]
    most = ROWS * max(map(len, sides))
    rows = [
        np.concatenate([each[chance.integers(len(each), size=most // len(side))] for each in side])
        for side in sides
    ]
    wanted = np.concatenate([np.full(len(part), float(at == 0), np.float32) for at, part in enumerate(rows)])
    given = np.concatenate(rows).astype(np.float32)
    shape: Any = {"hidden": HIDDEN, "steps": STEPS, "dropped": DROPPED}
    found: list[Net] = [fit_net(given, wanted, seed, **shape) for seed in range(SEEDS)]
    return together(found)


def _wish(half: Half) -> Vectors:
    """What tells wishes and ways of somebody's own, as they say them and as they are noted down, from other facts."""
    said: dict[bool, list[str]] = {True: [], False: []}
    for kind, pairs in half.texts.pairs.items():
        said[kind.startswith("advice")] += [statement for statement, _ in pairs]
    for kind, each in half.conversations:
        ids = {known_as for query in each.queries for known_as in query["relevant"]}
        said[kind == "advice"] += [memory["text"] for memory in each.memories if memory["id"] in ids]
    said[True] += [noted for text in said[True] if (noted := _noted(text))]
    ones, others = (
        half.embedder.embed(said[side])[:, MULTILINGUAL].astype(np.float64) for side in (True, False)
    )
    rows = np.concatenate([ones, others])
    target = np.r_[np.ones(len(ones)), -np.ones(len(others))]
    weight = np.r_[np.full(len(ones), 0.5 / len(ones)), np.full(len(others), 0.5 / len(others))][:, None]
    wide = np.c_[rows, np.ones(len(rows))]
    penalty = RIDGE * np.diag([1.0] * rows.shape[1] + [0.0])
    head: Vectors = np.linalg.solve((wide * weight).T @ wide + penalty, (wide * weight).T @ target)
    return head[:-1].astype(np.float32)


def _noted(text: str) -> str:
    """As a model notes it down: "User is vegetarian" for "I am". Rough, and nothing where it is not about "I"."""
    for said, noted in (
        ("I'm ", "User is "),
        ("I am ", "User is "),
        ("I have ", "User has "),
        ("I ", "User "),
    ):
        if text.startswith(said):
            return noted + text.removeprefix(said).replace(" my ", " their ")
    return ""


def _logistic(parts: list[tuple[Vectors, float, float]]) -> Any:
    """By Newton's steps, every group of rows with a weight of its own whatever their number."""
    rows = np.concatenate([part for part, _, _ in parts]).astype(np.float64)
    target = np.concatenate([np.full(len(part), label) for part, label, _ in parts])
    weight = np.concatenate([np.full(len(part), share / len(part)) for part, _, share in parts])
    weight /= weight.sum()
    middle, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    wide = np.c_[(rows - middle) / spread, np.ones(len(rows))]
    found = np.zeros(wide.shape[1])
    for _ in range(60):
        sure = 1 / (1 + np.exp(-wide @ found))
        bend = (wide * (weight * sure * (1 - sure))[:, None]).T @ wide + 1e-4 * np.eye(len(found))
        found -= np.linalg.solve(bend, wide.T @ (weight * (sure - target)) + 1e-4 * found)
    slopes = np.where(spread > 1e-8, found[:-1] / spread, 0)
    return np.r_[slopes, found[-1] - (slopes * middle).sum()]


if __name__ == "__main__":
    main()
