"""Forgetting for good: rows, vectors, words, history and every copy of a text go; a keyed hash of it stays.

Messages belong to chats: ``chat.chats.forgetting`` removes them and calls ``forget_source`` here. A background job
that still holds the text finds its row gone, or is stopped at the gate by the tombstone. People decide here about the
noted copies of others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from memories.access import get_memory
from memories.forgetting import copies
from memories.forgetting.copies import BATCH, Wanted, drop_excerpts, drop_noted, named, own_items, parts
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
from memories.models.memory import MemoryQuerySet, place_of
from memories.recalling.recall import MAX_LIMIT, recall
from memories.writing import tombstones
from memories.writing.announcing import announce, announce_many
from memories.writing.similar import one_writer_at_a_time
from memoryhub.errors import Forbidden, NotFound
from workspaces.access import role_in
from workspaces.actions.removal import Counts, counted, delete_rows, lines_of, purge_deleted
from workspaces.audit import MOST_WORDS, Verb, Word, record
from workspaces.index.embedding import drop_vectors
from workspaces.index.words import unindex_words
from workspaces.models import Agent, CommonWord, Membership, PlaceStatistics, Role, User, Workspace
from workspaces.policy import Reach

LOOKED_UP = 5  # texts that are searched for again afterwards


@dataclass(frozen=True)
class Report:
    """The rows removed for good, and the memories that a new search still finds saying the same (``found``)."""

    removed: Counts = field(default_factory=Counter)
    tombstones: int = 0
    found: int = 0
    others: int = 0  # memories about something else that the same words bring

    @property
    def lines(self) -> list[tuple[str, int]]:
        """In words of the pages, the most first."""
        return lines_of(self.removed)


@dataclass
class Gone:
    removed: Counts = field(default_factory=Counter)
    tombstones: int = 0
    memories: list[Memory] = field(default_factory=list)  # as they were
    wanted: Wanted = field(default_factory=Wanted)  # what they said


def require_right(memory: Memory, by: User) -> None:
    """Require the right to forget for good, which takes more than writing: being author, owner of a personal memory, or
    workspace owner.
    """
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
    """Remove these for good, and with them what else says the same in their places. The caller knows the right.

    ``among``: what ``by`` may forget, where that is not what memberships say; nothing else is touched or counted.
    Costs a look through the workspaces' excerpts and histories, and for a member a few recalls at the end.
    """
    with transaction.atomic():
        rows = Memory.objects.filter(pk__in=[memory.pk for memory in memories])
        gone = _forget(rows, by=by, among=among, now=now)
        _note(gone, by)
    return _report(gone, by, now)


def forget_source(
    noted_under: Sequence[str], chat_id: str, *, memories: QuerySet[Memory], by: User | None, now: datetime
) -> Gone:
    """Remove what is kept here of a chat that goes for good, and those ``memories``; others only lose their excerpt,
    the earlier ones of their histories, too. What is not ``by``'s to forget is not counted.

    ``noted_under``: the public ids of its messages, tool calls and summaries, under which extractions are noted.
    Part of the transaction that removed the messages: what mines them at this moment is waited for, or stores nothing.
    """
    removed: Counts = Counter()
    for part in parts([chat_id, *noted_under]):
        removed += counted(Extraction.objects.filter(message_id__in=part).delete()[1])
        items = ReceiptItem.objects.filter(receipt__message_id__in=part)
        own = own_items(items, by)
        removed += _counting(Receipt.objects.filter(message_id__in=part).delete()[1], own)
        MemorySource.objects.filter(source_id__in=part).delete()
    gone = _forget(memories, by=by, among=None, now=now)
    kept = Memory.objects.filter(source_chat_id=chat_id).order_by("pk").select_for_update(of=("self",))
    ids = list(kept.values_list("pk", flat=True))
    theirs = set(_forgettable(by).filter(pk__in=ids).values_list("pk", flat=True))
    gone.removed += removed + named("source excerpts", drop_excerpts([pk for pk in ids if pk in theirs]))
    drop_excerpts(ids)
    copies.drop_earlier_excerpts(ids)
    Memory.objects.filter(pk__in=ids).update(source_chat_id="", source_message_id="")
    return gone


def report_on(gone: Gone, removed: Counts, *, by: User | None, now: datetime) -> Report:
    """The report of an act of the room above: what it removed itself, and what ``forget_source`` did."""
    gone.removed += removed
    return _report(gone, by, now)


def purge(*, now: datetime, seconds: float) -> int:
    """Remove what was deleted softly ``MEMORYHUB_PURGE_AFTER_DAYS`` ago, for about so many seconds; how many.

    No tombstone: nobody said that it must never be noticed again.
    """
    rows = Memory.objects.exclude(review=Review.PENDING)
    return purge_deleted(rows, _remove, "memories", now=now, seconds=seconds, most=BATCH)


def empty_places(*, workspace_ids: list[int], user_id: int | None, by: User) -> Counts:
    """The room of ``workspaces.actions.removal``: memories of workspaces and a person that go, a batch at a time."""
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
        removed += _remove(ids, by)
    for kept in (Tombstone, CommonWord, PlaceStatistics):
        removed += delete_rows(kept, "place = ANY(%(places)s)", {"places": places})
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
    equals = _equals(locked)
    theirs = set(among.filter(pk__in=equals).values_list("pk", flat=True))
    locked += _lock(Memory.objects.filter(pk__in=theirs))
    ids = [memory.pk for memory in locked]
    texts = _texts(locked)
    stones = tombstones.put_up(texts, now=now)
    _leave_notes(locked, [pk for pk in equals if pk not in theirs], among, now)
    removed: Counts = Counter()
    for part in parts(ids):
        removed += _remove(part, by)
    wanted = _wanted(locked, texts)
    removed += copies.drop(wanted, _beside(locked, by).filter(_is_among(among)), by)
    announce_many(locked, "forget")
    return Gone(removed, stones, locked, wanted)


def _texts(memories: Sequence[Memory]) -> list[tuple[int, str]]:
    """Return the present and past texts of these memories, with their scope."""
    texts = [(memory.place, text) for memory in memories for text in (memory.content, memory.summary) if text]
    places = {memory.pk: memory.place for memory in memories}
    for pk, before in Revision.objects.filter(memory_id__in=places).values_list("memory_id", "before"):
        texts += [(places[pk], text) for name in ("content", "summary") if (text := before.get(name))]
    return texts


def _is_among(among: QuerySet[Memory]) -> Exists:
    """As a join: among a million rows a list of keys would be gone through for each."""
    return Exists(among.filter(pk=OuterRef("pk")))


def _beside(memories: Sequence[Memory], by: User | None) -> QuerySet[Memory]:
    """Return the memories that may hold copies: in the same workspaces, and ``by``'s personal ones, which may come from
    chats there.
    """
    return Memory.objects.filter(
        Q(workspace__in={memory.workspace_id for memory in memories}) | Q(owner=by, owner__isnull=False)
    )


def _wanted(memories: Sequence[Memory], texts: Iterable[tuple[int, str]]) -> Wanted:
    said: dict[str, None] = {}
    shared: dict[int, set[str]] = {}
    for place, text in texts:
        said[text] = None
        if place > 0:
            shared.setdefault(place, set()).add(text)
    chats = {memory.source_chat_id for memory in memories}
    messages = {memory.source_message_id for memory in memories if memory.source_message_id}
    return Wanted(list(said), chats, len(memories), shared, messages)


def _leave_notes(
    memories: Sequence[Memory], equals: Collection[int], among: QuerySet[Memory], now: datetime
) -> None:
    """For the members who could read what goes, of copies that are theirs and not ``among`` the actor's.

    Viewers read what is live, with its history; who may write brings back the rest. Of personal memories nobody hears:
    else who plants guesses in histories of their own would learn who forgets them.
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
            copies.note(_wanted(read, _texts(read)), others, equals, now=now)
            if len(live) == len(here):
                break


def _note(gone: Gone, by: User | None) -> None:
    """In the audit log: one event a workspace, by ids; of personal ones one that no workspace's owners see."""
    by_place: dict[Workspace | None, list[str]] = {}
    for memory in gone.memories:
        by_place.setdefault(memory.workspace if memory.owner_id is None else None, []).append(
            memory.public_id
        )
    for workspace, ids in by_place.items():
        details: dict[str, Word | list[Word]] = {"count": len(ids)}
        if len(ids) > 1:
            details["ids"] = [*sorted(ids)[:MOST_WORDS]]
        record(
            Verb.MEMORY_FORGOTTEN,
            by=by,
            workspace=workspace,
            target=ids[0] if len(ids) == 1 else "",
            details=details,
        )


def _lock(rows: QuerySet[Memory]) -> list[Memory]:
    """Lock these rows until commit, after the writers of their workspaces, so that nobody saves the same text in
    between.
    """
    for workspace in Workspace.objects.filter(pk__in=rows.order_by().values("workspace")).order_by("pk"):
        one_writer_at_a_time(workspace)
    locked = rows.order_by("pk").select_for_update(of=("self",)).select_related("workspace", "owner")
    return list(locked.defer("search", "source_excerpt"))


def _equals(memories: Sequence[Memory]) -> list[int]:
    """Return memories with an equal text in the same scope: softly forgotten, or saved twice by the same person."""
    said = {(memory.place, memory.content_hash) for memory in memories}
    equals = Memory.objects.filter(
        Q(deleted_at__isnull=False) | Q(author_id__in={memory.author_id for memory in memories}),
        workspace_id__in={memory.workspace_id for memory in memories},
        content_hash__in={memory.content_hash for memory in memories},
    ).exclude(pk__in=[memory.pk for memory in memories])
    found = equals.only("workspace", "owner", "agent", "content_hash")
    return [memory.pk for memory in found if (memory.place, memory.content_hash) in said]


def _remove(ids: Sequence[int], by: User | None = None) -> Counts:
    """Delete rows that are locked, with everything that hangs on them."""
    words = unindex_words(MEMORIES, ids)
    vectors = drop_vectors(MEMORIES, ids)
    own = own_items(ReceiptItem.objects.filter(memory_id__in=ids), by)
    removed = named("memory words", words) + named("memory embeddings", vectors)
    return removed + _counting(Memory.objects.filter(pk__in=ids).delete()[1], own)


def _counting(by_label: dict[str, int], own: int) -> Counts:
    """Return the counts of ``delete()``, without receipts under answers to others and notes left for them."""
    removed = counted(by_label)
    for name in ("receipt items", "kept copies"):
        removed.pop(name, None)
    return removed + named("receipt items", own)


def _report(gone: Gone, by: User | None, now: datetime) -> Report:
    """Report after the commit, and remove what other apps keep in files."""
    if by is not None:
        gone.removed += copies.drop_elsewhere(gone.wanted, by)
    found = others = 0
    for memory in gone.memories[:LOOKED_UP]:
        workspace, text = memory.workspace, memory.content
        if by is None or role_in(by, workspace) is None:  # the system, and staff that forgets in the admin
            continue
        found_now = recall(text, workspace, by, limit=MAX_LIMIT, now=now, reach=Reach.here(workspace))
        recalled = [item.memory for item in found_now.items]
        same = sum(tombstones.essence(memory.content) == tombstones.essence(text) for memory in recalled)
        found, others = found + same, others + len(recalled) - same
    return Report(gone.removed, gone.tombstones, found, others)


def noted(workspace: Workspace, user: User) -> MemoryQuerySet:
    """The memories here that have such copies and are this person's to forget, deleted ones too; oldest first."""
    restored = Q(kind=CopyKind.MEMORY, memory__deleted_at=None)
    notes = KeptCopy.objects.filter(memory=OuterRef("pk")).exclude(restored)
    rows = Memory.objects.visible_to(user).forgettable_by(user).filter(Exists(notes), workspace=workspace)
    return rows.prefetch_related("kept_copies").order_by("created_at", "pk")


def get_noted(user: User, public_id: str, *, workspace: Workspace) -> Memory:
    """NotFound outside what this person may see or without such copies, Forbidden if it is not theirs to forget."""
    memory = get_memory(user, public_id, workspace=workspace, need=Role.EDITOR, include_deleted=True)
    require_right(memory, user)
    if not memory.kept_copies.exists():
        raise NotFound(_("This memory has no noted copies, or someone has already decided about them."))
    return memory


def forget_noted(memory: Memory, *, by: User, now: datetime) -> Report:
    """Remove the copies for good; of a deleted memory that says so itself, the memory. ``by`` has the right."""
    with transaction.atomic():
        locked = Memory.objects.select_for_update(of=("self",)).filter(pk=memory.pk).first()
        if locked is None:
            raise NotFound(_("This memory has since been forgotten."))
        says_so = locked.kept_copies.filter(kind=CopyKind.MEMORY).exists() and locked.deleted_at is not None
        if not says_so:
            removed = drop_noted(locked, by)
            place = memory.workspace if memory.owner_id is None else None
            details = {name.replace(" ", "_"): number for name, number in removed.items()}
            record(Verb.MEMORY_FORGOTTEN, by=by, workspace=place, target=memory.public_id, details=details)
            announce(memory, "edit")
            return Report(removed)
    return forget_memories([memory], by=by, now=now)


def keep_noted(memory: Memory) -> None:
    """They stay, and nothing is noted of them any more. Twice does nothing more."""
    KeptCopy.objects.filter(memory=memory).delete()
