# ruff: noqa: E402 settings are needed before what reads conversations
"""Fits memories/recalling/using.npz: whether a found memory is used. Prints what it does on the half that it left out.

    python -m tests.bench.fit_using prefeval_dev.jsonl locomo_dev_facts.jsonl [--keep]

Files as for bench_recall; the first of advice that hangs on a preference, the second of questions about facts. Fitted
on every second workspace of the first, the first three of the second, and every second line of the small talk and the
advice in tests/bench; the table is of the others. ``--keep`` writes the file.
"""

from __future__ import annotations

import os
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")

import django

django.setup()

from memories.recalling import using
from memories.recalling.evaluation import Conversation, read_conversations
from memoryhub.llm.base import Vectors
from memoryhub.llm.two_encoders import MULTILINGUAL, TwoEncoders
from tests.bench.small_talk import SMALL_TALK
from tests.bench.small_talk_abroad import ADVICE_ABROAD, FACTS_ABROAD, SMALL_TALK_ABROAD

SIZES = (5, 25, 100, None)  # memories in a workspace; None: all
FOUND = 5  # of what is recalled, the first are looked at
RIDGE = 0.1
OTHERS_WEIGH = 0.01  # of the found that no question is known to want: some of them it may
TALK_WEIGHS = 0.8
LACKING_WEIGHS = 0.1  # of questions whose answer is not among the memories
AT = -0.2  # the logit that the default threshold stands for: few errors of both kinds on the fitted half
DEFAULT = 0.57


class Asked(NamedTuple):
    vector: Vectors
    inner: Vectors  # (found, 2): the products of both parts
    wanted: Any  # (found,) bool


Groups = dict[tuple[str, int | None, bool], list[Asked]]  # kind, size, whether it is evidence


def main() -> None:
    files = [Path(name) for name in sys.argv[1:] if name != "--keep"]
    advice, facts = ([*read_conversations(path)] for path in files)
    embedder = TwoEncoders()
    fit = Half(embedder, advice[::2], facts[:3], 0)
    heads = fit.heads()
    weights = _logistic(fit.groups(), heads)
    weights[-1] += np.log(DEFAULT / (1 - DEFAULT)) - AT
    if "--keep" in sys.argv:
        np.savez(using.FILE, personal=heads[0], advice=heads[1], weights=weights.astype(np.float32))
    for name, half in (("fitted", fit), ("left out", Half(embedder, advice[1::2], facts[3:], 1))):
        print(f"\n{name}: used of the found, and of talk how much brings nothing; at {DEFAULT}")
        for (kind, size, evidence), asked in half.groups().items():
            used = [_sure(each, heads, weights) >= DEFAULT for each in asked]
            if evidence:
                right = np.concatenate([each[one.wanted] for each, one in zip(used, asked, strict=True)])
                more = np.mean([(each & ~one.wanted).sum() for each, one in zip(used, asked, strict=True)])
                print(f"{kind:16}{size or 'whole':>6} {right.mean():7.3f} of {len(right)}, {more:.1f} others")
            else:
                print(
                    f"{kind:16} {size or 'whole':>6} {np.mean([not each.any() for each in used]):7.3f} of {len(used)}"
                )


class Half:
    """The vectors of one half of the texts."""

    def __init__(
        self, embedder: TwoEncoders, advice: list[Conversation], facts: list[Conversation], first: int
    ) -> None:
        self.embedder = embedder
        self.advice, self.facts = advice, facts
        self.english_talk = embedder.embed_queries(SMALL_TALK[first::2])
        self.talk_abroad = embedder.embed_queries(SMALL_TALK_ABROAD[first::2])
        self.abroad = {
            name: (
                embedder.embed([said for said, _ in pairs[first::2]]),
                embedder.embed_queries([asked for _, asked in pairs[first::2]]),
            )
            for name, pairs in (("advice abroad", ADVICE_ABROAD), ("facts abroad", FACTS_ABROAD))
        }
        self.kept: Groups | None = None

    def heads(self) -> tuple[Vectors, Vectors]:
        asked = [self._asked(each) for each in (self.advice, self.facts)]
        asked += [questions for _, questions in self.abroad.values()]
        advice, facts, advice_abroad, facts_abroad = map(_own, asked)
        talk = [_own(self.english_talk), _own(self.talk_abroad)]
        personal = _ridge([advice, facts, advice_abroad, facts_abroad], talk)
        return personal, _ridge([advice, advice_abroad], [facts, facts_abroad, *talk])

    def groups(self) -> Groups:
        if self.kept is None:
            self.kept = self._groups()
        return self.kept

    def _groups(self) -> Groups:
        found: Groups = defaultdict(list)
        for kind, conversations in (("advice", self.advice), ("facts", self.facts)):
            for conversation in conversations:
                self._add(found, kind, conversation)
        others = self.embedder.embed([memory["text"] for memory in self.facts[-1].memories[:85]])
        for name, (statements, questions) in self.abroad.items():
            stored = np.concatenate([statements, others])
            found[name, 100, True] = [_find(vector, stored, {at}) for at, vector in enumerate(questions)]
        return found

    def _asked(self, conversations: list[Conversation]) -> Vectors:
        texts = {query["text"] for conversation in conversations for query in conversation.queries}
        return self.embedder.embed_queries(sorted(texts))

    def _add(self, found: Groups, kind: str, conversation: Conversation) -> None:
        chance = random.Random(conversation.name)  # the same parts in every run
        stored = self.embedder.embed([memory["text"] for memory in conversation.memories])
        ids = [memory["id"] for memory in conversation.memories]
        asked = self.embedder.embed_queries([query["text"] for query in conversation.queries])
        for size in SIZES:
            if (size or 0) > len(ids):
                continue
            part = sorted(chance.sample(range(len(ids)), size or len(ids)))
            places = {ids[at]: place for place, at in enumerate(part)}
            for vector, query in zip(asked, conversation.queries, strict=True):
                wanted = {places[known_as] for known_as in query["relevant"] if known_as in places}
                if wanted:
                    found[kind, size, True].append(_find(vector, stored[part], wanted))
                else:
                    found[f"{kind} lacking", size, False].append(_find(vector, stored[part], set()))
            for name, talk in (("talk", self.english_talk), ("talk abroad", self.talk_abroad)):
                found[name, size, False] += [_find(vector, stored[part], set()) for vector in talk]


def _own(vectors: Vectors) -> Vectors:
    part = vectors[:, MULTILINGUAL]
    own: Vectors = part / np.linalg.norm(part, axis=1, keepdims=True)
    return own


def _find(vector: Vectors, stored: Vectors, wanted: set[int]) -> Asked:
    first = np.argsort(-(stored @ vector))[:FOUND]
    half = MULTILINGUAL.start
    near = stored[first]
    inner = np.stack([near[:, :half] @ vector[:half], near[:, MULTILINGUAL] @ vector[MULTILINGUAL]], axis=1)
    return Asked(vector, inner, np.array([int(at) in wanted for at in first]))


def _rows(asked: Asked, heads: tuple[Vectors, Vectors]) -> Vectors:
    return using.features(using.read(asked.vector, heads), asked.inner[:, 0], asked.inner[:, 1])


def _sure(asked: Asked, heads: tuple[Vectors, Vectors], weights: Any) -> Any:
    return 1 / (1 + np.exp(-(_rows(asked, heads) @ weights[:-1] + weights[-1])))


def _ridge(ones: list[Vectors], others: list[Vectors]) -> Vectors:
    """To 1 for the first groups, to -1 for the others; every group weighs the same."""
    groups = [*ones, *others]
    rows = np.concatenate(groups).astype(np.float64)
    wide = np.c_[rows, np.ones(len(rows))]
    target = np.concatenate(
        [np.full(len(each), 1.0 if at < len(ones) else -1.0) for at, each in enumerate(groups)]
    )
    weight = np.concatenate([np.full(len(each), 1 / len(each) / len(groups)) for each in groups])[:, None]
    penalty = RIDGE * np.diag([1.0] * rows.shape[1] + [0.0])
    head: Vectors = np.linalg.solve((wide * weight).T @ wide + penalty, (wide * weight).T @ target).astype(
        np.float32
    )
    return head


def _logistic(groups: Groups, heads: tuple[Vectors, Vectors]) -> Any:
    """By Newton's steps, every group of rows with a weight of its own whatever their number."""
    parts: list[tuple[Vectors, float, float]] = []
    for (kind, _, evidence), asked in groups.items():
        rows = [(_rows(each, heads), each.wanted) for each in asked]
        if evidence:
            parts.append((_joined([found[wanted] for found, wanted in rows]), 1.0, 1.0))
            parts.append((_joined([found[~wanted] for found, wanted in rows]), 0.0, OTHERS_WEIGH))
        else:
            share = LACKING_WEIGHS if kind.endswith("lacking") else TALK_WEIGHS
            parts.append((_joined([found[:2] for found, _ in rows]), 0.0, share))
    parts = [part for part in parts if len(part[0])]
    rows = _joined([part for part, _, _ in parts]).astype(np.float64)
    target = np.concatenate([np.full(len(part), label) for part, label, _ in parts])
    weight = np.concatenate([np.full(len(part), share / len(part)) for part, _, share in parts])
    weight /= weight.sum()
    middle, spread = rows.mean(axis=0), rows.std(axis=0)
    wide = np.c_[(rows - middle) / spread, np.ones(len(rows))]
    found = np.zeros(wide.shape[1])
    for _ in range(60):
        sure = 1 / (1 + np.exp(-wide @ found))
        bend = (wide * (weight * sure * (1 - sure))[:, None]).T @ wide + 1e-4 * np.eye(len(found))
        found -= np.linalg.solve(bend, wide.T @ (weight * (sure - target)) + 1e-4 * found)
    slopes = found[:-1] / spread
    return np.r_[slopes, found[-1] - (slopes * middle).sum()]


def _joined(parts: Sequence[Vectors]) -> Vectors:
    return np.concatenate(list(parts))


if __name__ == "__main__":
    main()
