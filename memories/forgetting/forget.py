"""Forgetting for good: rows, vectors, words, history and every copy of a text go; a keyed hash of it stays.

What is said in chats is the chats' own: ``chat.chats.forgetting`` removes it, and calls ``forget_source``
here. Whatever a background job still has in its hands finds its row gone, or is stopped at the gate by the tombstone.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q, QuerySet

from memories.models import (
    Extraction,
    Memory,
    MemorySource,
    Receipt,
    ReceiptItem,
    Review,
    Revision,
    Tombstone,
)
from memories.models.memory import MEMORY, place_of
from memories.recalling.recall import MAX_LIMIT, recall
from memories.recalling.words import index_lexemes, unindex_words
from memories.writing import tombstones
from memories.writing.announcing import announce
from memories.writing.places import one_writer_at_a_time
from memoryhub.errors import Forbidden
from workspaces.access import role_in
from workspaces.actions.removal import Counts, counted, delete_rows
from workspaces.audit import MOST_WORDS, Verb, Word, record
from workspaces.models import Agent, CommonWord, PassageVector, PlaceStatistics, Role, User, Workspace

BATCH = 500
LOOKED_FOR = (
    20  # texts whose copies are looked for in a whole workspace; of more, only beside their own chats
)
LOOKED_UP = 5  # texts that are asked for again afterwards
LEAST_PHRASE = 8  # characters: what is shorter stands in many texts that are about something else

# What an excerpt lent to a vector goes with it: the statement's own takes its place.
_OWN_VECTOR = """
UPDATE workspaces_passagevector SET embedding = statement, statement = NULL
WHERE kind = 1 AND ref = ANY(%s) AND statement IS NOT NULL
"""


@dataclass(frozen=True)
class Report:
    """What an act removed for good, and what asking again brings: ``found`` memories that say the same still."""

    removed: Counts = field(default_factory=Counter)
    tombstones: int = 0
    found: int = 0
    others: int = 0  # memories about something else that the same words bring

    @property
    def lines(self) -> list[tuple[str, int]]:
        """The most first."""
        return self.removed.most_common()


@dataclass
class Gone:
    removed: Counts = field(default_factory=Counter)
    tombstones: int = 0
    memories: list[Memory] = field(default_factory=list)  # as they were


def require_right(memory: Memory, by: User) -> None:
    """What cannot be undone takes more than writing: its author, the owner of a personal one, or a workspace owner."""
    if not may_forget(memory, by, role_in(by, memory.workspace)):
        raise Forbidden("Only its author or an owner of the workspace can forget a memory for good.")


def may_forget(memory: Memory, by: User, role: str | None) -> bool:
    if memory.owner_id is not None:
        return memory.owner_id == by.pk
    if role is None or not Role(role).allows(Role.EDITOR):
        return False
    return role == Role.OWNER or memory.author_id == by.pk


def forget_memories(memories: Collection[Memory], *, by: User | None, now: datetime) -> Report:
    """Remove these for good, and with them what else says the same in their places. The caller knows the right.

    Costs a look through the workspaces' excerpts and histories, and for a member a few recalls at the end.
    """
    with transaction.atomic():
        gone = _forget(Memory.objects.filter(pk__in=[memory.pk for memory in memories]), now=now)
        _note(gone, by)
    return _report(gone, by, now)


def forget_source(
    noted_under: Sequence[str], chat_id: str, *, memories: QuerySet[Memory], now: datetime
) -> Gone:
    """Remove what is kept here of a chat that goes for good, and those ``memories``; others only lose their excerpt.

    ``noted_under``: the public ids of its messages, tool calls and summaries, under which extractions are noted.
    Part of the transaction that removed the messages: what mines them at this moment is waited for, or stores nothing.
    """
    removed: Counts = Counter()
    for part in _parts([chat_id, *noted_under]):
        removed += counted(Extraction.objects.filter(message_id__in=part).delete()[1])
        removed += counted(Receipt.objects.filter(message_id__in=part).delete()[1])
        MemorySource.objects.filter(source_id__in=part).delete()
    gone = _forget(memories, now=now)
    kept = Memory.objects.filter(source_chat_id=chat_id).order_by("pk").select_for_update(of=("self",))
    ids = list(kept.values_list("pk", flat=True))
    gone.removed += removed + _named("source excerpts", drop_excerpts(ids))
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
    if not settings.PURGE_AFTER_DAYS:
        return 0
    before, deadline, number = now - timedelta(days=settings.PURGE_AFTER_DAYS), time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        with transaction.atomic():
            rows = Memory.objects.filter(deleted_at__lt=before).exclude(review=Review.PENDING)
            rows = rows.order_by("deleted_at")
            ids = list(rows.select_for_update(skip_locked=True).values_list("pk", flat=True)[:BATCH])
            _remove(ids)
        number += len(ids)
        if len(ids) < BATCH:
            break
    if number:
        record(Verb.PURGED, by=None, details={"memories": number})
    return number


def empty_places(*, workspace_ids: list[int], user_id: int | None) -> Counts:
    """The room of ``workspaces.actions.removal``: memories of workspaces and a person that go, a batch at a time."""
    places = workspace_ids + [
        place_of(0, agent_id=pk)
        for pk in Agent.objects.filter(workspace_id__in=workspace_ids).values_list("pk", flat=True)
    ]
    rows = Memory.objects.filter(Q(workspace_id__in=workspace_ids) | Q(owner_id=user_id, owner__isnull=False))
    if user_id is not None:
        places.append(-user_id)
    removed: Counts = Counter()
    while ids := list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH]):
        removed += _remove(ids)
    for table in (Tombstone, CommonWord, PlaceStatistics):
        removed += delete_rows(table, "place = ANY(%(places)s)", {"places": places})
    return removed


def _forget(rows: QuerySet[Memory], *, now: datetime) -> Gone:
    locked = _lock(rows)
    if not locked:
        return Gone()
    locked = _with_equals(locked)
    ids = [memory.pk for memory in locked]
    texts = [(memory.place, text) for memory in locked for text in (memory.content, memory.summary) if text]
    places = {memory.pk: memory.place for memory in locked}
    for pk, before in Revision.objects.filter(memory_id__in=ids).values_list("memory_id", "before"):
        texts += [(places[pk], text) for name in ("content", "summary") if (text := before.get(name))]
    stones = tombstones.put_up(texts, now=now)
    removed: Counts = Counter()
    for part in _parts(ids):
        removed += _remove(part)
    removed += _drop_copies({text for _, text in texts}, locked)
    for memory in {memory.place: memory for memory in locked}.values():
        announce(memory, "forget")
    return Gone(removed, stones, locked)


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
    """These rows, locked until commit, and before them their workspaces' writers: nobody saves the same meanwhile."""
    for workspace in Workspace.objects.filter(pk__in=rows.order_by().values("workspace")).order_by("pk"):
        one_writer_at_a_time(workspace)
    locked = rows.order_by("pk").select_for_update(of=("self",)).select_related("workspace", "owner")
    return list(locked.defer("search", "source_excerpt"))


def _with_equals(memories: list[Memory]) -> list[Memory]:
    """And what says the same in the same place: forgotten softly before, or saved twice by the same person."""
    said = {(memory.place, memory.content_hash) for memory in memories}
    ids = {memory.pk for memory in memories}
    equals = Memory.objects.filter(
        Q(deleted_at__isnull=False) | Q(author_id__in={memory.author_id for memory in memories}),
        workspace_id__in={memory.workspace_id for memory in memories},
        content_hash__in={memory.content_hash for memory in memories},
    ).exclude(pk__in=ids)
    return memories + [memory for memory in _lock(equals) if (memory.place, memory.content_hash) in said]


def _remove(ids: Sequence[int]) -> Counts:
    """Delete rows that are locked, with everything that hangs on them."""
    removed = _named("memory words", unindex_words(ids))
    vectors, _ = PassageVector.objects.filter(kind=MEMORY, ref__in=ids).delete()
    removed += _named("memory embeddings", vectors)
    return removed + counted(Memory.objects.filter(pk__in=ids).delete()[1])


def _drop_copies(texts: Collection[str], of: Sequence[Memory]) -> Counts:
    """Take the texts out of what quotes them beside other memories: excerpts, histories and receipts."""
    workspaces = {memory.workspace_id for memory in of}
    holds = _holding(texts)
    rows = Memory.objects.filter(workspace_id__in=workspaces).exclude(source_excerpt="")
    if len(texts) <= LOOKED_FOR:
        rows = rows.filter(_any("source_excerpt", texts))
    else:
        rows = rows.filter(source_chat_id__in={memory.source_chat_id for memory in of} - {""})
    quoting = rows.order_by("pk").select_for_update().values_list("pk", "source_excerpt")
    removed = _named("source excerpts", drop_excerpts([pk for pk, text in quoting if holds.search(text)]))
    histories = Revision.objects.filter(memory__workspace_id__in=workspaces).exclude(before={})
    earlier = 0
    for revision in histories.filter(_any("before__content", texts) | _any("before__summary", texts)):
        kept = {name: value for name, value in revision.before.items() if not holds.search(str(value))}
        if kept != revision.before:
            revision.before, earlier = kept, earlier + 1
            revision.save(update_fields=["before"])
    items = ReceiptItem.objects.filter(memory__workspace_id__in=workspaces, content__gt="")
    changed_since = items.exclude(content=F("memory__content")).filter(_any("content", texts))
    quoted = [pk for pk, text in changed_since.values_list("pk", "content") if holds.search(text)]
    ReceiptItem.objects.filter(pk__in=quoted).update(content="")
    return (
        removed + _named("earlier versions of other memories", earlier) + _named("receipt items", len(quoted))
    )


def _holding(texts: Iterable[str]) -> re.Pattern[str]:
    """Finds any of the texts standing in another as a phrase; a very short one only where it stands alone."""
    either = [
        rf"(?<!\w){re.escape(text)}(?!\w)" if len(text) >= LEAST_PHRASE else rf"\A{re.escape(text)}\Z"
        for text in texts
    ]
    return re.compile("|".join(either), re.IGNORECASE)


def drop_excerpts(ids: Sequence[int]) -> int:
    """The messages around a memory's origin, with their words and their part of its vector; how many had some."""
    ids = list(Memory.objects.filter(pk__in=ids).exclude(source_excerpt="").values_list("pk", flat=True))
    for part in _parts(ids):
        unindex_words(part)
        Memory.objects.filter(pk__in=part).update(source_excerpt="")
        index_lexemes(part)
        with connection.cursor() as cursor:
            cursor.execute(_OWN_VECTOR, [list(part)])
    return len(ids)


def _report(gone: Gone, by: User | None, now: datetime) -> Report:
    found = others = 0
    for memory in gone.memories[:LOOKED_UP]:
        workspace, text = memory.workspace, memory.content
        if by is None or role_in(by, workspace) is None:  # the system, and staff that forgets in the admin
            continue
        again = [item.memory for item in recall(text, workspace, by, limit=MAX_LIMIT, now=now).items]
        same = sum(tombstones.essence(memory.content) == tombstones.essence(text) for memory in again)
        found, others = found + same, others + len(again) - same
    return Report(gone.removed, gone.tombstones, found, others)


def _any(column: str, texts: Collection[str]) -> Q:
    """Rows that may hold one of the texts in this column; of many texts, those that are one of them."""
    if len(texts) > LOOKED_FOR:
        return Q(**{f"{column}__in": list(texts)})
    wanted = Q(pk__in=[])
    for text in texts:
        wanted |= Q(**{f"{column}__icontains": text})
    return wanted


def _named(words: str, number: int) -> Counts:
    return Counter({words: number}) if number else Counter()


def _parts(ids: Sequence[int] | Sequence[str]) -> Iterator[list]:
    for start in range(0, len(ids), BATCH):
        yield list(ids[start : start + BATCH])
