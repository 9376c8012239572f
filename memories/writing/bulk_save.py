"""Bulk storage of drafts by the same rules as ``save_memory``, in a few SQL statements per batch."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

import numpy as np
from django.conf import settings
from django.db import connection, transaction
from django.db.models import JSONField
from psycopg import sql

from memories.indexing import SEARCH, index_lexemes, queue_embedding
from memories.models import Memory, MemorySource, Revision
from memories.models.memory import MEMORY, RevisionAction
from memories.writing import changing, decide, gate, tombstones
from memories.writing.changing import announce_many
from memories.writing.drafts import Draft
from memories.writing.export_lines import Past
from memories.writing.gate import Saved, enforce_limit
from memoryhub.llm.bundled_embedder import likeness
from memoryhub.monitoring import metrics
from workspaces.access import default_workspace
from workspaces.index.embedding import Embedded, copy_vectors, put_vectors, stored_vectors
from workspaces.models import User
from workspaces.quotas import importer_key, require_room

_COLUMNS = [column for column in Memory._meta.concrete_fields if column.name != "search"]
_IDENTIFIERS: list[sql.Composable] = [sql.Identifier(str(column.column)) for column in _COLUMNS]
_NAMES = sql.SQL(", ").join(_IDENTIFIERS)
_STAGE = sql.SQL(
    "CREATE TEMP TABLE staged_memories ON COMMIT DROP AS SELECT {names} FROM memories_memory WITH NO DATA"
).format(names=_NAMES)
_INSERT = sql.SQL(
    f"INSERT INTO memories_memory ({{names}}, search) SELECT {{names}}, {SEARCH} FROM staged_memories"  # noqa: S608
).format(names=_NAMES)


def number_rows(memories: Sequence[Memory]) -> None:
    """Assign primary keys to rows before they are inserted, so that the rows can refer to each other."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence('memories_memory', 'id')) FROM generate_series(1, %s)",
            [len(memories)],
        )
        for memory, (pk,) in zip(memories, cursor.fetchall(), strict=True):
            memory.pk = pk


def insert_rows(memories: Iterable[Memory]) -> None:
    """Insert rows with their ``search`` by COPY and one INSERT, ten times as fast as saving them one by one."""
    with connection.cursor() as cursor:
        cursor.execute(_STAGE)
        with cursor.copy(sql.SQL("COPY staged_memories ({}) FROM STDIN").format(_NAMES)) as copy:
            for memory in memories:
                values = ((column, getattr(memory, column.attname)) for column in _COLUMNS)
                copy.write_row(  # psycopg adapts every type except JSON
                    column.get_db_prep_save(value, connection) if isinstance(column, JSONField) else value
                    for column, value in values
                )
        cursor.execute(_INSERT)
        cursor.execute("DROP TABLE staged_memories")
    for memory in memories:
        memory._state.adding, memory._state.db = False, connection.alias


@dataclass
class _Loaded:
    """The stored and new memories of a scope, loaded once for all drafts of a batch."""

    neighbours: dict[int, list[tuple[int, float]]]
    known: dict[int, Memory]
    up_to: int | None
    equals: dict[str, list[Memory]] = field(default_factory=dict)  # oldest first
    key_owners: dict[str | None, Memory] = field(default_factory=dict)

    def add(self, memory: Memory) -> None:
        if memory.deleted_at is not None:
            return
        self.known[memory.pk] = memory
        if self.up_to is None:
            self.equals.setdefault(memory.content_hash, []).append(memory)
        if memory.key:
            self.key_owners[memory.key] = memory


@dataclass(frozen=True)
class _Beside:
    """An implementation of ``decide.Beside`` for one draft of a batch, which uses the loaded memories ``there``."""

    there: _Loaded
    memory: Memory
    now: datetime

    def key_owner(self) -> Memory | None:
        return self.there.key_owners.get(self.memory.key) if self.memory.key else None

    def same(self) -> decide.Similar:
        key, known = self.memory.key, self.there.known
        alike = self.there.equals.get(self.memory.content_hash, [])
        equals = [each for each in alike if decide.fits(each, key) and self._holds_alike(each)]
        if equals:
            return decide.Similar(duplicate=equals[-1])
        neighbours = self.there.neighbours.get(self.memory.pk, [])
        near = [(known[abs(pk)], cosine) for pk, cosine in neighbours if abs(pk) in known]
        nearest = [(each, cosine) for each, cosine in near if self._holds_alike(each)][: decide.NEAREST]
        return decide.judge(self.memory.content, nearest, key=key)

    def _holds_alike(self, memory: Memory) -> bool:
        return memory.is_over(self.now) == self.memory.is_over(self.now)


class Batch:
    """Drafts of one scope, sorted into new memories, duplicates, and drafts that the gate must save one by one."""

    def __init__(
        self,
        numbers: Sequence[int],
        drafts: Sequence[Draft],
        vectors: Sequence[Embedded | None],
        pasts: Sequence[Past] | None,
        now: datetime,
    ) -> None:
        self.now = now
        self.pasts = [Past() if pasts is None else pasts[number] for number in numbers]
        self.rows = [
            (number, drafts[number].dated(past.created_at or now), vectors[number])
            for number, past in zip(numbers, self.pasts, strict=True)
        ]
        self.past_of: dict[int, Past] = {}
        self.saved: dict[int, Saved] = {}
        self.new: list[tuple[Memory, Embedded | None]] = []
        self.one_by_one: dict[int, Saved] = {}  # the result expected from the gate for each of these drafts
        self.moved_keys: list[tuple[Memory, Memory]] = []  # (previous owner of the key, new owner)
        self.wordings: list[tuple[Memory, str]] = []

    def sort_out(self, dedupe: str, *, by: User | None, near: bool, kept_up_to: int | None = None) -> None:
        """Decide what to do with each draft in turn, comparing it with stored memories and with the earlier drafts.

        ``near``: also find near-duplicates. ``kept_up_to`` is for imports, which keep the rows of a file apart. Drafts
        are then compared, by equal text and by key, only with memories whose primary key is at most this number. If one
        of these memories has the draft's key, the draft changes nothing.
        """
        own = dedupe == "create" or not near
        memories = []
        for (_, draft, _), past in zip(self.rows, self.pasts, strict=True):
            importer = importer_key(by, draft.author)
            row = gate.new_row(draft, None, brought_by=importer, now=self.now, own_row=own)
            memories.append(_with_past(row, past))
        number_rows(memories)
        self.past_of = {memory.pk: past for memory, past in zip(memories, self.pasts, strict=True)}
        there = self._load(memories, near=near and dedupe != "create", up_to=kept_up_to)
        forgotten = tombstones.forgotten([draft for _, draft, _ in self.rows], by=by)
        for (number, draft, embedded), memory, gone in zip(self.rows, memories, forgotten, strict=True):
            beside = _Beside(there, memory, self.now)
            if kept_up_to is None:
                forced, unchanged = dedupe == "create", False
            else:
                key_owner = beside.key_owner()
                unchanged = key_owner is not None and key_owner.pk <= kept_up_to
                forced = memory.deleted_at is not None or (key_owner is not None and not unchanged)
            verdict = decide.decide(draft, beside, now=self.now, forgotten=gone, forced=forced)
            match verdict:
                case decide.Refused(tombstones.WasForgotten()):
                    self.saved[number] = Saved(memory, created=False, forgotten=True)
                case decide.Refused(error):
                    raise error
                case decide.Known(known):
                    self.saved[number] = Saved(known, created=False, duplicate=True)
                    self.wordings += [(known, draft.content)] if near and not draft.waits_for_review else []
                case decide.Update(known) if unchanged and known.key == draft.key:
                    self.saved[number] = Saved(known, created=False, duplicate=True)
                case decide.Update(known):
                    self.one_by_one[number] = Saved(known, created=False)
                    # Later drafts with this key are saved one by one, too, after this one.
                    there.key_owners[draft.key] = known
                case decide.Proposal():
                    self.one_by_one[number] = Saved(memory, created=False, pending=True)
                case decide.New(may_replace, previous_key_owner):
                    memory.may_replace = may_replace
                    self.saved[number] = Saved(memory, created=True)
                    self.new.append((memory, embedded))
                    if previous_key_owner is not None and memory.deleted_at is None:
                        self.moved_keys.append((previous_key_owner, memory))
                    there.add(memory)

    def _load(self, memories: list[Memory], *, near: bool, up_to: int | None) -> _Loaded:
        live = decide.rows_beside(self.rows[0][1], self.now)
        hashes = {memory.content_hash for memory in memories}
        neighbours = self._neighbours(memories) if near else {}
        pks = {pk for pairs in neighbours.values() for pk, _ in pairs if pk > 0}
        there = _Loaded(neighbours, {memory.pk: memory for memory in live.filter(pk__in=pks)}, up_to)
        older = live if up_to is None else live.filter(pk__lte=up_to)
        for memory in older.filter(content_hash__in=hashes).order_by("created_at", "pk"):
            there.equals.setdefault(memory.content_hash, []).append(memory)
        keys = {memory.key for memory in memories if memory.key}
        there.key_owners = {memory.key: memory for memory in decide.key_owners_beside(self.rows[0][1], keys)}
        return there

    def _neighbours(self, memories: list[Memory]) -> dict[int, list[tuple[int, float]]]:
        """Return the nearest memories by each new memory's primary key, as (primary key, cosine), best first.

        The primary key of another memory of this batch is negated.
        """
        with_vector = [
            (memory, embedded)
            for memory, (_, _, embedded) in zip(memories, self.rows, strict=True)
            if embedded is not None
        ]
        if not with_vector:
            return {}
        least = min(settings.DEDUPE_THRESHOLD, decide.LEAST)
        ids = [memory.pk for memory, _ in with_vector]
        vectors = np.stack([embedded.statement for _, embedded in with_vector])
        neighbours: dict[int, list[tuple[int, float]]] = {}
        within = np.tril(likeness(vectors, vectors), k=-1)  # compare with earlier drafts only
        for row, other in np.argwhere(within >= least).tolist():
            neighbours.setdefault(ids[row], []).append((-ids[other], float(within[row, other])))
        for pks, stored in stored_vectors(
            MEMORY, memories[0].place, with_vector[0][1].model, vectors.shape[1]
        ):
            cosines = likeness(vectors, stored)
            for row, other in np.argwhere(cosines >= least).tolist():
                neighbours.setdefault(ids[row], []).append((int(pks[other]), float(cosines[row, other])))
        for pairs in neighbours.values():
            pairs.sort(key=lambda pair: -pair[1])
            # Spare ones, because some prove to be duplicates themselves, or expired.
            del pairs[5 * decide.NEAREST :]
        return neighbours

    def store(self, by: User | None) -> None:
        if self.new:
            self._store_new(by)
        changing.record_wordings(self.wordings, by=by, now=self.now)

    def _store_new(self, by: User | None) -> None:
        memories = [memory for memory, _ in self.new]
        for billed_user, number in Counter(by or memory.author for memory in memories).items():
            require_room("memories", billed_user, number)
        self._link(memories)
        moved = self._move_keys(by)
        insert_rows(memories)
        self._record_replaced(memories)
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
            enforce_limit(memories[0])

    def _move_keys(self, by: User | None) -> list[Revision]:
        """Take keys away from their previous owners. Return the revisions of those that are not stored yet."""
        moved = []
        for previous_key_owner, memory in self.moved_keys:
            if previous_key_owner.pk in self.past_of:
                before = changing.key_moved_to(memory, previous_key_owner)
                note = {"action": RevisionAction.KEY, "before": before}
                moved.append(Revision(memory=previous_key_owner, by=by, at=self.now, **note))
                previous_key_owner.key = None
            else:
                changing.move_key(previous_key_owner, to=memory, by=by, now=self.now)
        return moved

    def _link(self, memories: Sequence[Memory]) -> None:
        """Set ``may_replace`` of imported memories to the older memories that the import names by public id."""
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

    def _record_replaced(self, memories: Sequence[Memory]) -> None:
        """Set ``replaced_by`` on ended memories of the scope that, by the import, a memory of this batch replaced."""
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
            yield Revision(memory=memory, **vars(revision) | {"before": dict(revision.before or {})})

    def _store_vectors(self) -> None:
        live = [(memory, embedded) for memory, embedded in self.new if memory.deleted_at is None]
        later = [memory.pk for memory, embedded in live if embedded is None]
        by_model: dict[tuple[str, int, bool], list[tuple[Memory, Embedded]]] = {}
        for memory, embedded in live:
            if embedded is not None:
                group = (embedded.model, len(embedded.search), embedded.search is embedded.statement)
                by_model.setdefault(group, []).append((memory, embedded))
        for (model, _, alone), pairs in by_model.items():
            if not put_vectors(model, []):  # recall changed to another model in between
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


def foresee(
    drafts: Sequence[Draft],
    vectors: Sequence[Embedded | None],
    pasts: Sequence[Past] | None = None,
    *,
    by: User | None,
    now: datetime,
    near: bool = True,
    kept_up_to: int | None = None,
) -> list[Saved]:
    """Return the results that ``save_cleaned`` would have, without storing anything. New memories have no row."""
    owners = {draft.owner.pk: draft.owner for draft in drafts if draft.owner}
    homes = {pk: default_workspace(owner) for pk, owner in owners.items()}
    drafts = [replace(draft, workspace=homes[draft.owner.pk]) if draft.owner else draft for draft in drafts]
    results: dict[int, Saved] = {}
    for batch in _batches(drafts, vectors, pasts, now):
        batch.sort_out("key", by=by, near=near, kept_up_to=kept_up_to)
        results |= batch.saved | batch.one_by_one
    return [results[number] for number in range(len(drafts))]


def save_cleaned(
    drafts: Sequence[Draft],
    vectors: Sequence[Embedded | None],
    pasts: Sequence[Past] | None = None,
    *,
    by: User | None,
    now: datetime,
    dedupe: str = "key",
    near: bool = True,
    kept_up_to: int | None = None,
) -> list[Saved]:
    """Save cleaned drafts with known vectors, each as ``gate.save_embedded`` does. Return their results, in order.

    A permanently forgotten text is never stored, not even for a person, because nobody checks each line of a file
    before importing it; its result has ``forgotten``. Personal drafts must be in their owner's default workspace. A
    vector of None is computed in the background. Calls no model, so it may run inside a transaction. ``near`` and
    ``kept_up_to``: see ``Batch.sort_out``.
    """
    results: dict[int, Saved] = {}
    with changing.one_owner_per_key():
        for workspace in sorted({draft.workspace for draft in drafts}, key=lambda instance: instance.pk):
            decide.one_writer_at_a_time(workspace)
        for batch in _batches(drafts, vectors, pasts, now):
            batch.sort_out(dedupe, by=by, near=near, kept_up_to=kept_up_to)
            batch.store(by)
            results |= batch.saved
            for number in batch.one_by_one:
                results[number] = gate.save_embedded(
                    drafts[number],
                    vectors[number],
                    by=by,
                    now=now,
                    dedupe=dedupe,
                    near=near,
                    before=decide.MOST_KEYS if kept_up_to is None else kept_up_to + 1,
                )
    return [results[number] for number in range(len(drafts))]


def _batches(
    drafts: Sequence[Draft],
    vectors: Sequence[Embedded | None],
    pasts: Sequence[Past] | None,
    now: datetime,
) -> Iterator[Batch]:
    """Yield the drafts in a batch per scope. Only drafts of one scope can be duplicates of each other."""
    scopes = defaultdict[int, list[int]](list)
    for number, draft in enumerate(drafts):
        scopes[draft.place].append(number)
    for numbers in scopes.values():
        yield Batch(numbers, drafts, vectors, pasts, now)
