"""Pairs of memories that say the same or contradict each other.

Compares the vectors of the newest ``COMPARED`` memories that a person may see, only within the same place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

import numpy as np
from django.core.cache import caches
from django.db.models import Q

from memories.judging.contradiction import about_the_same
from memories.judging.duplicates import may_merge
from memories.models import KeptAsIs, Memory
from memories.models.memory import MEMORY, MemoryQuerySet
from memories.recalling.recall_test import state_of
from memories.usage import live_in
from memoryhub.database import queries
from memoryhub.llm.base import Vectors
from memoryhub.llm.registry import get_reader
from workspaces.index.embedding import active_model
from workspaces.models import User, Workspace

COMPARED = 3_000  # memories; comparing them takes half a second, and grows with the square of the number
NEAR = 0.75  # minimum cosine of two memories to be judged
JUDGED = 100  # pairs, the nearest first; judging one takes up to some milliseconds
MOST_LINKED = 200
KEPT_SECONDS = 600
CHUNK = 512
_VECTORS = """
SELECT ref, place, halfvec_send(coalesce(statement, embedding)) FROM workspaces_passagevector
WHERE live AND kind = %(kind)s::smallint AND model = %(model)s::text AND ref = ANY(%(ids)s::bigint[])
  AND place = ANY(%(places)s::bigint[])
ORDER BY ref
"""


@dataclass(frozen=True)
class Pair:
    older: Memory
    newer: Memory


@dataclass(frozen=True)
class Pairs:
    """Pairs to review. ``partly`` is true if there are more memories than were compared."""

    duplicates: list[Pair]
    contradictions: list[Pair]
    partly: bool


def pairs_in(workspace: Workspace, user: User, now: datetime) -> Pairs:
    """Return the pairs to review, without those that somebody marked as both valid.

    The comparison is cached for KEPT_SECONDS, or until the workspace's memories change.
    """
    cache = caches["process"]
    key = f"tidying.{workspace.pk}.{user.pk}.{hash(state_of(workspace))}"
    same, differing, partly = cache.get(key) or ([], [], None)
    if partly is None:
        same, differing, partly = _compared(workspace, user, now)
        cache.set(key, (same, differing, partly), KEPT_SECONDS)
    shown = {memory.pk: memory for memory in _loaded(workspace, user, now, [*same, *differing])}
    kept = _kept(shown)

    def pairs(keys: list[tuple[int, int]]) -> list[Pair]:
        known = [(shown[a], shown[b]) for a, b in keys if a in shown and b in shown]
        return [Pair(a, b) for a, b in known if (b.pk, a.pk, texts_of(b, a)) not in kept]

    found = Pairs(pairs(same), pairs(differing), partly)
    if kept and not found.duplicates and not found.contradictions:
        cache.delete(key)  # all are decided, so the next call judges pairs that are less near
    return found


def texts_of(memory: Memory, other: Memory | None) -> str:
    """Return the hashes of the memories' texts, which show later whether a text has changed."""
    return f"{memory.content_hash} {other.content_hash}" if other else memory.content_hash


def _compared(
    workspace: Workspace, user: User, now: datetime
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], bool]:
    """Return the keys (older, newer) of duplicates and of contradictions, and whether memories were left uncompared."""
    holding = _holding(workspace, user, now)
    found = holding.order_by("-pk")
    rows = list(found.only("content", "content_hash", "workspace", "owner", "agent")[: COMPARED + 1])
    texts = {memory.pk: memory.content for memory in rows}
    hashes = {memory.pk: memory.content_hash for memory in rows}
    kept = _kept(hashes)
    partly = len(texts) > COMPARED
    linked = holding.filter(may_replace__in=holding).order_by("-pk")
    said = {
        (min(older, newer), max(older, newer)): (before, after)
        for older, newer, before, after in linked.values_list(
            "may_replace_id", "pk", "may_replace__content", "content"
        )[:MOST_LINKED]
    }
    nearest = _nearest(rows[:COMPARED])
    undecided = ((a, b) for a, b in nearest if (b, a, f"{hashes[b]} {hashes[a]}") not in kept)
    said |= {(older, newer): (texts[older], texts[newer]) for older, newer in islice(undecided, JUDGED)}
    same: list[tuple[int, int]] = []
    differing: list[tuple[int, int]] = []
    for pair, (a, b) in said.items():
        if may_merge(a, b, get_reader(), likely=True):
            same.append(pair)
        elif about_the_same(a, b):
            differing.append(pair)
    return same, differing, partly


def _nearest(memories: Sequence[Memory]) -> Iterator[tuple[int, int]]:
    """Yield the keys (older, newer) of pairs of one place whose cosine is at least ``NEAR``, the nearest first."""
    model = active_model()
    if model is None or len(memories) < 2:
        return
    ids = queries.bigints(memory.pk for memory in memories)
    places = queries.bigints({memory.place for memory in memories})
    rows = queries.rows(_VECTORS, {"kind": MEMORY, "model": model, "ids": ids, "places": places})
    found: list[tuple[float, int, int]] = []
    for place in {place for _, place, _ in rows}:
        here = [(pk, raw) for pk, at, raw in rows if at == place]
        vectors = np.stack([_halves(raw) for _, raw in here])
        for start in range(0, len(here), CHUNK):
            cosines = vectors[start : start + CHUNK] @ vectors.T
            for row, column in zip(*np.nonzero(cosines >= NEAR), strict=True):
                if column > row + start:
                    found.append((float(cosines[row, column]), here[row + start][0], here[column][0]))
    for _, older, newer in sorted(found, reverse=True):
        yield older, newer


def _halves(raw: bytes | memoryview) -> Vectors:
    """Decode the result of ``halfvec_send``: a header of two 2-byte integers, then the numbers as 2-byte floats."""
    return np.frombuffer(bytes(raw), dtype=">f2", offset=4).astype(np.float32)


def _holding(workspace: Workspace, user: User, now: datetime) -> MemoryQuerySet:
    """Return the live memories whose validity has not ended. Only these can contradict each other."""
    return live_in(workspace, user, now).not_over(now)


def _loaded(workspace: Workspace, user: User, now: datetime, keys: list[tuple[int, int]]) -> list[Memory]:
    ids = {pk for pair in keys for pk in pair}
    return list(
        _holding(workspace, user, now)
        .filter(pk__in=ids)
        .select_related("author", "edited_by", "imported_by", "workspace", "agent")
    )


def _kept(shown: Collection[int]) -> set[tuple[int, int | None, str]]:
    rows = KeptAsIs.objects.filter(Q(memory__in=shown) & Q(other__in=shown))
    return set(rows.values_list("memory", "other", "texts"))
