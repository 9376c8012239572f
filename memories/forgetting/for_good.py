"""Permanent forgetting: memories are deleted with their vectors, indexed words, history and copies of their text.

Only a keyed hash of each text stays (``memories.writing.tombstones``), so that no program saves the text again.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.access import get_memory
from memories.forgetting import remaining_copies
from memories.forgetting.remaining_copies import (
    BATCH,
    Wanted,
    drop_excerpts,
    drop_noted,
    named,
    own_items,
    parts,
)
from memories.indexing import MEMORIES
from memories.models import (
    CopyKind,
    Extraction,
    KeptCopy,
    Memory,
    MemorySource,
    Receipt,
    ReceiptItem,
    Review,
    Revision,
    Tombstone,
)
from memories.models.memory import MemoryQuerySet, RevisionAction, place_of
from memories.recalling.recall import MAX_LIMIT, recall
from memories.writing import tombstones
from memories.writing.changing import announce, announce_many, audit, locked_row
from memories.writing.decide import one_writer_at_a_time
from memories.writing.drafts import content_hash
from memoryhub.errors import Forbidden, NotFound
from workspaces.access import role_in
from workspaces.actions.purging import Counts, counted, delete_rows, lines_of, purge_deleted
from workspaces.audit import MOST_WORDS, Verb, Word, record
from workspaces.data_policy import DataPolicy
from workspaces.index.embedding import drop_vectors
from workspaces.index.hybrid_search import unindex_words
from workspaces.models import Agent, CommonWord, Membership, PlaceStatistics, Role, User, Workspace

LOOKED_UP = 5  # forgotten texts for which recall is run again as a check


@dataclass(frozen=True)
class Report:
    """The counts of permanently removed rows, and of memories that recall finds afterwards."""

    removed: Counts = field(default_factory=Counter)
    tombstones: int = 0
    found: int = 0  # recalled memories that still have a removed text
    others: int = 0  # recalled memories that say something else

    @property
    def lines(self) -> list[tuple[str, int]]:
        return lines_of(self.removed)


@dataclass
class Gone:
    removed: Counts = field(default_factory=Counter)
    tombstones: int = 0
    memories: list[Memory] = field(default_factory=list)  # as they were before
    wanted: Wanted = field(default_factory=Wanted)  # their texts


def require_right(memory: Memory, by: User) -> None:
    """Raise Forbidden unless this person may permanently forget the memory."""
    if not may_forget(memory, by, role_in(by, memory.workspace)):
        raise Forbidden(_("Only its author or an owner of the workspace can forget a memory for good."))


def may_forget(memory: Memory, by: User, role: str | None) -> bool:
    if memory.owner_id is not None:
        return memory.owner_id == by.pk
    if role is None or not Role(role).allows(Role.EDITOR):
        return False
    return role == Role.OWNER or memory.author_id == by.pk


def forget_memories(
    memories: Collection[Memory], *, by: User | None, now: datetime, among: QuerySet[Memory] | None = None
) -> Report:
    """Permanently remove these memories, and others with an equal text in the same scopes.

    The caller checks that ``by`` may forget these memories. Other memories are changed only if they are in ``among``;
    the default is those that ``by`` may permanently forget. Costs a search through the excerpts and histories.
    """
    with transaction.atomic():
        rows = Memory.objects.filter(pk__in=[memory.pk for memory in memories])
        gone = _forget(rows, by=by, among=among, now=now)
        _audit(gone, by)
    return report_on(gone, by=by, now=now)


def forget_source(
    item_ids: Sequence[str], chat_id: str, *, memories: QuerySet[Memory], by: User | None, now: datetime
) -> Gone:
    """Remove what memories store about a permanently deleted chat. Return the counts, for ``report_on``.

    The given ``memories`` are permanently removed. Other memories from the chat stay without their excerpts and source
    ids. Extractions and receipts of ``item_ids``, the public ids of messages, tool calls and summaries, are deleted.
    What ``by`` may not forget is removed as well, but not counted. Call this in the transaction that deletes the
    messages, so that a running extraction stores nothing afterwards.
    """
    removed: Counts = Counter()
    for part in parts([chat_id, *item_ids]):
        removed += counted(Extraction.objects.filter(message_id__in=part).delete()[1])
        items = ReceiptItem.objects.filter(receipt__message_id__in=part)
        own = own_items(items, by)
        removed += _with_own_items(Receipt.objects.filter(message_id__in=part).delete()[1], own)
        MemorySource.objects.filter(source_id__in=part).delete()
    gone = _forget(memories, by=by, among=None, now=now)
    others = Memory.objects.filter(source_chat_id=chat_id).order_by("pk").select_for_update(of=("self",))
    ids = list(others.values_list("pk", flat=True))
    theirs = set(_forgettable(by).filter(pk__in=ids).values_list("pk", flat=True))
    gone.removed += removed + named("source excerpts", drop_excerpts([pk for pk in ids if pk in theirs]))
    drop_excerpts(ids)
    remaining_copies.drop_earlier_excerpts(ids)
    Memory.objects.filter(pk__in=ids).update(source_chat_id="", source_message_id="")
    return gone


def purge(*, now: datetime, seconds: float) -> int:
    """Permanently remove memories deleted MEMORYHUB_PURGE_AFTER_DAYS ago, without tombstones. Return their number."""
    rows = Memory.objects.exclude(review=Review.PENDING)
    return purge_deleted(rows, _delete_rows, "memories", now=now, seconds=seconds, most=BATCH)


def remove_memories(*, workspace_ids: list[int], user_id: int | None, by: User) -> Counts:
    """Permanently remove all memories of workspaces and of a person that are being deleted. Return the counts."""
    for of_turns in (Receipt, Extraction):
        of_turns.objects.filter(workspace_id__in=workspace_ids).exclude(user=by).delete()
    places = workspace_ids + [
        place_of(0, agent_id=pk)
        for pk in Agent.objects.filter(workspace_id__in=workspace_ids).values_list("pk", flat=True)
    ]
    rows = Memory.objects.filter(Q(workspace_id__in=workspace_ids) | Q(owner_id=user_id, owner__isnull=False))
    if user_id is not None:
        places.append(-user_id)
    removed: Counts = Counter()
    while ids := list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH]):
        removed += _delete_rows(ids, by)
    for model in (Tombstone, CommonWord, PlaceStatistics):
        removed += delete_rows(model, "place = ANY(%(places)s)", {"places": places})
    return removed


def _forgettable(by: User | None) -> QuerySet[Memory]:
    return Memory.objects.all() if by is None else Memory.objects.forgettable_by(by)


def _forget(
    rows: QuerySet[Memory], *, by: User | None, among: QuerySet[Memory] | None, now: datetime
) -> Gone:
    locked = _lock(rows)
    if not locked:
        return Gone()
    among = _forgettable(by) if among is None else among
    equals = _find_equal(locked)
    theirs = set(among.filter(pk__in=equals).values_list("pk", flat=True))
    locked += _lock(Memory.objects.filter(pk__in=theirs))
    ids = [memory.pk for memory in locked]
    texts = _texts(locked)
    stones = tombstones.add_tombstones(texts, now=now)
    _leave_notes(locked, [pk for pk in equals if pk not in theirs], among, now)
    removed: Counts = Counter()
    for part in parts(ids):
        removed += _delete_rows(part, by)
    wanted = _wanted(locked, texts)
    # A personal memory of the person may come from a chat in one of these workspaces.
    here = Q(workspace__in={memory.workspace_id for memory in locked}) | Q(owner=by, owner__isnull=False)
    removed += remaining_copies.drop(wanted, Memory.objects.filter(here, _is_among(among)), by)
    announce_many(locked, "forget")
    return Gone(removed, stones, locked, wanted)


def _texts(memories: Sequence[Memory]) -> list[tuple[int, str]]:
    """Return the current and past texts of these memories as (scope number, text)."""
    texts = [(memory.place, text) for memory in memories for text in (memory.content, memory.summary) if text]
    places = {memory.pk: memory.place for memory in memories}
    for pk, before in Revision.objects.filter(memory_id__in=places).values_list("memory_id", "before"):
        texts += [(places[pk], text) for name in ("content", "summary") if (text := before.get(name))]
    return texts


def _is_among(among: QuerySet[Memory]) -> Exists:
    """Return the condition that a row is in ``among``, as an EXISTS subquery, which Postgres runs as a join."""
    return Exists(among.filter(pk=OuterRef("pk")))


def _wanted(memories: Sequence[Memory], texts: Iterable[tuple[int, str]]) -> Wanted:
    unique_texts: dict[str, None] = {}
    shared: dict[int, set[str]] = {}
    for place, text in texts:
        unique_texts[text] = None
        if place > 0:
            shared.setdefault(place, set()).add(text)
    chats = {memory.source_chat_id for memory in memories}
    messages = {memory.source_message_id for memory in memories if memory.source_message_id}
    return Wanted(list(unique_texts), chats, len(memories), shared, messages)


def _leave_notes(
    memories: Sequence[Memory], equals: Collection[int], among: QuerySet[Memory], now: datetime
) -> None:
    """Store ``KeptCopy`` notes about copies of shared memories' texts in memories outside ``among``.

    Copies are searched in shared memories of the workspace, and in personal ones of members who could read the text:
    viewers could read live memories with their history, editors also deleted ones. ``equals`` are the primary keys of
    memories whose whole text is a copy.

    Personal memories leave no notes. Otherwise, a person could write guesses into the history of an own memory, and
    learn from the notes who forgets these texts.
    """
    shared = [memory for memory in memories if memory.owner_id is None]
    for workspace in sorted({memory.workspace_id for memory in shared}):
        here = [memory for memory in shared if memory.workspace_id == workspace]
        live = [memory for memory in here if memory.deleted_at is None and not memory.has_expired(now)]
        members = Membership.objects.filter(workspace=workspace)
        writers = members.exclude(role=Role.VIEWER)
        for read, readers in ((live, members), (here, writers)):
            theirs = Q(owner__in=readers.values("user"))
            others = Memory.objects.filter(Q(workspace=workspace, owner=None) | theirs, ~_is_among(among))
            remaining_copies.store_notes(_wanted(read, _texts(read)), others, equals, now=now)
            if len(live) == len(here):
                break


def _audit(gone: Gone, by: User | None) -> None:
    """Record one audit event per workspace, with ids only. The event for personal memories has no workspace."""
    by_place: dict[Workspace | None, list[str]] = {}
    for memory in gone.memories:
        place = memory.workspace if memory.owner_id is None else None
        by_place.setdefault(place, []).append(memory.public_id)
    for workspace, ids in by_place.items():
        details: dict[str, Word | list[Word]] = {"count": len(ids)}
        if len(ids) > 1:
            details["ids"] = [*sorted(ids)[:MOST_WORDS]]
        target = ids[0] if len(ids) == 1 else ""
        record(Verb.MEMORY_FORGOTTEN, by=by, workspace=workspace, target=target, details=details)


def _lock(rows: QuerySet[Memory]) -> list[Memory]:
    """Lock these memories and their workspaces until commit, so that no equal text is saved. Return the memories."""
    for workspace in Workspace.objects.filter(pk__in=rows.order_by().values("workspace")).order_by("pk"):
        one_writer_at_a_time(workspace)
    locked = rows.order_by("pk").select_for_update(of=("self",)).select_related("workspace", "owner")
    return list(locked.defer("search", "source_excerpt"))


def _find_equal(memories: Sequence[Memory]) -> list[int]:
    """Return the primary keys of other memories that must be removed together with these.

    - Memories with an equal text in the same scope, if they are soft-deleted or have the same author as one of these.
    - Soft-deleted memories in the same scope whose text equals an earlier text of one of these.
    - Soft-deleted memories that were merged into one of these, when their author moved them to another scope.
    """
    authors = {memory.author_id for memory in memories}
    current_hashes = {(memory.place, memory.content_hash) for memory in memories}
    once_said = current_hashes | {(place, content_hash(text)) for place, text in _texts(memories)}
    candidates = Memory.objects.filter(
        Q(deleted_at__isnull=False) | Q(author_id__in=authors),
        workspace_id__in={memory.workspace_id for memory in memories},
        content_hash__in={text for __, text in once_said},
    ).exclude(pk__in=[memory.pk for memory in memories])
    equals = [
        memory.pk
        for memory in candidates.only("workspace", "owner", "agent", "content_hash", "deleted_at")
        if (memory.place, memory.content_hash) in (once_said if memory.deleted_at else current_hashes)
    ]
    # A memory whose author changed who sees it was merged into these from another scope.
    merges = Revision.objects.filter(
        action=RevisionAction.MERGE,
        before__into__in=[memory.public_id for memory in memories],
        by__in=authors,
    )
    moved = Memory.objects.filter(
        pk__in=set(merges.values_list("memory_id", flat=True)),
        author_id__in=authors,
        deleted_at__isnull=False,
    )
    return [*moved.values_list("pk", flat=True), *equals]


def _delete_rows(ids: Sequence[int], by: User | None = None) -> Counts:
    """Permanently delete locked memories with all dependent rows. Return the counts."""
    words = unindex_words(MEMORIES, ids)
    vectors = drop_vectors(MEMORIES, ids)
    own = own_items(ReceiptItem.objects.filter(memory_id__in=ids), by)
    removed = named("memory words", words) + named("memory embeddings", vectors)
    return removed + _with_own_items(Memory.objects.filter(pk__in=ids).delete()[1], own)


def _with_own_items(by_label: dict[str, int], own: int) -> Counts:
    """Convert the result of ``delete()`` to the counts to report: of receipt items the ``own`` ones, and no notes."""
    removed = counted(by_label)
    for name in ("receipt items", "kept copies"):
        removed.pop(name, None)
    return removed + named("receipt items", own)


def report_on(gone: Gone, *, by: User | None, now: datetime) -> Report:
    """Remove the copies in other apps, and return the report. Call this after the commit.

    For a member of the workspace, recall is run for up to LOOKED_UP removed texts, to see whether it finds them.
    """
    if by is not None:
        gone.removed += remaining_copies.drop_in_other_apps(gone.wanted, by)
    match_count = others = 0
    for memory in gone.memories[:LOOKED_UP]:
        workspace, text = memory.workspace, memory.content
        if by is None or role_in(by, workspace) is None:  # the system, or staff who are no members
            continue
        found_now = recall(text, workspace, by, limit=MAX_LIMIT, now=now, policy=DataPolicy.here(workspace))
        recalled = [item.memory for item in found_now.items]
        same = sum(tombstones.essence(memory.content) == tombstones.essence(text) for memory in recalled)
        match_count, others = match_count + same, others + len(recalled) - same
    return Report(gone.removed, gone.tombstones, match_count, others)


def with_noted_copies(workspace: Workspace, user: User) -> MemoryQuerySet:
    """Return memories with noted copies that this person may forget for good, also deleted ones, oldest first."""
    restored = Q(kind=CopyKind.MEMORY, memory__deleted_at=None)
    notes = KeptCopy.objects.filter(memory=OuterRef("pk")).exclude(restored)
    rows = Memory.objects.visible_to(user).forgettable_by(user).filter(Exists(notes), workspace=workspace)
    return rows.prefetch_related("kept_copies").order_by("created_at", "pk")


def get_noted(user: User, public_id: str, *, workspace: Workspace) -> Memory:
    """Return a memory that is or contains a noted copy of a forgotten text (``KeptCopy``), even if it is deleted.

    Raises NotFound if the user may not see it or it has no notes, and Forbidden if the user may not forget it for good.
    """
    memory = get_memory(user, public_id, workspace=workspace, need=Role.EDITOR, include_deleted=True)
    require_right(memory, user)
    if not memory.kept_copies.exists():
        raise NotFound(_("This memory has no noted copies, or someone has already decided about them."))
    return memory


def forget_noted(memory: Memory, *, by: User, now: datetime) -> Report:
    """Remove a memory's noted copies, or the memory if it is deleted and itself one. Return the counts.

    The caller checks the right of ``by``. Raises NotFound if the memory is gone.
    """
    with transaction.atomic():
        locked = locked_row(memory)
        says_so = locked.kept_copies.filter(kind=CopyKind.MEMORY).exists() and locked.deleted_at is not None
        if not says_so:
            removed = drop_noted(locked, by)
            details: dict[str, Any] = {name.replace(" ", "_"): number for name, number in removed.items()}
            audit(Verb.MEMORY_FORGOTTEN, memory, by, **details)
            announce(memory, "edit")
            return Report(removed)
    return forget_memories([memory], by=by, now=now)


def keep_noted(memory: Memory) -> None:
    """Keep the copies of forgotten texts in a memory: delete the notes about them."""
    KeptCopy.objects.filter(memory=memory).delete()


def forget_again(newer: psycopg.Connection[Any], say: Callable[[str], None]) -> None:
    """After a restore from a backup, permanently remove the memories that were forgotten since the backup.

    ``newer`` is a connection to the database before the restore, from which tombstones are copied. Memories newer than
    their tombstone stay, because a person saved them again. ``say`` prints the result.
    """
    noted = newer.execute("SELECT place, digest, created_at FROM memories_tombstone").fetchall()
    known = set(Tombstone.objects.values_list("place", "digest"))
    missed = {(place, digest): at for place, digest, at in noted if (place, digest) not in known}
    Tombstone.objects.bulk_create(
        [Tombstone(place=place, digest=digest, created_at=at) for (place, digest), at in missed.items()],
        batch_size=BATCH,
    )
    places = {place for place, _ in missed}
    rows = Memory.objects.only("workspace", "owner", "agent", "content", "summary", "created_at")
    memories = [
        memory
        for memory in (rows.iterator(chunk_size=BATCH) if places else ())
        if memory.place in places
        and any(
            missed.get((memory.place, tombstones.digest(text)), memory.created_at) > memory.created_at
            for text in (memory.content, memory.summary)
            if text
        )
    ]
    for start in range(0, len(memories), BATCH):
        forget_memories(memories[start : start + BATCH], by=None, now=timezone.now())
    say(f"Texts forgotten since: {len(missed)}; memories removed again: {len(memories)}")
