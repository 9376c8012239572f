"""The drafts of one place, decided about in turn and stored together. For ``many``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import numpy as np
from django.conf import settings
from django.db import transaction

from memories.models import Memory, MemorySource, Revision
from memories.models.memory import MEMORY, RevisionAction
from memories.writing import cap, changing, gate, tombstones
from memories.writing.announcing import announce_many
from memories.writing.copy_rows import insert_rows, number_rows
from memories.writing.decide import Forgotten, Known, New, Proposal, Refused, Update, decide
from memories.writing.doubles import holders_beside, rows_beside
from memories.writing.drafts import Draft
from memories.writing.gate import Saved
from memories.writing.indexed import index_lexemes, queue_embedding
from memories.writing.portable import Past
from memories.writing.similar import LEAST, NEAREST, Similar, fits, judge
from memoryhub.llm.two_encoders import likeness
from memoryhub.monitoring import metrics
from workspaces.index.embedding import Embedded
from workspaces.index.vectors import copy_vectors, put_vectors, stored_vectors
from workspaces.models import User
from workspaces.quotas import brought_by, require_room


@dataclass
class _There:
    """Stored and new memories of a place, loaded once for all drafts of a batch."""

    neighbours: dict[int, list[tuple[int, float]]]
    known: dict[int, Memory]
    up_to: int | None
    equals: dict[str, list[Memory]] = field(default_factory=dict)  # the oldest first
    holders: dict[str | None, Memory] = field(default_factory=dict)

    def beside(self, memory: Memory, now: datetime) -> _Beside:
        return _Beside(self, memory, now)

    def add(self, memory: Memory) -> None:
        if memory.deleted_at is not None:
            return
        self.known[memory.pk] = memory
        if self.up_to is None:
            self.equals.setdefault(memory.content_hash, []).append(memory)
        if memory.key:
            self.holders[memory.key] = memory


@dataclass(frozen=True)
class _Beside:
    """``decide.Beside`` one of a batch."""

    there: _There
    memory: Memory
    now: datetime

    def holder(self) -> Memory | None:
        return self.there.holders.get(self.memory.key) if self.memory.key else None

    def same(self) -> Similar[Memory]:
        key, known = self.memory.key, self.there.known
        equals = [each for each in self.there.equals.get(self.memory.content_hash, []) if self._fits(each)]
        if equals:
            return Similar(duplicate=equals[-1])
        neighbours = self.there.neighbours.get(self.memory.pk, [])
        near = [(known[abs(pk)], cosine) for pk, cosine in neighbours if abs(pk) in known]
        nearest = [(each, cosine) for each, cosine in near if self._holds_alike(each)][:NEAREST]
        return judge(self.memory.content, nearest, threshold=settings.DEDUPE_THRESHOLD, key=key)

    def _fits(self, memory: Memory) -> bool:
        return fits(memory, self.memory.key) and self._holds_alike(memory)

    def _holds_alike(self, memory: Memory) -> bool:
        return memory.is_over(self.now) == self.memory.is_over(self.now)


class Batch:
    """The drafts of one place: which are new, which are known, and which the gate is to be asked about singly."""

    def __init__(
        self,
        rows: Sequence[tuple[int, Draft, Embedded | None]],
        now: datetime,
        pasts: Sequence[Past] | None = None,
    ) -> None:
        self.now = now
        self.pasts = [Past()] * len(rows) if pasts is None else pasts
        self.rows = [
            (number, draft.dated(past.created_at or now), embedded)
            for (number, draft, embedded), past in zip(rows, self.pasts, strict=True)
        ]
        self.past_of: dict[int, Past] = {}
        self.saved: dict[int, Saved] = {}
        self.new: list[tuple[Memory, Embedded | None]] = []
        self.one_by_one: dict[int, Saved] = {}  # what the gate will say of each of these
        self.givers: list[tuple[Memory, Memory]] = []  # a key goes from the one to the other
        self.wordings: list[tuple[Memory, str]] = []

    def sort_out(self, dedupe: str, *, by: User | None, near: bool, kept_up_to: int | None = None) -> None:
        """Decide about each in turn, beside what is stored and the ones before it.

        ``kept_up_to``: rows as they were elsewhere. Only equal texts and keys of up to that one are looked at, and a
        key that is taken there changes nothing.
        """
        own = dedupe == "create" or not near
        memories = [
            _with_past(
                gate.new_row(draft, None, brought_by=brought_by(by, draft.author), now=self.now, own_row=own),
                past,
            )
            for (_, draft, _), past in zip(self.rows, self.pasts, strict=True)
        ]
        number_rows(memories)
        self.past_of = {memory.pk: past for memory, past in zip(memories, self.pasts, strict=True)}
        there = self._load(memories, near=near and dedupe != "create", up_to=kept_up_to)
        forgotten = tombstones.forgotten([draft for _, draft, _ in self.rows], by=by)
        for (number, draft, embedded), memory, gone in zip(self.rows, memories, forgotten, strict=True):
            beside = there.beside(memory, self.now)
            if kept_up_to is None:
                forced, unchanged = dedupe == "create", False
            else:
                holder = beside.holder()
                unchanged = holder is not None and holder.pk <= kept_up_to
                forced = memory.deleted_at is not None or (holder is not None and not unchanged)
            verdict = decide(draft, beside, now=self.now, forgotten=gone, forced=forced)
            match verdict:
                case Forgotten():
                    self.saved[number] = Saved(memory, created=False, forgotten=True)
                case Refused(error):
                    raise error
                case Known(known):
                    self.saved[number] = Saved(known, created=False, duplicate=True)
                    self.wordings += [(known, draft.content)] if near and not draft.waits_for_review else []
                case Update(known) if unchanged and known.key == draft.key:
                    self.saved[number] = Saved(known, created=False, duplicate=True)
                case Update(known):
                    self.one_by_one[number] = Saved(known, created=False)
                    there.holders[draft.key] = known  # what follows under this key comes after it, singly too
                case Proposal():
                    self.one_by_one[number] = Saved(memory, created=False, pending=True)
                case New(may_replace, giver):
                    memory.may_replace = may_replace
                    self.saved[number] = Saved(memory, created=True)
                    self.new.append((memory, embedded))
                    if giver is not None and memory.deleted_at is None:
                        self.givers.append((giver, memory))
                    there.add(memory)

    def _load(self, memories: list[Memory], *, near: bool, up_to: int | None) -> _There:
        live = rows_beside(self.rows[0][1], self.now)
        hashes = {memory.content_hash for memory in memories}
        neighbours = self._neighbours(memories) if near else {}
        pks = {pk for found in neighbours.values() for pk, _ in found if pk > 0}
        there = _There(neighbours, {memory.pk: memory for memory in live.filter(pk__in=pks)}, up_to)
        older = live if up_to is None else live.filter(pk__lte=up_to)
        for memory in older.filter(content_hash__in=hashes).order_by("created_at", "pk"):
            there.equals.setdefault(memory.content_hash, []).append(memory)
        keys = {memory.key for memory in memories if memory.key}
        there.holders = {memory.key: memory for memory in holders_beside(self.rows[0][1], keys)}
        return there

    def _neighbours(self, memories: list[Memory]) -> dict[int, list[tuple[int, float]]]:
        """For each new key the nearest stored ones and earlier ones of the batch (negative), best first."""
        with_vector = [
            (memory, embedded)
            for memory, (_, _, embedded) in zip(memories, self.rows, strict=True)
            if embedded is not None
        ]
        if not with_vector:
            return {}
        least = min(settings.DEDUPE_THRESHOLD, LEAST)
        ids = [memory.pk for memory, _ in with_vector]
        made = np.stack([embedded.statement for _, embedded in with_vector])
        found: dict[int, list[tuple[int, float]]] = {}
        within = np.tril(likeness(made, made), k=-1)  # with earlier ones only
        for row, other in np.argwhere(within >= least).tolist():
            found.setdefault(ids[row], []).append((-ids[other], float(within[row, other])))
        for pks, stored in stored_vectors(MEMORY, memories[0].place, with_vector[0][1].model, made.shape[1]):
            cosines = likeness(made, stored)
            for row, other in np.argwhere(cosines >= least).tolist():
                found.setdefault(ids[row], []).append((int(pks[other]), float(cosines[row, other])))
        for pairs in found.values():
            pairs.sort(key=lambda pair: -pair[1])
            del pairs[5 * NEAREST :]  # some of them turn out to be duplicates themselves, or expired
        return found

    def store(self, by: User | None) -> None:
        if self.new:
            self._store_new(by)
        changing.note_wordings(self.wordings, by=by, now=self.now)

    def _store_new(self, by: User | None) -> None:
        memories = [memory for memory, _ in self.new]
        for payer, number in Counter(by or memory.author for memory in memories).items():
            require_room("memories", payer, number)
        self._link(memories)
        moved = self._move_keys(by)
        insert_rows(memories)
        self._note_replaced(memories)
        index_lexemes([memory for memory in memories if memory.deleted_at is None])
        Revision.objects.bulk_create(
            revision for memory in memories for revision in self._revisions(memory, by)
        )
        MemorySource.objects.bulk_create(
            MemorySource(memory=memory, source_id=source)
            for memory in memories
            for source in self.past_of[memory.pk].sources
        )
        Revision.objects.bulk_create(moved)
        self._store_vectors()
        for source, number in Counter(memory.source_type for memory in memories).items():
            transaction.on_commit(partial(metrics.count_saves, source, number))
        announce_many(memories, "create")
        if any(memory.is_automatic for memory in memories):
            cap.keep_to_cap(memories[0].workspace_id, memories[0].owner_id, memories[0].agent_id)

    def _move_keys(self, by: User | None) -> list[Revision]:
        """Before the rows are stored, since a key has one holder at every moment; the history of those among them."""
        moved = []
        for giver, memory in self.givers:
            if giver.pk in self.past_of:
                note = changing.gone_to(memory, giver)
                moved.append(
                    Revision(memory=giver, action=RevisionAction.KEY, by=by, at=self.now, before=note)
                )
                giver.key = None
            else:
                changing.give_key_up(giver, to=memory, by=by, now=self.now)
        return moved

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

    def _note_replaced(self, memories: Sequence[Memory]) -> None:
        """Link ended memories of the place, where nothing is linked, to the one of these that replaced them."""
        for memory in memories:
            if replaced := self.past_of[memory.pk].replaces:
                ended = Memory.objects.filter(
                    workspace=memory.workspace_id, owner=memory.owner_id, agent=memory.agent_id
                ).filter(public_id__in=replaced, replaced_by=None, valid_to__isnull=False)
                ended.exclude(pk=memory.pk).update(replaced_by=memory)

    def _revisions(self, memory: Memory, by: User | None) -> Iterable[Revision]:
        past = self.past_of[memory.pk].revisions
        if not past:
            yield Revision(memory=memory, action=RevisionAction.CREATE, by=by, at=self.now)
        for revision in past:
            before = dict(revision.before or {})
            yield Revision(
                memory=memory,
                action=revision.action,
                by=revision.by,
                at=revision.at,
                before=before,
                imported=revision.imported,
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
