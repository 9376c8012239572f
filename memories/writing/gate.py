"""The one gate: every write of a memory, from whatever door, passes here. Nothing else inserts or edits one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from memories.judging.secret_filter import RULES
from memories.models import Memory, Review, Revision, Scope
from memories.models.memory import RevisionAction
from memories.recalling.kind import queue_embedding
from memories.recalling.words import (
    SEARCH,
    index_lexemes,
    index_words,
    unindex_words,
)
from memories.writing import cap, refusals, tombstones
from memories.writing.announcing import announce
from memories.writing.drafts import (
    CLEANERS,
    Draft,
    clean_fields,
    content_hash,
    refuse_secrets,
)
from memories.writing.places import (
    beside,
    find_by_key,
    find_equal,
    one_writer_at_a_time,
)
from memories.writing.similar import find_similar
from memories.writing.sources import add_sources, set_sources
from memories.writing.versions import next_update, require_version
from memoryhub import metrics
from memoryhub.errors import Conflict, NotFound
from memoryhub.ready import Ready
from memoryhub.single_rows import insert_row, update_row
from workspaces.access import default_workspace
from workspaces.audit import Verb, record
from workspaces.index.embedding import (
    Embedded,
    active_model,
    embed_one,
    store_vector,
)
from workspaces.models import User

__all__ = [
    "Draft",
    "Saved",
    "delete_memory",
    "edit_memory",
    "keep_both",
    "replace_older",
    "restore_memory",
    "save_memory",
]


def _rows_to_lock(pk: int, *, deleted: bool | None) -> QuerySet[Memory]:
    rows = Memory.objects.select_for_update(of=("self",)).select_related("workspace", "author", "may_replace")
    if deleted is not None:
        rows = rows.filter(deleted_at__isnull=not deleted)
    return rows.filter(pk=pk)


_LOCKED = {deleted: Ready(partial(_rows_to_lock, deleted=deleted), pk=int) for deleted in (None, False, True)}


@dataclass(frozen=True)
class Saved:
    """What became of a draft. ``duplicate``: nothing was stored, ``memory`` is the one that said it already.

    ``forgotten``: nothing was stored, since it was forgotten for good; ``memory`` has no row. Of many at once only:
    a single one raises WasForgotten. ``pending``: it waits for review (``memories.writing.review``) and is in
    no list yet.
    """

    memory: Memory
    created: bool
    duplicate: bool = False
    forgotten: bool = False
    pending: bool = False


def save_memory(draft: Draft, *, by: User | None, now: datetime, dedupe: str = "key") -> Saved:
    """Store a draft unless its workspace and scope know it already.

    ``dedupe="key"``: a live memory of the same key is updated in place; a text that is equal or a near-duplicate
    returns the existing one. ``dedupe="create"`` always makes a row. Raises Invalid, SecretRefused, or WasForgotten
    where no person says it. The text is stored even when it cannot be embedded; that follows in the background.
    Costs one embedding.
    """
    with refusals.counted(draft.workspace.pk, draft.source_type, now):
        draft = draft.cleaned()
        if draft.scope == Scope.USER and draft.author is not None:
            draft = replace(draft, workspace=default_workspace(draft.author))
        stays = draft.workspace.local_only
        embedded = embed_one(draft.content, draft.source_excerpt, stays=stays)
        return save_embedded(draft, embedded, by=by, now=now, dedupe=dedupe)


def save_embedded(
    draft: Draft, embedded: Embedded | None, *, by: User | None, now: datetime, dedupe: str = "key"
) -> Saved:
    """``save_memory`` for a cleaned draft whose vector is known; asks no model, so it may be part of a transaction."""
    with transaction.atomic():
        one_writer_at_a_time(draft.workspace)
        tombstones.check(draft, by=by)
        may_replace = None
        if dedupe != "create" or draft.waits_for_review:
            changes_one = draft.key and not draft.waits_for_review
            if changes_one and (same_key := find_by_key(draft, now)):
                return Saved(_update_by_key(same_key, draft, embedded, by=by, now=now), created=False)
            if equal := find_equal(draft, now):
                return Saved(equal, created=False, duplicate=True)
            if embedded is not None:
                threshold, place = settings.DEDUPE_THRESHOLD, draft.place
                found = find_similar(draft.content, embedded, place, now=now, threshold=threshold)
                if found.duplicate:
                    return Saved(found.duplicate, created=False, duplicate=True)
                may_replace = found.possible_update
        if draft.waits_for_review:
            return _propose(draft, may_replace, by=by, now=now)
        memory = _insert(draft, may_replace, by=by, now=now)
        _store_vector_or_queue(memory, embedded, is_new=True)
        announce(memory, "create")
        if memory.is_automatic:
            cap.look_after(memory.workspace_id, memory.owner_id, memory.agent_id)
    return Saved(memory, created=True)


def edit_memory(
    memory: Memory,
    *,
    by: User | None,
    now: datetime,
    made_from: str = "",
    seen: Collection[str] | None = None,
    **changes: Any,
) -> Memory:
    """Change the given fields (of ``drafts.CLEANERS``). New content is embedded anew and recalled by nothing older.

    ``made_from`` is the message that a program made the new text from: it counts only while that is the memory's
    source, and never brings back what was forgotten. ``seen`` are the versions its editor may have in mind. Raises
    Invalid, SecretRefused, WasForgotten, Stale if it is in none of those, or NotFound if the memory, or the source of
    its new text, was deleted meanwhile.
    """
    unknown = set(changes) - set(CLEANERS)
    if unknown:
        raise TypeError(f"not fields of a memory: {sorted(unknown)}")
    with refusals.counted(memory.workspace_id, memory.source_type, now):
        changes = clean_fields(changes)
        stays = memory.workspace.local_only
        embedded = embed_one(changes["content"], stays=stays) if "content" in changes else None
        with transaction.atomic():
            locked = _locked(memory, deleted=False)
            require_version(locked, seen)
            changes = {name: value for name, value in changes.items() if getattr(locked, name) != value}
            if not changes:
                return locked
            if made_from and locked.source_message_id != made_from:
                raise NotFound("What this memory came from was forgotten in the meantime.")
            tombstones.check_edit(locked, changes, by=None if made_from else by)
            others = beside(locked, now).exclude(pk=locked.pk)
            if changes.get("key") and others.filter(key=changes["key"]).exists():
                raise Conflict("Another memory has this key already.", fields={"key": "is taken"})
            _change(locked, changes, by=by, now=now)
            if "content" in changes:
                _store_vector_or_queue(locked, embedded)
            announce(locked, "edit")
        return locked


def delete_memory(
    memory: Memory,
    *,
    by: User | None,
    now: datetime,
    action: str = RevisionAction.DELETE,
    seen: Collection[str] | None = None,
) -> Memory:
    """Soft: gone from every list, count, recall and dedupe at once, and can be restored. Twice does nothing more.

    Raises Stale if it is live in none of the versions ``seen``.
    """
    with transaction.atomic():
        locked = _locked(memory)
        if locked.deleted_at is None:
            require_version(locked, seen)
            locked.deleted_at, locked.updated_at = now, next_update(locked, now)
            locked.save(update_fields=["deleted_at", "updated_at"])
            locked.embeddings.update(live=False)
            unindex_words([locked.pk])
            Revision.objects.create(memory=locked, action=action, by=by, at=now)
            _audit(Verb.MEMORY_DELETED, locked, by)
            announce(locked, "delete")
    return locked


def restore_memory(memory: Memory, *, by: User | None, now: datetime) -> Memory:
    """Undo a soft delete. Twice does nothing more."""
    with transaction.atomic():
        locked = _locked(memory)
        if locked.review != Review.NONE:
            raise Conflict("This is a proposal: it is approved or rejected.", code="in_review")
        if locked.deleted_at is not None:
            refuse_secrets({name: getattr(locked, name) for name in ("content", "summary", "key", "tags")})
            locked.deleted_at, locked.updated_at = None, next_update(locked, now)
            locked.save(update_fields=["deleted_at", "updated_at"])
            locked.embeddings.update(live=True)
            if not locked.embeddings.filter(model=active_model() or "").exists():
                queue_embedding([locked.pk])
            index_words([locked.pk])
            Revision.objects.create(memory=locked, action=RevisionAction.RESTORE, by=by, at=now)
            _audit(Verb.MEMORY_RESTORED, locked, by)
            announce(locked, "restore")
    return locked


def replace_older(memory: Memory, *, by: User | None, now: datetime) -> Memory:
    """Yes, this one replaces the older it is linked to: the older is forgotten (softly)."""
    with transaction.atomic():
        locked = _locked(memory, deleted=False)
        if locked.may_replace is not None:
            delete_memory(locked.may_replace, by=by, now=now)
        return _unlink(locked)


def keep_both(memory: Memory, *, by: User | None, now: datetime) -> Memory:
    """No, both are true: the link goes, nothing else changes."""
    with transaction.atomic():
        return _unlink(_locked(memory, deleted=False))


def new_row(draft: Draft, may_replace: Memory | None, now: datetime) -> Memory:
    """What a cleaned draft becomes, not saved yet."""
    return Memory(
        workspace=draft.workspace,
        scope=draft.scope,
        owner=draft.owner,
        agent=draft.agent,
        author=draft.author,
        content=draft.content,
        summary=draft.summary,
        key=draft.key,
        category=draft.category,
        tags=list(draft.tags),
        importance=draft.importance,
        pinned=draft.pinned,
        expires_at=draft.expires_at,
        source_type=draft.source_type,
        source_chat_id=draft.source_chat_id,
        source_message_id=draft.source_message_id,
        source_excerpt=draft.source_excerpt,
        source_details=dict(draft.source_details),
        may_replace=may_replace,
        content_hash=content_hash(draft.content),
        secret_rules=RULES,
        created_at=now,
        updated_at=now,
    )


def _insert(draft: Draft, may_replace: Memory | None, *, by: User | None, now: datetime) -> Memory:
    memory = new_row(draft, may_replace, now)
    insert_row(memory, {"search": SEARCH})
    add_sources(memory, draft.sources)
    index_lexemes([memory.pk])
    insert_row(Revision(memory=memory, action=RevisionAction.CREATE, by=by, at=now))
    transaction.on_commit(partial(metrics.count_saves, memory.source_type))
    return memory


def _propose(draft: Draft, may_replace: Memory | None, *, by: User | None, now: datetime) -> Saved:
    """A row that nothing knows of until somebody approves it. What waits already, or was rejected, waits once."""
    proposed = new_row(draft, may_replace, now)
    equals = Memory.objects.exclude(review=Review.NONE).filter(
        workspace=draft.workspace, content_hash=proposed.content_hash
    )
    if equal := next((each for each in equals if each.place == draft.place), None):
        return Saved(equal, created=False, pending=True)
    proposed.review, proposed.deleted_at = Review.PENDING, now
    proposed.save(force_insert=True)
    index_words([proposed.pk])
    Revision.objects.create(memory=proposed, action=RevisionAction.PROPOSE, by=by, at=now)
    announce(proposed, "propose")
    return Saved(proposed, created=False, pending=True)


def _update_by_key(
    memory: Memory, draft: Draft, embedded: Embedded | None, *, by: User | None, now: datetime
) -> Memory:
    """Same key, scope and context: same id, new content, pin kept."""
    changes: dict[str, Any] = {
        "content": draft.content,
        "importance": draft.importance,
        "tags": list(draft.tags),
    }
    changes |= {"summary": draft.summary, "expires_at": draft.expires_at}
    if draft.category is not None:
        changes["category"] = draft.category
    locked = _locked(memory, deleted=False)
    changes = {name: value for name, value in changes.items() if getattr(locked, name) != value}
    if changes:
        _change(locked, changes, by=by, now=now)
        if "content" in changes:
            _store_vector_or_queue(locked, embedded)
        announce(locked, "edit")
    if draft.sources:
        set_sources(locked, draft.sources, now=now)
    return locked


def _change(memory: Memory, changes: dict[str, Any], *, by: User | None, now: datetime) -> None:
    """Apply checked changes to a locked row, with a revision. New content takes with it what came from the old."""
    if "content" in changes:
        changes = {"summary": None, **changes, "source_excerpt": "", "may_replace": None}
    before = {name: _plain(getattr(memory, name)) for name in changes if name != "may_replace"}
    unindex_words([memory.pk])
    for name, value in changes.items():
        setattr(memory, name, value)
    memory.content_hash = content_hash(memory.content)
    memory.updated_at = next_update(memory, now)
    update_row(memory, [*changes, "content_hash", "updated_at"])
    index_words([memory.pk])
    insert_row(Revision(memory=memory, action=RevisionAction.EDIT, by=by, at=now, before=before))
    _audit(Verb.MEMORY_EDITED, memory, by, fields=[*before])


def _store_vector_or_queue(memory: Memory, embedded: Embedded | None, *, is_new: bool = False) -> None:
    if embedded is not None:
        store_vector(memory, embedded, is_new=is_new)
    else:
        if not is_new:
            memory.embeddings.all().delete()
        queue_embedding([memory.pk])


def _audit(verb: Verb, memory: Memory, by: User | None, **details: Any) -> None:
    """What a person did. A personal memory concerns nobody else, whoever may look at the workspace it lies in."""
    if by is not None:
        workspace = memory.workspace if memory.owner_id is None else None
        record(verb, by=by, workspace=workspace, target=memory.public_id, details=details)


def _unlink(memory: Memory) -> Memory:
    memory.may_replace = None
    memory.save(update_fields=["may_replace"])
    announce(memory, "edit")
    return memory


def _locked(memory: Memory, *, deleted: bool | None = None) -> Memory:
    """The row as it is now, locked until commit. NotFound if it was deleted meanwhile, or is none such any more."""
    locked = _LOCKED[deleted].first(pk=memory.pk)
    if locked is None:
        raise NotFound("This memory was forgotten in the meantime.")
    return locked


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
