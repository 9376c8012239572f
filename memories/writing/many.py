"""Many drafts at once, by the gate's own rules: what ``save_memory`` does one by one, in a few statements a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import numpy as np
from django.conf import settings
from django.db import transaction

from memories.models import Memory, MemorySource, Revision
from memories.models.memory import MEMORY, RevisionAction
from memories.recalling.kind import queue_embedding
from memories.recalling.words import index_lexemes
from memories.writing import cap, gate, tombstones
from memories.writing.announcing import announce
from memories.writing.copying import (
    insert_rows,
    number_rows,
)
from memories.writing.drafts import Draft
from memories.writing.gate import Saved
from memories.writing.places import one_writer_at_a_time, rows_beside
from memories.writing.portable import Past
from memories.writing.similar import (
    NEAREST,
    POSSIBLE_UPDATE,
    Similar,
    judge,
)
from memoryhub import metrics
from workspaces.access import default_workspace
from workspaces.index.copying import copy_vectors, stored_vectors
from workspaces.index.embedding import (
    Embedded,
    embed_texts,
    put_vectors,
)
from workspaces.models import User

BATCH = 500  # rows of one transaction: other writers of the workspace wait for no more


@dataclass(frozen=True)
class _Place:
    """Where drafts may find their doubles: one workspace, scope, owner and assistant."""

    workspace_id: int
    scope: str
    owner_id: int | None
    agent_id: int | None


def save_memories(
    drafts: Sequence[Draft],
    *,
    by: User | None,
    now: datetime,
    vectors: Sequence[Embedded | None] | None = None,
    dedupe: str = "key",
    near: bool = True,
    pasts: Sequence[Past] | None = None,
) -> list[Saved]:
    """``gate.save_memory`` for many: the same cleaning, refusals, comparisons, words, vectors, revisions and events.

    One result a draft, in order; what was forgotten for good is not stored (``forgotten``), since nobody reads a file
    line by line before bringing it in. Raises Invalid or SecretRefused before anything is stored. ``vectors`` are
    those of the cleaned texts by the active model, made here otherwise; None for one that is to be made in the
    background.
    ``near=False`` leaves near-duplicates out: only equal texts are found. ``pasts`` are the ids, dates and revisions
    that the memories had elsewhere. Each batch is a transaction of its own: after a crash the same call stores what
    is missing.
    """
    cleaned = _at_home([draft.cleaned() for draft in drafts])
    saved: list[Saved] = []
    for start in range(0, len(cleaned), BATCH):
        part = cleaned[start : start + BATCH]
        given: Sequence[Embedded | None]
        if vectors is not None:
            given = vectors[start : start + BATCH]
        else:
            stays = [draft.workspace.local_only for draft in part]
            made = embed_texts([(draft.content, draft.source_excerpt) for draft in part], stays=stays)
            given = made or [None] * len(part)
        past = pasts[start : start + BATCH] if pasts is not None else None
        saved += save_cleaned(part, given, past, by=by, now=now, dedupe=dedupe, near=near)
    return saved


def foresee(
    drafts: Sequence[Draft], vectors: Sequence[Embedded | None], *, now: datetime, near: bool = True
) -> list[Saved]:
    """What ``save_memories`` would answer for these cleaned drafts, and nothing stored.

    A memory that has no row yet is one of the drafts'. A key that is known would change its memory in place.
    """
    drafts = _at_home(drafts)
    results: dict[int, Saved] = {}
    for numbers in _by_place(drafts).values():
        batch = _Batch([(number, drafts[number], vectors[number]) for number in numbers], now)
        batch.sort_out("key", near=near)
        results |= batch.saved
        for number in batch.one_by_one:
            beside = rows_beside(drafts[number], now)
            same_key = beside.filter(key=drafts[number].key).order_by("-updated_at").first()
            of_file = [
                saved.memory for saved in batch.saved.values() if saved.memory.key == drafts[number].key
            ]
            results[number] = Saved(same_key or of_file[0], created=False)
    return [results[number] for number in range(len(drafts))]


def _at_home(drafts: Sequence[Draft]) -> list[Draft]:
    """Personal ones lie in their owner's default workspace."""
    owners = {draft.owner.pk: draft.owner for draft in drafts if draft.owner}
    homes = {pk: default_workspace(owner) for pk, owner in owners.items()}
    return [replace(draft, workspace=homes[draft.owner.pk]) if draft.owner else draft for draft in drafts]


def _by_place(drafts: Sequence[Draft]) -> dict[_Place, list[int]]:
    places: dict[_Place, list[int]] = {}
    for number, draft in enumerate(drafts):
        places.setdefault(_place(draft), []).append(number)
    return places


def save_cleaned(
    drafts: Sequence[Draft],
    vectors: Sequence[Embedded | None],
    pasts: Sequence[Past] | None = None,
    *,
    by: User | None,
    now: datetime,
    dedupe: str = "key",
    near: bool = True,
) -> list[Saved]:
    """``save_memories`` for a batch of cleaned drafts at home whose vectors are known.

    Asks no model, so it may be part of a transaction.
    """
    results: dict[int, Saved] = {}
    with transaction.atomic():
        for workspace in sorted({draft.workspace for draft in drafts}, key=lambda found: found.pk):
            one_writer_at_a_time(workspace)
        for numbers in _by_place(drafts).values():
            rows = [(number, drafts[number], vectors[number]) for number in numbers]
            batch = _Batch(rows, now, [pasts[number] for number in numbers] if pasts is not None else None)
            batch.sort_out(dedupe, near=near)
            batch.store(by)
            results |= batch.saved
            for number in batch.one_by_one:
                results[number] = gate.save_embedded(
                    drafts[number], vectors[number], by=by, now=now, dedupe=dedupe
                )
    return [results[number] for number in range(len(drafts))]


def _place(draft: Draft) -> _Place:
    owner, agent = draft.owner, draft.agent
    return _Place(draft.workspace.pk, draft.scope, owner.pk if owner else None, agent.pk if agent else None)


class _Batch:
    """The drafts of one place: which are new, which are known, and which the gate is to be asked about singly."""

    def __init__(
        self,
        rows: Sequence[tuple[int, Draft, Embedded | None]],
        now: datetime,
        pasts: Sequence[Past] | None = None,
    ) -> None:
        self.rows, self.now = rows, now
        self.pasts = [Past()] * len(rows) if pasts is None else pasts
        self.past_of: dict[int, Past] = {}
        self.saved: dict[int, Saved] = {}
        self.new: list[tuple[Memory, Embedded | None]] = []
        self.one_by_one: list[int] = []

    def sort_out(self, dedupe: str, *, near: bool) -> None:
        compare = dedupe != "create"
        memories = [
            _with_past(gate.new_row(draft, None, self.now), past)
            for (_, draft, _), past in zip(self.rows, self.pasts, strict=True)
        ]
        number_rows(memories)
        self.past_of = {memory.pk: past for memory, past in zip(memories, self.pasts, strict=True)}
        beside = rows_beside(self.rows[0][1], self.now)
        equal: dict[str, Memory] = {}
        keys: set[str | None] = set()
        if compare:
            hashes = [memory.content_hash for memory in memories]
            equal = {memory.content_hash: memory for memory in beside.filter(content_hash__in=hashes)}
            keys = set(
                beside.filter(key__in=[m.key for m in memories if m.key]).values_list("key", flat=True)
            )
        neighbours = self._neighbours(memories) if compare and near else {}
        known = {
            memory.pk: memory
            for memory in beside.filter(
                pk__in={pk for found in neighbours.values() for pk, _ in found if pk > 0}
            )
        }
        forgotten = tombstones.forgotten([draft for _, draft, _ in self.rows])
        for (number, draft, embedded), memory, gone in zip(self.rows, memories, forgotten, strict=True):
            if gone:
                self.saved[number] = Saved(memory, created=False, forgotten=True)
                continue
            if compare and memory.key and memory.key in keys:
                self.one_by_one.append(number)
                continue
            if memory.content_hash in equal:
                self.saved[number] = Saved(equal[memory.content_hash], created=False, duplicate=True)
                continue
            found = self._judge(draft, neighbours.get(memory.pk, []), known)
            if found.duplicate:
                self.saved[number] = Saved(found.duplicate, created=False, duplicate=True)
                continue
            memory.may_replace = found.possible_update
            self.saved[number] = Saved(memory, created=True)
            self.new.append((memory, embedded))
            known[memory.pk] = memory
            if compare:
                equal[memory.content_hash] = memory
                keys |= {memory.key} if memory.key else set()

    def _judge(self, draft: Draft, neighbours: list[tuple[int, float]], known: dict[int, Memory]) -> Similar:
        nearest = [(known[abs(pk)], cosine) for pk, cosine in neighbours if abs(pk) in known]
        return judge(draft.content, nearest[:NEAREST], threshold=settings.DEDUPE_THRESHOLD)

    def _neighbours(self, memories: list[Memory]) -> dict[int, list[tuple[int, float]]]:
        """For each new key the nearest stored ones and earlier ones of the batch (negative), best first."""
        with_vector = [
            (memory, embedded)
            for memory, (_, _, embedded) in zip(memories, self.rows, strict=True)
            if embedded is not None
        ]
        if not with_vector:
            return {}
        least = min(settings.DEDUPE_THRESHOLD, POSSIBLE_UPDATE)
        ids = [memory.pk for memory, _ in with_vector]
        made = np.stack([embedded.statement for _, embedded in with_vector])
        found: dict[int, list[tuple[int, float]]] = {}
        within = np.tril(made @ made.T, k=-1)  # with earlier ones only
        for row, other in np.argwhere(within >= least).tolist():
            found.setdefault(ids[row], []).append((-ids[other], float(within[row, other])))
        for pks, stored in stored_vectors(MEMORY, memories[0].place, with_vector[0][1].model, made.shape[1]):
            cosines = made @ stored.T
            for row, other in np.argwhere(cosines >= least).tolist():
                found.setdefault(ids[row], []).append((int(pks[other]), float(cosines[row, other])))
        for pairs in found.values():
            pairs.sort(key=lambda pair: -pair[1])
            del pairs[5 * NEAREST :]  # some of them turn out to be duplicates themselves, or expired
        return found

    def store(self, by: User | None) -> None:
        if not self.new:
            return
        memories = [memory for memory, _ in self.new]
        self._link(memories)
        insert_rows(memories)
        index_lexemes([memory.pk for memory in memories if memory.deleted_at is None])
        Revision.objects.bulk_create(
            revision for memory in memories for revision in self._revisions(memory, by)
        )
        MemorySource.objects.bulk_create(
            MemorySource(memory=memory, source_id=source)
            for memory in memories
            for source in self.past_of[memory.pk].sources
        )
        self._store_vectors()
        for source, number in Counter(memory.source_type for memory in memories).items():
            transaction.on_commit(partial(metrics.count_saves, source, number))
        announce(memories[-1], "create")
        if any(memory.is_automatic for memory in memories):
            cap.look_after(memories[0].workspace_id, memories[0].owner_id, memories[0].agent_id)

    def _link(self, memories: Sequence[Memory]) -> None:
        """To the older memory that each may replace: one of these, or one of the workspace."""
        wanted = {link for memory in memories if (link := self.past_of[memory.pk].may_replace)}
        if not wanted:
            return
        older = Memory.objects.filter(workspace=memories[0].workspace_id, owner=memories[0].owner_id)
        known = {memory.public_id: memory for memory in older.filter(public_id__in=wanted)}
        known |= {memory.public_id: memory for memory in memories}
        for memory in memories:
            older_one = known.get(self.past_of[memory.pk].may_replace)
            if older_one is not None and older_one.pk < memory.pk:
                memory.may_replace = older_one

    def _revisions(self, memory: Memory, by: User | None) -> Iterable[Revision]:
        past = self.past_of[memory.pk].revisions
        if not past:
            yield Revision(memory=memory, action=RevisionAction.CREATE, by=by, at=self.now)
        for revision in past:
            before = dict(revision.before or {})
            yield Revision(
                memory=memory, action=revision.action, by=revision.by, at=revision.at, before=before
            )

    def _store_vectors(self) -> None:
        live = [(memory, embedded) for memory, embedded in self.new if memory.deleted_at is None]
        later = [memory.pk for memory, embedded in live if embedded is None]
        by_model: dict[tuple[str, int, bool], list[tuple[Memory, Embedded]]] = {}
        for memory, embedded in live:
            if embedded is not None:
                alone = embedded.search is embedded.statement
                by_model.setdefault((embedded.model, len(embedded.search), alone), []).append(
                    (memory, embedded)
                )
        for (model, _, alone), pairs in by_model.items():
            if not put_vectors(model, []):  # recall went over to another model meanwhile
                later += [memory.pk for memory, _ in pairs]
                continue
            copy_vectors(
                MEMORY,
                [memory.pk for memory, _ in pairs],
                [memory.place for memory, _ in pairs],
                model,
                np.stack([embedded.search for _, embedded in pairs]),
                None if alone else np.stack([embedded.statement for _, embedded in pairs]),
            )
        if later:
            queue_embedding(later)


def _with_past(memory: Memory, past: Past) -> Memory:
    if past.public_id:
        memory.public_id = past.public_id
    memory.created_at = past.created_at or memory.created_at
    memory.updated_at = past.updated_at or past.created_at or memory.updated_at
    memory.last_accessed_at, memory.deleted_at = past.last_accessed_at, past.deleted_at
    memory.review = past.review
    return memory
