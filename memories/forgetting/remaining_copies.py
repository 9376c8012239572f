"""Copies of a permanently forgotten text in other memories, and checks of stored memories for credentials.

When a person forgets a text permanently, its copies in memories that they may forget are removed too. Of other copies a
note without the text (``KeptCopy``) is stored, on which people with the right to forget that memory can act.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet

from memories.indexing import MEMORIES, index_lexemes, unindex_words
from memories.judging.secret_filter import RULES
from memories.models import CopyKind, KeptCopy, Memory, ReceiptItem, Revision
from memories.models.memory import PLACE, RevisionAction
from memories.writing.drafts import kind_in, without_secrets
from memories.writing.gate import delete_memory
from memoryhub.database import queries
from memoryhub.errors import NotFound
from workspaces.actions.purging import Counts
from workspaces.models import User
from workspaces.models.index import WITHIN, of_places

BATCH = 500
# Up to this number of memories, whole workspaces are searched for copies; above it, only their chats.
LOOKED_FOR = 20
AT_ONCE = LOOKED_FOR  # texts per search
MOST_TEXTS = 50 * AT_ONCE  # texts searched for inside others; beyond this number, only exact copies are found
LEAST_PHRASE = 8  # characters; a shorter phrase occurs in many unrelated texts
QUOTING = ("content", "summary", "source_excerpt", "key")  # the fields of a revision that quote text

# The search vector includes the excerpt. When the excerpt goes, the vector of the statement alone replaces it.
_OWN_VECTOR = f"""
UPDATE workspaces_passagevector v SET embedding = v.statement, statement = NULL FROM memories_memory m
WHERE m.id = ANY(%(refs)s::bigint[]) {WITHIN} AND v.place = {PLACE} AND v.kind = 1 AND v.ref = m.id
  AND v.place = ANY(%(places)s::bigint[]) AND v.statement IS NOT NULL
"""  # noqa: S608  constants only
# A row that is being removed needs no note, so locked rows are skipped.
_HOLD = "SELECT id FROM memories_memory WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE SKIP LOCKED"


@dataclass(frozen=True)
class Wanted:
    """Forgotten texts whose copies are to be removed, and the chats and messages from which they were extracted."""

    texts: Collection[str] = ()
    chats: Collection[str] = ()  # public ids
    memories: int = 1  # the number of memories that had these texts
    # Texts that members could read, by the workspace's primary key.
    shared: Mapping[int, Collection[str]] = field(default_factory=dict)
    messages: Collection[str] = ()  # public ids

    def batches(self) -> Iterator[Wanted]:
        """Yield objects like this one with a part of the texts each, so that a query searches for few texts.

        Of very many texts or memories, the rest is one large last batch, for which only rows equal to a text are found.
        """
        near = 0 if self.memories > LOOKED_FOR else MOST_TEXTS
        texts = list(self.texts)
        for start in range(0, len(texts[:near]), AT_ONCE):
            yield replace(self, texts=texts[:near][start : start + AT_ONCE])
        if texts[near:]:
            yield replace(self, texts=texts[near:])


CopyRemover = Callable[[Wanted, User], Counts]
_copy_removers: list[CopyRemover] = []


def register_copy_remover(remover: CopyRemover) -> None:
    """Register a function of another app that removes copies of permanently forgotten texts from its tables."""
    if remover not in _copy_removers:
        _copy_removers.append(remover)


def drop_in_other_apps(wanted: Wanted, by: User) -> Counts:
    """Remove copies from the tables of other apps, once the tombstones are committed. Return the counts by kind."""
    return sum((remover(wanted, by) for remover in _copy_removers), Counter()) if wanted.texts else Counter()


def drop(wanted: Wanted, rows: QuerySet[Memory], by: User | None) -> Counts:
    """Remove quotes of the wanted texts from the source excerpts, histories and receipts of the memories ``rows``.

    Return the number of changes by kind. Only receipts for answers to ``by`` are counted; None counts all.
    """
    excerpts, changed, items = 0, set(), 0
    for each in wanted.batches():
        holds = holding(each.texts)
        excerpts += drop_excerpts(_excerpts(each, rows.order_by("pk").select_for_update(of=("self",))))
        histories = list(_histories(each, rows))
        for revision in histories:
            revision.before = _without(revision.before, holds)
        Revision.objects.bulk_update(histories, ["before"], batch_size=BATCH)
        changed |= {revision.pk for revision in histories}
        quoted = ReceiptItem.objects.filter(pk__in=[pk for pk, _ in _items(each, rows)])
        items += own_items(quoted, by)
        quoted.update(content="")
    counts = {"source excerpts": excerpts, "earlier versions of other memories": len(changed)}
    return +Counter(counts | {"receipt items": items})  # without zeros


def store_notes(wanted: Wanted, rows: QuerySet[Memory], equals: Collection[int], *, now: datetime) -> None:
    """Store a note for each copy of the texts in excerpts, histories and receipts of ``rows``, and for ``equals``.

    ``equals`` are the primary keys of memories whose whole text is a copy.
    """
    copies = [(pk, CopyKind.MEMORY, 0) for pk in equals]
    for each in wanted.batches():
        copies += [(pk, CopyKind.EXCERPT, 0) for pk in _excerpts(each, rows)]
        copies += [(copy.memory_id, CopyKind.REVISION, copy.pk) for copy in _histories(each, rows)]
        copies += [(memory, CopyKind.ITEM, pk) for pk, memory in _items(each, rows)]
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, [[pk for pk, _, _ in copies]])
        there = {row[0] for row in cursor.fetchall()}
    known = [copy for copy in copies if copy[0] in there]
    notes = [KeptCopy(memory_id=pk, kind=kind, row_id=row, noted_at=now) for pk, kind, row in known]
    KeptCopy.objects.bulk_create(notes, ignore_conflicts=True, batch_size=BATCH)


def drop_noted(memory: Memory, by: User) -> Counts:
    """Remove the copies that the notes of a locked memory name, and then the notes. Return the counts by kind."""
    of_kind: dict[str, list[int]] = {}
    for copy in memory.kept_copies.all():
        of_kind.setdefault(copy.kind, []).append(copy.row_id)
    excerpts = 0
    if CopyKind.EXCERPT in of_kind:  # an edit may have moved the excerpt into the history since
        excerpts = drop_excerpts([memory.pk])
        drop_earlier_excerpts([memory.pk])
    histories = list(memory.revisions.filter(pk__in=of_kind.get(CopyKind.REVISION, [])))
    for revision in histories:
        revision.before = {name: value for name, value in revision.before.items() if name not in QUOTING}
    Revision.objects.bulk_update(histories, ["before"], batch_size=BATCH)
    quoted = memory.receipt_items.filter(pk__in=of_kind.get(CopyKind.ITEM, []))
    items = own_items(quoted, by)
    quoted.update(content="")
    memory.kept_copies.all().delete()
    counts = {"source excerpts": excerpts, "earlier versions": len(histories), "receipt items": items}
    return +Counter(counts)  # without zeros


def own_items(items: QuerySet[ReceiptItem], by: User | None) -> int:
    """Count this person's receipt items, as people must not learn how often others recalled it. None counts all."""
    return (items if by is None else items.filter(receipt__user=by)).count()


def holding(texts: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches text containing one of the phrases. A very short phrase must be the whole text."""
    either = [
        rf"(?<!\w){re.escape(text)}(?!\w)" if len(text) >= LEAST_PHRASE else rf"\A{re.escape(text)}\Z"
        for text in texts
    ]
    return re.compile("|".join(either), re.IGNORECASE)


def drop_excerpts(ids: Sequence[int]) -> int:
    """Remove these memories' source excerpts from rows, word index and vectors. Return how many had an excerpt."""
    rows = list(Memory.objects.filter(pk__in=ids).exclude(source_excerpt="").only("workspace"))
    for part in parts(rows):
        refs, within = [row.pk for row in part], {row.workspace_id for row in part}
        unindex_words(part)
        Memory.objects.filter(pk__in=refs, workspace__in=within).update(source_excerpt="")
        index_lexemes(part)
        queries.rows(_OWN_VECTOR, of_places(MEMORIES, refs, within=within))
    return len(rows)


def drop_earlier_excerpts(ids: Sequence[int]) -> None:
    """Remove the source excerpts from the histories of these memories."""
    rows = Revision.objects.filter(memory_id__in=ids, before__has_key="source_excerpt")
    for revision in rows:
        revision.before.pop("source_excerpt")
    Revision.objects.bulk_update(rows, ["before"], batch_size=BATCH)


def named(words: str, number: int) -> Counts:
    return Counter({words: number}) if number else Counter()


def parts(ids: Sequence[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(ids), BATCH):
        yield list(ids[start : start + BATCH])


def _excerpts(wanted: Wanted, rows: QuerySet[Memory]) -> list[int]:
    rows = rows.exclude(source_excerpt="")
    if len(wanted.texts) <= LOOKED_FOR:
        rows = rows.filter(_any("source_excerpt", wanted.texts))
    else:
        rows = rows.filter(source_chat_id__in=set(wanted.chats) - {""})
    holds = holding(wanted.texts)
    return [pk for pk, text in rows.values_list("pk", "source_excerpt") if holds.search(text)]


def _histories(wanted: Wanted, rows: QuerySet[Memory]) -> Iterator[Revision]:
    holds = holding(wanted.texts)
    quoting = Q(pk__in=[])
    for name in QUOTING:
        quoting |= _any(f"before__{name}", wanted.texts)
    for revision in Revision.objects.filter(quoting, memory__in=_ids(rows)).exclude(before={}):
        if _without(revision.before, holds) != revision.before:
            yield revision


def _without(before: dict[str, Any], holds: re.Pattern[str]) -> dict[str, Any]:
    return {name: value for name, value in before.items() if not holds.search(str(value))}


def _items(wanted: Wanted, rows: QuerySet[Memory]) -> list[tuple[int, int]]:
    """Return (item, memory) keys of receipt items that quote one of the texts and differ from their memory's text."""
    items = ReceiptItem.objects.filter(memory__in=_ids(rows), content__gt="")
    changed_since = items.exclude(content=F("memory__content")).filter(_any("content", wanted.texts))
    holds = holding(wanted.texts)
    candidates = changed_since.values_list("pk", "memory_id", "content")
    return [(pk, memory) for pk, memory, text in candidates if holds.search(text)]


def _ids(rows: QuerySet[Memory]) -> QuerySet[Memory, Any]:
    return rows.order_by().values("pk")


def _any(column: str, texts: Collection[str]) -> Q:
    """Return a filter for rows whose column contains one of the texts, ignoring case.

    Of more than LOOKED_FOR texts, the column must equal one.
    """
    if len(texts) > LOOKED_FOR:
        return Q(**{f"{column}__in": list(texts)})
    wanted = Q(pk__in=[])
    for text in texts:
        wanted |= Q(**{f"{column}__icontains": text})
    return wanted


# Checks of stored memories against the current rules for credentials. Each row stores the version of the rules by
# which it was checked, so unchanged rules cost no check, and an interrupted scan continues where it stopped.

# Locked rows are skipped, and checked another time.
_STAMP = """
UPDATE memories_memory SET secret_rules = %s WHERE id IN (
    SELECT id FROM memories_memory WHERE id = ANY(%s) FOR UPDATE SKIP LOCKED)
"""


@dataclass
class Scan:
    """The progress of a scan for credentials. ``hidden`` lists (public id, kind of credential), never a text."""

    total: int
    checked: int = 0
    hidden: list[tuple[str, str]] = field(default_factory=list)
    excerpts: int = 0  # how many held a credential and were removed


def recheck(memories: Sequence[Memory], *, now: datetime) -> int:
    """Soft-delete memories with a credential, and mark the others as checked. Return the number of the first."""
    matches = [memory for memory in memories if kind_in(memory)]
    for memory in matches:
        _hide(memory, now)
    _stamp([memory.pk for memory in memories if memory not in matches])
    return len(matches)


def scan(*, now: datetime, check_all: bool = False, hide: bool = True) -> Generator[Scan, None, None]:
    """Check live memories for credentials by the current rules, and yield the progress after each batch.

    Memories that these rules have checked before are skipped, except with ``check_all``. A memory with a credential is
    soft-deleted, and a source excerpt with one is removed. Without ``hide``, matches are only counted and listed.
    """
    rows = Memory.objects.filter(deleted_at=None)
    rows = rows if check_all else rows.exclude(secret_rules=RULES)
    progress, after = Scan(rows.count()), 0
    while batch := list(rows.filter(pk__gt=after).order_by("pk").defer("search")[:BATCH]):
        after = batch[-1].pk
        clean = []
        for memory in batch:
            if kind := kind_in(memory):
                progress.hidden.append((memory.public_id, kind))
                if hide:
                    _hide(memory, now)
                continue
            if without_secrets(memory.source_excerpt) != memory.source_excerpt:
                progress.excerpts += 1
                if hide:
                    _drop_excerpt(memory)
            clean.append(memory.pk)
        if hide:
            _stamp(clean)
        progress.checked += len(batch)
        yield progress


def _hide(memory: Memory, now: datetime) -> None:
    try:
        delete_memory(memory, by=None, now=now, action=RevisionAction.HIDE)
    except NotFound:
        return  # forgotten in the meantime, so nothing is left to hide


def _drop_excerpt(memory: Memory) -> None:
    with transaction.atomic():
        Memory.objects.select_for_update(of=("self",)).filter(pk=memory.pk).first()
        drop_excerpts([memory.pk])


def _stamp(ids: Sequence[int]) -> None:
    if ids:
        with connection.cursor() as cursor:
            cursor.execute(_STAMP, [RULES, list(ids)])
