"""Changes to stored memories: edits with their history, replacements, restores, versions and notifications."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later

from memories.indexing import index_words, put_in_index, queue_embedding, unindex_words
from memories.judging.secret_filter import RULES
from memories.judging.stated_period import read_validity
from memories.models import Memory, Review, Revision
from memories.models.memory import KEY_IS_UNIQUE, RevisionAction
from memories.writing import tombstones
from memories.writing.decide import New, Refused, Stored, decide, one_writer_at_a_time
from memories.writing.drafts import Draft, add_sources, check_validity, clean_sources, content_hash, kind_in
from memoryhub import pubsub
from memoryhub.database.queries import PreparedQuery
from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.audit import Verb, record
from workspaces.index.embedding import Embedded, active_model
from workspaces.models import User, WebhookEvent, Workspace
from workspaces.webhooks.hooks import emit

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)


class Stale(Conflict):
    """The error that the memory has changed since its editor loaded it. ``memory`` holds the current state."""

    code = "stale"
    default_message = later(
        "Someone else has changed this memory since you loaded it. Load it again, then decide."
    )

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self.memory = memory

    def headers(self) -> dict[str, str]:
        return {"ETag": etag(self.memory)}


def version_of(memory: Memory) -> str:
    """Return the memory's version, which changes with every edit, delete and restore."""
    return f"{memory.public_id}-{(memory.updated_at - EPOCH) // TICK:x}"


def etag(memory: Memory) -> str:
    return f'"{version_of(memory)}"'


def next_update(memory: Memory, now: datetime) -> datetime:
    """Return a locked memory's next ``updated_at``, later than the last even if the clock was set back."""
    return max(now, memory.updated_at + TICK)


def require_version(memory: Memory, seen: Collection[str] | None) -> None:
    """Raise Stale unless the version of the locked memory is one of ``seen``. None allows any version."""
    if seen is not None and version_of(memory) not in seen:
        raise Stale(memory)


# The webhook event of each action. Other actions change nothing that a webhook receiver can read.
_TOLD = {
    "create": WebhookEvent.MEMORY_SAVED,
    "approve": WebhookEvent.MEMORY_SAVED,
    "restore": WebhookEvent.MEMORY_SAVED,
    "edit": WebhookEvent.MEMORY_CHANGED,
    "delete": WebhookEvent.MEMORY_FORGOTTEN,
    "forget": WebhookEvent.MEMORY_FORGOTTEN,
    "reconsider": WebhookEvent.MEMORY_FORGOTTEN,
}


def announce(memory: Memory, action: str) -> None:
    """Notify open pages and webhooks of a change, after the commit. See ``announce_many``."""
    announce_many([memory], action)


def announce_many(memories: Sequence[Memory], action: str) -> None:
    """Notify open pages, by one event per scope, and webhooks, by one event per memory, after the commit."""
    for memory in {memory.place: memory for memory in memories}.values():
        data = {"workspace_id": memory.workspace.public_id, "action": action, "memory_id": memory.public_id}
        pubsub.publish(_channel(memory), "memory.changed", data)
    notify_webhooks(memories, action)


def notify_webhooks(memories: Sequence[Memory], action: str) -> None:
    """Queue webhook events for these memories. Personal memories and proposals are left out."""
    if action not in _TOLD:
        return
    event, by_workspace = _TOLD[action], defaultdict[int, list[str]](list)
    for memory in memories:
        is_there = memory.deleted_at is None or event == WebhookEvent.MEMORY_FORGOTTEN
        if memory.owner_id is None and memory.review == Review.NONE and is_there:
            by_workspace[memory.workspace_id].append(memory.public_id)
    for workspace_id, ids in by_workspace.items():
        emit(workspace_id, event, ids, action=action)


def text_for_webhook(workspace: Workspace, public_id: str) -> Mapping[str, Any] | None:
    """Return the fields of a live, shared memory for a webhook. Return None if it is gone or contains a credential."""
    memory = Memory.objects.live().filter(workspace=workspace, owner=None, public_id=public_id).first()
    if memory is None or (memory.secret_rules != RULES and kind_in(memory)):
        return None
    return {name: getattr(memory, name) for name in ("content", "key", "category", "tags")}


def announce_auto_saved(memories: Sequence[Memory], *, chat_id: str) -> None:
    """Publish ``x_memory.auto_saved`` after a background save, to the open pages of people who may see the memories."""
    if not memories:
        return
    first = memories[0]
    data = {
        "workspace_id": first.workspace.public_id,
        "chat_id": chat_id,
        "source_type": first.source_type,
        "memory_ids": [memory.public_id for memory in memories],
        "count": len(memories),
    }
    pubsub.publish(_channel(first), "x_memory.auto_saved", data)


def _channel(memory: Memory) -> str:
    """Return the channel for events about a memory: its owner's for a personal memory, else the workspace's."""
    return f"user:{memory.owner.public_id}" if memory.owner else f"workspace:{memory.workspace.public_id}"


OTHER_WORDS = frozenset({"category", "summary"})  # shown with the content as the author's words
# Links to other memories. The history leaves them out, because it records only values.
LINKS = frozenset({"may_replace", "replaced_by"})
MOST_WORDINGS = 50  # recorded per memory; further ones add no information


def _rows_to_lock(pk: int, workspace: int, *, deleted: bool | None) -> QuerySet[Memory]:
    rows = Memory.objects.select_for_update(of=("self",)).select_related(
        "workspace", "author", "edited_by", "imported_by", "may_replace"
    )
    if deleted is not None:
        rows = rows.filter(deleted_at__isnull=not deleted)
    return rows.filter(pk=pk, workspace=workspace)


_LOCKED = {
    deleted: PreparedQuery(partial(_rows_to_lock, deleted=deleted), pk=int, workspace=int)
    for deleted in (None, False, True)
}


def locked_row(memory: Memory, *, deleted: bool | None = None) -> Memory:
    """Return the stored memory, locked until commit. Raises NotFound if it is gone or does not match ``deleted``."""
    locked = _LOCKED[deleted].first(pk=memory.pk, workspace=memory.workspace_id)
    if locked is None:
        raise NotFound(_("This memory has since been forgotten."))
    return locked


def locked_pair(older: Memory, newer: Memory) -> tuple[Memory, Memory]:
    """Return two live memories, locked in a fixed order, to prevent deadlocks. Raises NotFound if one is deleted."""
    rows = {row.pk: locked_row(row, deleted=False) for row in sorted((older, newer), key=lambda row: -row.pk)}
    return rows[older.pk], rows[newer.pk]


def change(
    memory: Memory,
    changes: dict[str, Any],
    *,
    by: User | None,
    now: datetime,
    writer: User | None = None,
    imported_by: User | None = None,
    imported_at: datetime | None = None,
    embedded: Embedded | None = None,
    action: str = RevisionAction.EDIT,
    note: Mapping[str, Any] | None = None,
) -> None:
    """Apply validated changes to a locked row, and record a revision.

    New content clears the source excerpt, the link to an older memory and, unless the changes set it, the summary.
    ``embedded`` is the vector of the new content. ``writer`` is the person who wrote it; ``imported_by`` imported it in
    that person's name. ``note`` has further entries for ``Revision.before``.
    """
    if "content" in changes:
        changes = {"summary": None, **changes, "source_excerpt": "", "may_replace": None}
        changes = _validity_after(memory, changes, now) | changes
    before = {name: _plain(getattr(memory, name)) for name in changes if name not in LINKS}
    if "content" in changes:
        is_own = writer is not None and writer.pk == memory.author_id
        changes |= {"edited_by": None if is_own else writer, "edited_at": None if is_own else now}
        changes |= {"imported_by": imported_by, "imported_at": imported_at}
    elif not memory.is_imported and OTHER_WORDS & changes.keys() and writer not in (None, memory.written_by):
        changes |= {"edited_by": writer, "edited_at": now}  # the words of another person
    check_validity(*(changes.get(name, getattr(memory, name)) for name in ("valid_from", "valid_to")))
    unindex_words([memory])
    for name, value in changes.items():
        setattr(memory, name, value)
    memory.content_hash = content_hash(memory.content)
    memory.updated_at = next_update(memory, now)
    memory.save(update_fields=[*changes, "content_hash", "updated_at"])
    if "content" in changes:
        put_in_index(memory, embedded)
    else:
        index_words([memory])
    Revision.objects.create(memory=memory, action=action, by=by, at=now, before={**before, **(note or {})})
    audit(Verb.MEMORY_EDITED, memory, by, fields=[*before])


def _validity_after(memory: Memory, changes: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the validity that a new text states. Return {} if a person or a replacement had set the old validity."""
    if not {"valid_from", "valid_to"}.isdisjoint(changes):
        return {}
    if (memory.valid_from, memory.valid_to) != read_validity(memory.content, memory.created_at):
        return {}
    return read_validity(changes["content"], now)._asdict()


def _replacement(older: Memory, newer: Memory | None, *, now: datetime) -> dict[str, Any]:
    """Return the field changes that mark ``older`` as replaced by ``newer`` or, for None, undo its replacement.

    The older memory ends when the newer one becomes valid, or now, unless it ends earlier, but never before its own
    start. Undoing restores its previous end. Raises Invalid if both are the same memory, if they differ in ``place``,
    or if ``newer`` is itself replaced by ``older``.
    """
    if newer is None:
        past = older.revisions.filter(action=RevisionAction.REPLACE).first() if older.replaced_by_id else None
        if past is None or "valid_to" not in past.before:  # the replacement did not change its end
            return {"replaced_by": None}
        until = past.before["valid_to"]
        return {"replaced_by": None, "valid_to": datetime.fromisoformat(until) if until else None}
    if newer.pk == older.pk or newer.place != older.place or newer.replaced_by_id == older.pk:
        message = _("must be another memory of the same place, not replaced by this one")
        raise Invalid(fields={"replaced_by": message})
    begins = newer.valid_from or now
    until = begins if older.valid_to is None else min(begins, older.valid_to)
    return {"replaced_by": newer, "valid_to": max(until, older.valid_from or until)}


def replace(older: Memory, *, newer: Memory | None, by: User | None, now: datetime) -> None:
    """Mark a locked memory as replaced by ``newer``, or undo its replacement if ``newer`` is None.

    If ``newer`` has no link yet, it is linked to this memory, so that its card shows the replacement with an Undo
    button. Call this in a transaction.
    """
    changes = _replacement(older, newer, now=now)
    changes = {name: value for name, value in changes.items() if getattr(older, name) != value}
    if changes:
        action = RevisionAction.RESTORE if newer is None else RevisionAction.REPLACE
        change(older, changes, by=by, now=now, action=action)
        announce(older, "edit")
    if newer is not None and newer.may_replace_id is None:
        newer.may_replace = older
        newer.save(update_fields=["may_replace"])


def update_in_place(
    memory: Memory,
    changes: Mapping[str, Any],
    embedded: Embedded | None,
    previous_key_owner: Memory | None,
    *,
    by: User | None,
    words: Draft | Memory,
    now: datetime,
) -> Memory:
    """Apply changes to a live memory, and return it. ``previous_key_owner``, if given, first loses its key.

    ``words`` is the draft or memory that says who wrote or imported the new content.
    """
    locked = locked_row(memory, deleted=False)
    if previous_key_owner is not None:
        move_key(previous_key_owner, to=locked, by=by, now=now)
    changes = {name: value for name, value in changes.items() if getattr(locked, name) != value}
    if changes:
        change(
            locked,
            changes,
            by=by,
            now=now,
            writer=words.written_by,
            imported_by=words.imported_by,
            imported_at=words.imported_at,
            embedded=embedded,
        )
        announce(locked, "edit")
    return locked


def move_key(key_owner: Memory, *, to: Memory, by: User | None, now: datetime) -> None:
    """Remove the key of ``key_owner``, because the memory ``to`` takes it, and record this in the history."""
    locked = locked_row(key_owner)
    if locked.key is not None:
        note = key_moved_to(to, locked)
        change(locked, {"key": None}, by=by, now=now, action=RevisionAction.KEY, note=note)
        announce(locked, "edit")


def key_moved_to(other: Memory, memory: Memory) -> dict[str, Any]:
    """Return the history entry of ``memory`` saying that its key moved to ``other``."""
    return {"key": memory.key, "key_went_to": other.public_id}


def record_wordings(wordings: Iterable[tuple[Memory, str]], *, by: User | None, now: datetime) -> None:
    """Record other wordings of memories in their history, each wording once. ``wordings`` yields (memory, wording)."""
    new = {
        (memory.pk, text): memory for memory, text in wordings if content_hash(text) != memory.content_hash
    }
    if not new:
        return
    rows = Revision.objects.filter(action=RevisionAction.ALSO_SAID, memory__in={pk for pk, _ in new})
    there = list(rows.values_list("memory_id", "before__content"))
    many = {pk for pk, number in Counter(pk for pk, _ in there).items() if number >= MOST_WORDINGS}
    Revision.objects.bulk_create(
        Revision(memory=memory, action=RevisionAction.ALSO_SAID, by=by, at=now, before={"content": text})
        for (pk, text), memory in new.items()
        if (pk, text) not in there and pk not in many
    )


@contextmanager
def one_owner_per_key() -> Iterator[None]:
    """Run a transaction, and raise Conflict if another one has taken the same key at the same time."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if KEY_IS_UNIQUE not in str(error):
            raise
        raise key_is_taken() from None


def key_is_taken() -> Conflict:
    return Conflict(_("Another memory already has this key."), fields={"key": _("is taken")})


def audit(verb: Verb, memory: Memory, by: User | None, *, target: str = "", **details: Any) -> None:
    """Record a person's action on a memory in the audit log, without the workspace if it is personal."""
    if by is not None:
        workspace = memory.workspace if memory.owner_id is None else None
        record(verb, by=by, workspace=workspace, target=target or memory.public_id, details=details)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def restore_memory(memory: Memory, *, by: User | None, now: datetime) -> Memory:
    """Undo a soft delete. The memory loses its key if another memory has taken the key since.

    Raises Conflict if the memory is a proposal, SecretRefused if the current rules find a credential, and WasForgotten
    if a program restores a permanently forgotten text.
    """
    with one_owner_per_key():
        one_writer_at_a_time(memory.workspace)
        locked = locked_row(memory)
        if locked.review != Review.NONE:
            raise Conflict(_("This is a proposal. Approve or reject it instead."), code="in_review")
        if locked.deleted_at is not None:
            before = _prepare_restore(locked, by=by, now=now)
            locked.deleted_at, locked.updated_at = None, next_update(locked, now)
            locked.save(update_fields=["deleted_at", "updated_at", "key"])
            locked.embeddings.update(live=True)
            if not locked.embeddings.filter(model=active_model() or "").exists():
                queue_embedding([locked.pk])
            index_words([locked])
            Revision.objects.create(
                memory=locked, action=RevisionAction.RESTORE, by=by, at=now, before=before
            )
            audit(Verb.MEMORY_RESTORED, locked, by)
            announce(locked, "restore")
    return locked


def _prepare_restore(memory: Memory, *, by: User | None, now: datetime) -> dict[str, Any]:
    """Check that a locked memory may be restored, and settle who has its key. Return what changed, for the history."""
    forgotten = tombstones.forbids_restore(memory, by=by)
    verdict = decide(memory, Stored(memory, None, now), now=now, forgotten=forgotten, forced=True)
    match verdict:
        case Refused(error):
            raise error
        case New(taken_by=Memory() as other):
            before = key_moved_to(other, memory)
            memory.key = None
            return before
        case New(previous_key_owner=Memory() as previous_key_owner):
            move_key(previous_key_owner, to=memory, by=by, now=now)
    return {}


def replace_older(memory: Memory, *, by: User | None, now: datetime) -> Memory:
    """Mark the older memory that this one may replace as replaced. ``hold_again`` undoes this."""
    with transaction.atomic():
        locked = locked_row(memory, deleted=False)
        if (older := locked.possibly_replaced) is not None:
            replace(locked_row(older, deleted=False), newer=locked, by=by, now=now)
        return locked_row(memory, deleted=False)


def hold_again(memory: Memory, *, by: User | None, now: datetime) -> Memory:
    """Undo the replacement of the older memory by this one. The two stay linked as a possible replacement."""
    with transaction.atomic():
        locked = locked_row(memory, deleted=False)
        if (older := locked.replaced) is not None:
            replace(locked_row(older), newer=None, by=by, now=now)
        return locked_row(memory, deleted=False)


def keep_both(memory: Memory, *, by: User | None, now: datetime) -> Memory:
    """Remove the link to the older memory, because both are valid. Nothing else changes."""
    with transaction.atomic():
        return _point(locked_row(memory, deleted=False), None)


def link(memory: Memory, *, to: Memory) -> Memory:
    """Link a memory to an older one that it may replace. This undoes ``keep_both``."""
    with transaction.atomic():
        locked = locked_row(memory, deleted=False)
        if locked.may_replace is None:
            _point(locked, to)
        return locked


def _point(memory: Memory, older: Memory | None) -> Memory:
    memory.may_replace = older
    memory.save(update_fields=["may_replace"])
    announce(memory, "edit")
    return memory


def set_sources(memory: Memory, ids: Sequence[str], *, now: datetime) -> Memory:
    """Replace the sources that API callers named. Raises Invalid for wrong ids, or NotFound if it is deleted."""
    ids = clean_sources(ids)
    with transaction.atomic():
        locked = locked_row(memory, deleted=False)
        before = list(locked.sources.values_list("source_id", flat=True))
        if ids != before:
            locked.sources.all().delete()
            add_sources(locked, ids)
            memory.updated_at = locked.updated_at = next_update(locked, now)
            locked.save(update_fields=["updated_at"])
    return memory
