"""Import of memories. Each is checked and compared with existing ones like a memory saved in a chat, but in batches."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from django.db.models import Max, QuerySet

from chat.import_export.import_lines import FORGOTTEN, NO_PLACE, Places, Record, parents_of, resolve
from chat.models.imports import ImportRow, Outcome
from memories.models import Memory, Scope
from memories.writing import tombstones
from memories.writing.bulk_save import foresee, save_cleaned
from memories.writing.decide import one_import_at_a_time, one_writer_at_a_time
from memories.writing.drafts import Draft
from memories.writing.export_lines import Past, PastRevision, ReadMemory, draft_of, read_memory
from memories.writing.gate import Saved
from memoryhub.ids import PATTERN
from memoryhub.llm.registry import get_embedder
from memoryhub.stored_messages import kept
from workspaces.data_policy import DataPolicy
from workspaces.index.embedding import Embedded, embed_texts
from workspaces.models import User, Workspace

KEY_TAKEN = kept("another memory has this key")


class NoVectors(Exception):
    """Raised when the embedder does not answer. The import then waits, because it needs vectors to find duplicates."""


@dataclass(eq=False)
class Read:
    record: Record
    memory: ReadMemory
    embedded: Embedded | None = None
    # Set by ``_resolve_references``.
    draft: Draft = field(init=False)
    past: Past = field(init=False)


def read_memories(records: Sequence[Record], places: Places, *, embed: bool) -> list[Read]:
    """Parse the memories of these lines, and return the valid ones. Refuse the other lines.

    ``embed``: also embed those that do not exist here, which may wait for a model. Raises NoVectors if that fails.
    ``places`` is not changed.
    """
    read: list[Read] = []
    for record in records:
        with record.refused_on_error():
            read.append(Read(record, read_memory(record.line)))
    if embed and get_embedder() is not None:
        here = _here_already(read, places)
        wanted = [each for each in read if each not in here]
        texts = [(each.memory.draft.content, each.memory.draft.source_excerpt) for each in wanted]
        vectors = embed_texts(texts, [_policy(each, places) for each in wanted])
        if wanted and vectors is None:
            raise NoVectors
        for each, embedded in zip(wanted, vectors or [], strict=True):
            each.embedded = embedded
    return read


def _policy(read: Read, places: Places) -> DataPolicy:
    """Return the data policy of the target workspace. One that does not exist yet has no restriction."""
    personal = read.memory.draft.scope == Scope.USER
    place = places.home() if personal else places.workspace(read.memory.workspace)
    return DataPolicy.here(place or Workspace())


def _here_already(read: list[Read], places: Places) -> set[Read]:
    wanted = {}
    for each in read:
        personal = each.memory.draft.scope == Scope.USER
        place = places.user if personal else places.workspace(each.memory.workspace)
        if each.memory.past.public_id and place is not None:
            wanted[each] = (each.memory.past.public_id, place.public_id)
    ids = resolve("mem", wanted.values(), places.user)
    return {each for each, pair in wanted.items() if ids[pair].is_here}


def import_memories(
    read: list[Read], places: Places, *, native: bool, newest: int | None, rows: QuerySet[ImportRow]
) -> None:
    """Set the outcome of each memory, and store the new ones if ``places.stores``.

    ``native``: the file is an export of MemoryHub, so memories that are merely similar to others are kept. A memory is
    then only skipped if its id exists, or if a memory with the same text or key existed before the import (primary key
    up to ``newest``). Memories of other files are also skipped if a similar one exists. ``rows``: the import's lines
    that were already checked.
    """
    read = _resolve_references(read, places)
    if places.stores:
        one_import_at_a_time()
    _find_by_id(read, places)
    left = [each for each in read if each.record.is_new]
    if not left:
        return
    if places.stores:
        for workspace in sorted({each.draft.workspace for each in left}, key=lambda instance: instance.pk):
            one_writer_at_a_time(workspace)
        _drop_forgotten(left, places.user)
    if native:
        _take_as_they_were(left, places, newest)
    else:
        _take_by_the_gate(left, places, rows)


def _resolve_references(read: list[Read], places: Places) -> list[Read]:
    """Set the drafts of memories whose workspace and assistant are here, and return these. Refuse the others."""
    places.meet(
        name
        for each in read
        for name in (
            each.memory.author,
            each.memory.edited_by,
            each.memory.imported_by,
            *each.memory.revisers,
        )
    )
    resolved: list[Read] = []
    chats: dict[Read, tuple[str, str]] = {}
    for each in read:
        personal = each.memory.draft.scope == Scope.USER
        workspace = places.workspace(each.memory.workspace)
        if workspace is None:
            each.record.refuse(NO_PLACE)
            continue
        agent = places.agent(each.memory.agent, workspace) if each.memory.draft.scope == Scope.AGENT else None
        if each.memory.draft.scope == Scope.AGENT and agent is None:
            each.record.refuse(kept("its assistant is not in the file or was refused"))
            continue
        each.draft, each.past = draft_of(
            each.memory,
            workspace=places.home() if personal else workspace,
            importer=places.user,
            person=places.person(workspace),
            agent=agent,
            now=places.now,
        )
        resolved.append(each)
        if PATTERN.fullmatch(each.draft.source_chat_id):
            chats[each] = (each.draft.source_chat_id, workspace.public_id)
    _point_at_sources(chats, places)
    _remove_hidden_sources([each for each in resolved if each.past.sources], places)
    return resolved


def _point_at_sources(chats: dict[Read, tuple[str, str]], places: Places) -> None:
    """Set the memories' source chat and message to local ids, which have no row if the importer may not see it."""
    at_chats = resolve("chat", chats.values(), places.user)
    messages = {
        each: (each.draft.source_message_id, at_chats[pair].local)
        for each, pair in chats.items()
        if PATTERN.fullmatch(each.draft.source_message_id)
    }
    at_messages = resolve("msg", messages.values(), places.user)
    for each, pair in chats.items():
        message_id = at_messages[messages[each]].local if each in messages else each.draft.source_message_id
        each.draft = replace(each.draft, source_chat_id=at_chats[pair].local, source_message_id=message_id)


def _remove_hidden_sources(read: list[Read], places: Places) -> None:
    """Remove ids of sources (chats and messages) that exist here but are not visible to the importer."""
    source_ids = {source for each in read for source in each.past.sources}
    parents: dict[str, str] = {}
    for prefix in ("chat", "msg"):
        of_kind = {source for source in source_ids if source.startswith(f"{prefix}_")}
        parents |= parents_of(prefix, of_kind, places.user)
    for each in read:
        sources = tuple(source for source in each.past.sources if parents.get(source) != "")
        each.past = replace(each.past, sources=sources)


def _drop_forgotten(read: list[Read], by: User) -> None:
    """Drop forgotten summaries and earlier versions. The current contents are checked when they are stored."""
    past_texts: list[tuple[Read, str]] = []
    for each in read:
        befores = [revision.before or {} for revision in each.past.revisions]
        texts = [before.get(name) for before in befores for name in ("content", "summary")]
        past_texts += [
            (each, text) for text in (each.draft.summary, *texts) if isinstance(text, str) and text
        ]
    gone: dict[Read, set[str]] = {}
    draft_texts = [(each.draft, text) for each, text in past_texts]
    for (each, text), is_gone in zip(past_texts, tombstones.forgotten_texts(draft_texts, by=by), strict=True):
        if is_gone:
            gone.setdefault(each, set()).add(text)
    for each, texts_gone in gone.items():
        if each.draft.summary in texts_gone:
            each.draft = replace(each.draft, summary=None)
        each.past = replace(each.past, revisions=tuple(_without(r, texts_gone) for r in each.past.revisions))


def _without(revision: PastRevision, texts: set[str]) -> PastRevision:
    before = {
        name: value
        for name, value in (revision.before or {}).items()
        if not (isinstance(value, str) and value in texts)
    }
    return replace(revision, before=before)


def _into(draft: Draft) -> str:
    return draft.owner.public_id if draft.owner else draft.workspace.public_id


def _find_by_id(read: list[Read], places: Places) -> None:
    """Mark memories whose ids exist here as known, and set the local ids of the others and of those they refer to."""
    wanted = {each: (each.past.public_id, _into(each.draft)) for each in read if each.past.public_id}
    links = {
        (each, other): (other, _into(each.draft))
        for each in read
        for other in (each.past.may_replace, *each.past.replaces)
        if other
    }
    ids = resolve("mem", {*wanted.values(), *links.values()}, places.user)
    seen: set[str] = set()
    for each, pair in wanted.items():
        local_id = ids[pair]
        if local_id.is_here or local_id.local in seen:
            each.record.is_known(local_id.local)
        seen.add(local_id.local)
        link = each.past.may_replace and ids[links[each, each.past.may_replace]].local
        replaces = tuple(ids[links[each, other]].local for other in each.past.replaces)
        each.past = replace(each.past, public_id=local_id.local, may_replace=link, replaces=replaces)


def _take_as_they_were(read: list[Read], places: Places, newest: int | None) -> None:
    """Accept memories of a MemoryHub export, without searching for similar ones.

    A memory waits for review only if its line says so, since the importer may approve all others. ``newest``: see
    ``import_memories``.
    """
    left = []
    for each in read:
        agent = each.draft.agent
        if each.draft.workspace.pk is not None and (agent is None or agent.pk is not None):
            each.draft = replace(each.draft, was_in_use=True)
            left.append(each)
    if newest is None:
        newest = Memory.objects.aggregate(newest=Max("pk"))["newest"] or 0
    _store_or_predict(left, places, near=False, kept_up_to=newest)


def _store_or_predict(read: list[Read], places: Places, **how: Any) -> None:
    """Store the memories, or only predict the results if ``places.stores`` is False, and set their outcomes."""
    drafts = [each.draft for each in read]
    vectors, pasts = [each.embedded for each in read], [each.past for each in read]
    store = save_cleaned if places.stores else foresee
    saved = store(drafts, vectors, pasts, by=places.user, now=places.now, **how)
    line_of = {
        result.memory.pk: each.record.number
        for each, result in zip(read, saved, strict=True)
        if result.created
    }
    for each, result in zip(read, saved, strict=True):
        _set_outcome(each, result, line_of.get(result.memory.pk))


def _take_by_the_gate(read: list[Read], places: Places, rows: QuerySet[ImportRow]) -> None:
    _store_or_predict(read, places)
    if places.stores:
        return
    first: dict[int, int] = {}
    prints = [fingerprint(each.draft) for each in read]
    for each, draft_hash in zip(read, prints, strict=True):
        each.record.fingerprint = draft_hash
        first.setdefault(draft_hash, each.record.number)
    earlier = rows.filter(fingerprint__in=first, outcome=Outcome.NEW)
    known_lines = earlier.values_list("fingerprint", "number")
    first |= {draft_hash: number for draft_hash, number in known_lines if draft_hash is not None}
    for each, draft_hash in zip(read, prints, strict=True):
        number = first[draft_hash]
        if each.record.is_new and number < each.record.number:
            each.record.outcome, each.record.same_as = Outcome.DUPLICATE, number


def _set_outcome(read: Read, result: Saved, line: int | None) -> None:
    """Set a memory's outcome. ``line``: the number of the line that created the resulting memory, if one did."""
    record, memory = read.record, result.memory
    if result.forgotten:
        record.refuse(FORGOTTEN, tombstones.WasForgotten())
    elif result.duplicate and line is not None:
        record.outcome, record.same_as = Outcome.DUPLICATE, line
    elif result.duplicate:
        key, same_text = read.draft.key, read.draft.content_hash == memory.content_hash
        is_namesake = key is not None and key == memory.key and not same_text
        record.is_known(memory.public_id, KEY_TAKEN if is_namesake else "")
    else:
        record.became = memory.public_id
        if not result.created:
            record.outcome, record.duplicate_of = Outcome.UPDATE, memory.public_id


def fingerprint(draft: Draft) -> int:
    """Return a hash of text and target. Two lines with the same hash are the same statement."""
    text = f"{draft.content_hash} {draft.place}"
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big", signed=True)
