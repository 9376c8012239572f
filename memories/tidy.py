"""Memories to tidy up (stale, unused, duplicate and contradictory ones), and a person's decisions about them."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any

import numpy as np
from django.core.cache import caches
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from memories.access import live_in
from memories.judging.duplicates import may_merge
from memories.judging.extraction.speaker import CLAUSES
from memories.models import KeptAsIs, Memory, ReceiptItem
from memories.models.memory import MEMORY, MemoryQuerySet
from memories.recalling.recall_tests import state_of
from memories.writing import changing, gate, review
from memories.writing.changing import record_wordings
from memoryhub.database import queries
from memoryhub.errors import Invalid, NotFound
from memoryhub.llm.base import Vectors
from memoryhub.llm.registry import get_reader
from workspaces.access import require
from workspaces.index.embedding import active_model, embeddable
from workspaces.models import EmbeddingModel, Role, User, Workspace
from workspaces.models.index import has_vector, place_of

# A word; in scripts without spaces, each pair of neighbouring characters.
_WORD = re.compile(r"[^\W_]+")
_CLAUSE_END = re.compile(r"[.,;:!?](?:\s|$)|[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
SHARED = 3  # minimum number of common parts, because two greetings have none or two
SHARE = 0.5  # minimum share of the shorter text's parts
# The same below the cosine NEAR, as where one text states a second thing: “I am allergic to nuts” and “I am allergic to
# penicillin” share 0.8 and agree.
SHARE_OF_LESS_NEAR = 0.82


def about_the_same(a: str, b: str, share: float = SHARE) -> bool:
    """Return whether two texts share SHARED words and ``share`` of the shorter text's, enough to contradict each other.

    Vectors do not tell, because greetings and thanks are similar in every embedder but can contradict nothing.
    """
    one, other = _parts(a), _parts(b)
    shared = len(one & other)
    return shared >= SHARED and shared >= share * min(len(one), len(other))


def contains_as_clause(longer: str, shorter: str) -> bool:
    """Return whether the shorter text is a clause of the longer one: “I eat no fish, I am vegetarian” and its end."""
    parts = _CLAUSE_END.split(longer.casefold())
    clauses = [*parts, *chain.from_iterable(map(CLAUSES.split, parts))]
    phrase = "".join(_WORD.findall(shorter.casefold()))
    return phrase != "" and phrase in ("".join(_WORD.findall(clause)) for clause in clauses)


def _parts(text: str) -> set[str]:
    parts: set[str] = set()
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _UNSPACED.search(word):
            parts.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        else:
            parts.add(word)
    return parts


COMPARED = 3_000  # memories; comparing them takes half a second, and grows with the square of the number
NEAR = 0.75  # cosine from which two memories may be duplicates
LEAST_NEAR = 0.6  # minimum cosine of two memories to be judged
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
    """Pairs of memories to review. ``partly``: there are more memories than were compared."""

    duplicates: list[Pair]
    contradictions: list[Pair]
    partly: bool


def pairs_in(workspace: Workspace, user: User, now: datetime) -> Pairs:
    """Return the pairs to review, which are cached for KEPT_SECONDS or until the workspace's memories change."""
    cache = caches["process"]
    key = f"tidying.{workspace.pk}.{user.pk}.{hash(state_of(workspace))}"
    compared: Any = cache.get_or_set(key, lambda: _compared(workspace, user, now), KEPT_SECONDS)
    same, differing, partly = compared
    shown = {memory.pk: memory for memory in _loaded(workspace, user, now, [*same, *differing])}
    decisions = _kept(shown)

    def pairs(keys: list[tuple[int, int]]) -> list[Pair]:
        known = [(shown[a], shown[b]) for a, b in keys if a in shown and b in shown]
        return [Pair(a, b) for a, b in known if (b.pk, a.pk, texts_of(b, a)) not in decisions]

    tidy_pairs = Pairs(pairs(same), pairs(differing), partly)
    if decisions and not tidy_pairs.duplicates and not tidy_pairs.contradictions:
        cache.delete(key)  # all are decided, so the next call judges pairs that are less near
    return tidy_pairs


def texts_of(memory: Memory, other: Memory | None) -> str:
    """Return the hashes of the texts of one or two memories, to notice later whether a text has changed."""
    return f"{memory.content_hash} {other.content_hash}" if other else memory.content_hash


def _compared(
    workspace: Workspace, user: User, now: datetime
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], bool]:
    """Return the duplicates and the contradictions as primary keys (older, newer), and the value of ``partly``."""
    holding = _valid_in(workspace, user, now).order_by("-pk")
    columns = ("content", "content_hash", "workspace", "owner", "agent")
    rows = {memory.pk: memory for memory in holding.only(*columns)[: COMPARED + 1]}
    decisions = _kept(rows)
    linked = holding.filter(may_replace__in=holding.order_by())
    candidates = {
        (min(older, newer), max(older, newer)): (before, after, 1.0)
        for older, newer, before, after in linked.values_list(
            "may_replace_id", "pk", "may_replace__content", "content"
        )[:MOST_LINKED]
    }
    undecided = (
        ((older, newer), (rows[older].content, rows[newer].content, cosine))
        for older, newer, cosine in _nearest(list(rows.values())[:COMPARED])
        if (newer, older, texts_of(rows[newer], rows[older])) not in decisions
    )
    candidates |= dict(islice(undecided, JUDGED))
    same: list[tuple[int, int]] = []
    differing: list[tuple[int, int]] = []
    for pair, (a, b, cosine) in candidates.items():
        is_near = cosine >= NEAR
        may_be_same = is_near and may_merge(a, b, get_reader(), likely=True)
        if may_be_same or contains_as_clause(a, b) or contains_as_clause(b, a):
            same.append(pair)
        elif about_the_same(a, b, SHARE if is_near else SHARE_OF_LESS_NEAR):
            differing.append(pair)
    return same, differing, len(rows) > COMPARED


def _nearest(memories: Sequence[Memory]) -> Iterator[tuple[int, int, float]]:
    """Yield similar pairs of memories of a scope, most similar first, as (older key, newer key, cosine)."""
    model = active_model()
    if model is None or len(memories) < 2:
        return
    ids = [memory.pk for memory in memories]
    places = {memory.place for memory in memories}
    rows = queries.rows(_VECTORS, {"kind": MEMORY, "model": model, "ids": ids, "places": places})
    pairs: list[tuple[float, int, int]] = []
    for place in {row[1] for row in rows}:
        here = [(pk, raw) for pk, at, raw in rows if at == place]
        vectors = np.stack([_decode_halfvec(raw) for __, raw in here])
        for start in range(0, len(here), CHUNK):
            cosines = vectors[start : start + CHUNK] @ vectors.T
            for row, column in zip(*np.nonzero(cosines >= LEAST_NEAR), strict=True):
                if column > row + start:
                    pairs.append((float(cosines[row, column]), here[row + start][0], here[column][0]))
    for cosine, older, newer in sorted(pairs, reverse=True):
        yield older, newer, cosine


def _decode_halfvec(raw: bytes | memoryview) -> Vectors:
    """Decode the result of ``halfvec_send``: a header of two 2-byte integers, then one 2-byte float per dimension."""
    return np.frombuffer(bytes(raw), dtype=">f2", offset=4).astype(np.float32)


def _valid_in(workspace: Workspace, user: User, now: datetime) -> MemoryQuerySet:
    return live_in(workspace, user, now).not_over(now)


def _loaded(workspace: Workspace, user: User, now: datetime, keys: list[tuple[int, int]]) -> list[Memory]:
    rows = _valid_in(workspace, user, now).filter(pk__in={pk for pair in keys for pk in pair})
    return list(rows.select_related("author", "edited_by", "imported_by", "workspace", "agent"))


def _kept(shown: Collection[int]) -> set[tuple[int, int | None, str]]:
    rows = KeptAsIs.objects.filter(memory__in=shown, other__in=shown)
    return set(rows.values_list("memory", "other", "texts"))


STALE_AFTER = timedelta(days=180)
UNUSED_AFTER = timedelta(days=30)
SHOWN = 50  # memories of a list


def stale(workspace: Workspace, user: User, now: datetime) -> MemoryQuerySet:
    """Return memories that were neither recalled nor changed for STALE_AFTER, least recently used first."""
    before = now - STALE_AFTER
    rows = _valid_in(workspace, user, now).filter(
        pinned=False, last_accessed_at__lt=before, updated_at__lt=before
    )
    return _not_kept(rows, since=before).order_by("last_accessed_at", "pk")


def never_used(workspace: Workspace, user: User, now: datetime) -> MemoryQuerySet:
    """Return memories older than UNUSED_AFTER that no answer has used, oldest first."""
    before = now - UNUSED_AFTER
    used = ReceiptItem.objects.filter(memory=OuterRef("pk"), used=True)
    rows = _valid_in(workspace, user, now).filter(~Exists(used), pinned=False, created_at__lt=before)
    return _not_kept(rows, since=now - STALE_AFTER).order_by("created_at", "pk")


def without_vector(workspace: Workspace, user: User, now: datetime) -> MemoryQuerySet:
    """Return memories that have no vector yet although the embedder can embed them, oldest first."""
    rows, model = live_in(workspace, user, now), active_model()
    if model is None:
        return rows.none()
    places = [place_of(workspace.pk), place_of(0, owner_id=user.pk)]
    places += [place_of(0, agent_id=pk) for pk in workspace.agents.values_list("pk", flat=True)]
    rows = rows.filter(embeddable(EmbeddingModel.objects.active()), ~has_vector(MEMORY, model, places))
    return rows.order_by("created_at", "pk")


LISTS: Mapping[str, Callable[[Workspace, User, datetime], MemoryQuerySet]] = {
    "stale": stale,
    "unused": never_used,
    "unindexed": without_vector,
    "waiting": lambda workspace, user, _now: review.proposals(workspace, user),
}


def _not_kept(rows: MemoryQuerySet, *, since: datetime) -> MemoryQuerySet:
    """Exclude memories that somebody decided to keep after ``since``, unless their text has changed."""
    decisions = KeptAsIs.objects.filter(memory=OuterRef("pk"), other=None, at__gte=since)
    return rows.filter(~Exists(decisions.filter(texts=OuterRef("content_hash"))))


def merge(memory: Memory, *, into: Memory, by: User, now: datetime) -> Memory:
    """Soft-delete a memory that says the same as ``into``, and return it. Its text joins the history of ``into``.

    The deleted memory can be restored; the entry in the history stays. Raises Invalid if the two are the same memory
    or of different scopes (``Memory.place``).
    """
    if memory.pk == into.pk or memory.place != into.place:
        raise Invalid(_("Only two memories of the same place can be merged."))
    with transaction.atomic():
        record_wordings([(into, memory.content)], by=by, now=now)
        return gate.delete_memory(memory, by=by, now=now, into=into)


def record_as_kept(memory: Memory, *, beside: Memory | None = None, by: User, now: datetime) -> KeptAsIs:
    """Record the decision to keep a memory, or both it and ``beside``, until a text changes.

    A ``may_replace`` link between the two is removed. ``take_back`` undoes the decision. Raises Invalid if the two are
    of different scopes.
    """
    if beside is not None and memory.place != beside.place:
        raise Invalid(_("Only two memories of the same place can be kept beside each other."))
    if beside is not None and beside.pk == memory.pk:
        beside = None
    if beside is not None and beside.pk > memory.pk:
        memory, beside = beside, memory
    with transaction.atomic():
        linked = beside is not None and memory.may_replace_id == beside.pk
        if linked:
            changing.keep_both(memory, by=by, now=now)
        values = {"texts": texts_of(memory, beside), "was_linked": linked, "by": by, "at": now}
        return KeptAsIs.objects.update_or_create(memory=memory, other=beside, defaults=values)[0]


def get_kept(user: User, number: int, *, workspace: Workspace) -> KeptAsIs:
    """Return the record of a decision made by ``keep``. ``number`` is its primary key.

    Raises NotFound if the user may not see its memory or it was undone, and Forbidden if the user may not write.
    """
    memories = Memory.objects.visible_to(user).filter(workspace=workspace)
    rows = KeptAsIs.objects.filter(pk=number, memory__in=memories)
    decision = rows.select_related("memory__workspace", "other").first()
    if decision is None:
        raise NotFound(_("This has been undone already."))
    require(workspace.role, Role.EDITOR)
    return decision


def take_back(record: KeptAsIs) -> None:
    """Undo ``keep``: delete the record, and restore a link that it removed."""
    with transaction.atomic():
        if record.was_linked and record.other is not None:
            changing.link(record.memory, to=record.other)
        record.delete()
