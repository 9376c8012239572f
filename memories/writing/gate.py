"""The gate, through which pages, API, tools and jobs save, edit, move and delete memories."""

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from memories.indexing import index_words, put_in_index, unindex_words
from memories.judging.secret_filter import RULES
from memories.models import Memory, Review, Revision, Scope
from memories.models.memory import RevisionAction, live_sql
from memories.writing import changing, decide, tombstones
from memories.writing.drafts import (
    CLEANERS,
    TEXTS,
    Draft,
    add_sources,
    clean_fields,
    is_sensitive,
    refuse_sensitive,
)
from memoryhub.errors import Forbidden, Invalid, NotFound
from memoryhub.monitoring import metrics
from workspaces.access import default_workspace, lock_places, personal_place, require_stays_local
from workspaces.audit import Verb
from workspaces.data_policy import DataPolicy
from workspaces.index.embedding import Embedded, embed_one
from workspaces.models import User, Workspace
from workspaces.quotas import charge

# Automatic memories, which are limited to ``MEMORYHUB_MAX_MEMORIES`` for each workspace, owner and assistant. The
# condition must repeat that of the partial index memory_automatic, or Postgres would not use it.
COUNTED = f"""
    workspace_id = %(workspace)s AND owner_id IS NOT DISTINCT FROM %(owner)s
    AND agent_id IS NOT DISTINCT FROM %(agent)s AND {live_sql("memories_memory")}
    AND (source_type = 'model' OR source_type::text LIKE 'auto\\_%%')
"""


_COUNT = f"SELECT count(*) FROM (SELECT 1 FROM memories_memory WHERE {COUNTED} LIMIT %(most)s) counted"  # noqa: S608


def excess(
    workspace_id: int, owner_id: int | None, agent_id: int | None = None, *, now: datetime, most: int
) -> int:
    """Return by how many memories this scope exceeds the limit, at most ``most``. Without a limit, return 0."""
    if not settings.MAX_MEMORIES:
        return 0
    place = {"workspace": workspace_id, "owner": owner_id, "agent": agent_id}
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, {**place, "now": now, "most": settings.MAX_MEMORIES + most})
        return max(0, int(cursor.fetchone()[0]) - settings.MAX_MEMORIES)


@dataclass(frozen=True)
class _KeepToCap:
    """A callable to run after the commit, which queues an eviction if the scope is above the limit."""

    workspace_id: int
    owner_id: int | None
    agent_id: int | None

    def __call__(self) -> None:
        place = asdict(self)
        if excess(**place, now=timezone.now(), most=1):
            async_task("memories.tasks.evict", task_name="make room", **place)


def enforce_limit(memory: Memory) -> None:
    """Queue an eviction after the commit if the memory's scope is above the limit, which is checked once per scope."""
    if not settings.MAX_MEMORIES:
        return
    job = _KeepToCap(memory.workspace_id, memory.owner_id, memory.agent_id)
    if not any(waiting[1] == job for waiting in connection.run_on_commit):
        transaction.on_commit(job)


@dataclass(frozen=True)
class Saved:
    """The result of saving a draft."""

    memory: Memory
    created: bool
    duplicate: bool = False  # nothing was stored, because ``memory`` says the same
    forgotten: bool = False  # of bulk saves: nothing was stored, and ``memory`` has no row
    pending: bool = False  # ``memory`` is a proposal that waits for review, and is in no list yet


def save_memory(draft: Draft, *, by: User | None, now: datetime, dedupe: str = "key") -> Saved:
    """Store a draft unless its scope already has a memory that says the same.

    ``dedupe="key"``: a live memory with the same key is updated in place, and for an equal or nearly equal text the
    existing memory is returned. ``dedupe="create"`` always creates a row, and moves the key to it. If embedding fails,
    the text is stored anyway and embedded in the background. Costs one embedding.

    Raises Invalid, SecretRefused or Sensitive as ``Draft.cleaned`` does, or WasForgotten if a program saves a
    permanently forgotten text.
    """
    with tombstones.counted(draft.workspace.pk, draft.source_type, now):
        draft = draft.cleaned()
        if draft.owner is not None:
            draft = replace(draft, workspace=default_workspace(draft.owner))
        embedded = embed_one(draft.content, draft.source_excerpt, DataPolicy.here(draft.workspace))
        if dedupe != "create":
            read_ahead(draft, embedded, now=now)
        return save_embedded(draft, embedded, by=by, now=now, dedupe=dedupe)


def read_ahead(draft: Draft, embedded: Embedded | None, *, now: datetime) -> None:
    """Cache the encoder's results, so that it is not called in the transaction, for which other writers wait."""
    decide.Stored(draft, embedded, now).same()


def save_embedded(
    draft: Draft,
    embedded: Embedded | None,
    *,
    by: User | None,
    now: datetime,
    dedupe: str = "key",
    near: bool = True,
    before: int = decide.MOST_KEYS,
) -> Saved:
    """Save a cleaned draft whose vector is known, as ``save_memory`` does.

    Calls no embedding model, so it may run inside a transaction. ``near=False`` finds only equal texts as duplicates.
    Duplicates must have a primary key below ``before``.
    """
    draft = draft.dated(now)
    with changing.one_owner_per_key():
        decide.one_writer_at_a_time(draft.workspace)
        verdict = decide.decide(
            draft,
            decide.Stored(draft, embedded, now, near, before),
            now=now,
            forgotten=tombstones.forbids(draft, by=by),
            forced=dedupe == "create",
        )
        match verdict:
            case decide.Refused(error):
                raise error
            case decide.Known(memory):
                if not draft.waits_for_review:
                    changing.record_wordings([(memory, draft.content)], by=by, now=now)
                return Saved(memory, created=False, duplicate=True)
            case decide.Update(memory, previous_key_owner):
                try:
                    changed = changing.update_in_place(
                        memory, draft.changes, embedded, previous_key_owner, by=by, words=draft, now=now
                    )
                except NotFound:  # deleted in the meantime, so decide again
                    return save_embedded(
                        draft, embedded, by=by, now=now, dedupe=dedupe, near=near, before=before
                    )
                if draft.sources or "sources" in (draft.named or ()):
                    changing.set_sources(changed, draft.sources, now=now)
                return Saved(changed, created=False)
            case decide.Proposal(may_replace):
                return _propose(draft, may_replace, by=by, now=now)
            case decide.New(may_replace, previous_key_owner):
                billed_user = charge("memories", by, draft.author)
                own_row = dedupe == "create" or not near
                row = new_row(draft, may_replace, brought_by=billed_user, now=now, own_row=own_row)
                return Saved(_insert(row, draft, embedded, previous_key_owner, by=by, now=now), created=True)


def edit_memory(
    memory: Memory,
    *,
    by: User | None,
    now: datetime,
    made_from: str = "",
    seen: Collection[str] | None = None,
    confirmed: bool = False,
    **changes: Any,
) -> Memory:
    """Change fields of a memory, named as in ``CLEANERS``. New content is embedded again.

    ``made_from`` is given by programs: the id of the message from which they made the new text, which must still be the
    memory's source. ``replaced_by`` among the changes is the memory that replaces this one, or None to undo a
    replacement. ``seen`` are the versions that the editor may have seen; None allows any. ``confirmed``: the person
    confirmed a personal number in the new text.

    Raises Invalid, SecretRefused or Sensitive for refused fields, Conflict if the key is taken, WasForgotten if a
    program stores a forgotten text, Stale if the version of the memory is not in ``seen``, and NotFound if the memory
    is deleted or has another source than ``made_from``.
    """
    unknown = set(changes) - {*CLEANERS, "replaced_by"}
    if unknown:
        raise TypeError(f"not fields of a memory: {sorted(unknown)}")
    is_link, newer = "replaced_by" in changes, changes.pop("replaced_by", None)
    with tombstones.counted(memory.workspace_id, memory.source_type, now):
        changes = clean_fields(changes, personal=False)
        _check_change(memory, changes, confirmed=confirmed and not made_from)
        policy = DataPolicy.here(memory.workspace)
        embedded = embed_one(changes["content"], "", policy) if "content" in changes else None
        with changing.one_owner_per_key():
            if changes.get("key"):
                decide.one_writer_at_a_time(memory.workspace)
            if newer is None:
                locked = changing.locked_row(memory, deleted=False)
            else:
                locked, newer = changing.locked_pair(memory, newer)
            changing.require_version(locked, seen)
            if is_link:
                changing.replace(locked, newer=newer, by=by, now=now)
            if changes.get("valid_to", now) is None:  # a memory without an end is not replaced
                if newer is not None:
                    message = _("must not be empty where another memory replaces it")
                    raise Invalid(fields={"valid_to": message})
                changes["replaced_by"] = None
            changes = {name: value for name, value in changes.items() if getattr(locked, name) != value}
            if not changes:
                return locked
            if made_from and locked.source_message_id != made_from:
                raise NotFound(_("What this memory came from has since been forgotten."))
            tombstones.check_edit(locked, changes, by=None if made_from else by)
            if changes.get("key") and (key_owner := decide.find_key_owner(locked, key=changes["key"])):
                if not (key_owner.has_expired(now) or key_owner.is_over(now)):
                    raise changing.key_is_taken()
                changing.move_key(key_owner, to=locked, by=by, now=now)
            writer = by
            if made_from:
                writer = locked.author if "content" in changes else locked.written_by
            changing.change(locked, changes, by=by, now=now, writer=writer, embedded=embedded)
            changing.announce(locked, "edit")
        return locked


def move_memory(memory: Memory, *, workspace: Workspace | None, by: User, now: datetime) -> Saved:
    """Make a memory visible to the members of ``workspace``, or, with None, only to its author ``by``.

    A row's scope never changes, so the memory is saved with a new id, and the old row is merged into it. A shared
    memory loses its source excerpt, which can quote a private chat. Costs one embedding. Raises Forbidden unless ``by``
    is its author and an editor of the workspace, and Conflict if its key is taken there or it must not leave.
    """
    if memory.scope == Scope.AGENT or memory.author_id != by.pk or memory.owner_id not in (None, by.pk):
        raise Forbidden(_("Only the person who saved a memory can change who sees it."))
    to = workspace or personal_place(by, said_in=memory.workspace)
    require_stays_local(memory.workspace, to)
    draft = Draft(
        **{name: getattr(memory, name) for name in CLEANERS},
        workspace=to,
        author=by,
        scope=Scope.WORKSPACE if workspace else Scope.USER,
        source_type=memory.source_type,
        source_chat_id=memory.source_chat_id,
        source_message_id=memory.source_message_id,
        source_excerpt="" if workspace else memory.source_excerpt,
        source_details=memory.source_details,
        sources=list(memory.sources.values_list("source_id", flat=True)),
        was_in_use=True,
        edited_by=memory.edited_by,
        edited_at=memory.edited_at,
        imported_by=memory.imported_by,
        imported_at=memory.imported_at,
        named=frozenset(CLEANERS),
    )
    embedded = embed_one(draft.content, draft.source_excerpt, DataPolicy.here(to))
    read_ahead(draft, embedded, now=now)
    with changing.one_owner_per_key():
        lock_places(by, memory.workspace, to)
        if draft.key and decide.find_key_owner(draft):
            raise changing.key_is_taken()
        saved = save_embedded(draft, embedded, by=by, now=now)
        memory.assets.update(memory=saved.memory)
        delete_memory(memory, by=by, now=now, into=saved.memory)
    return saved


def delete_memory(
    memory: Memory,
    *,
    by: User | None,
    now: datetime,
    action: str = RevisionAction.DELETE,
    into: Memory | None = None,
    seen: Collection[str] | None = None,
) -> Memory:
    """Soft-delete a memory, which ``restore_memory`` undoes. A second call does nothing.

    ``into`` is the memory that this one is merged into. Raises Stale if the version is not one of ``seen``.
    """
    with transaction.atomic():
        locked = changing.locked_row(memory)
        if locked.deleted_at is None:
            changing.require_version(locked, seen)
            locked.deleted_at, locked.updated_at = now, changing.next_update(locked, now)
            locked.save(update_fields=["deleted_at", "updated_at"])
            locked.embeddings.update(live=False)
            unindex_words([locked])
            before = {"into": into.public_id} if into is not None else {}
            action = RevisionAction.MERGE if into is not None else action
            Revision.objects.create(memory=locked, action=action, by=by, at=now, before=before)
            changing.audit(Verb.MEMORY_DELETED, locked, by)
            changing.announce(locked, "delete")
    return locked


# fmt: off
# The columns of a memory that have the same name and value in its draft.
CARRIED = (
    "workspace", "scope", "owner", "agent", "author", "edited_by", "edited_at", "imported_by", "imported_at", "content",
    "summary", "key", "category", "importance", "pinned", "expires_at", "valid_from", "valid_to", "source_type",
    "source_chat_id", "source_message_id", "source_excerpt", "content_hash",
)
# fmt: on


def new_row(
    draft: Draft, may_replace: Memory | None, *, brought_by: int | None, now: datetime, own_row: bool = False
) -> Memory:
    """Return an unsaved memory for a cleaned draft. ``own_row``: it is not compared with others later."""
    return Memory(
        **{name: getattr(draft, name) for name in CARRIED},
        tags=list(draft.tags),
        source_details=dict(draft.source_details),
        brought_by=brought_by,
        may_replace=may_replace,
        own_row=own_row,
        secret_rules=RULES,
        created_at=now,
        updated_at=now,
    )


def _insert(
    memory: Memory,
    draft: Draft,
    embedded: Embedded | None,
    previous_key_owner: Memory | None,
    *,
    by: User | None,
    now: datetime,
) -> Memory:
    if previous_key_owner is not None:
        changing.move_key(previous_key_owner, to=memory, by=by, now=now)
    memory.save(force_insert=True)
    add_sources(memory, draft.sources)
    put_in_index(memory, embedded, is_new=True)
    Revision.objects.create(memory=memory, action=RevisionAction.CREATE, by=by, at=now)
    transaction.on_commit(partial(metrics.count_saves, memory.source_type))
    changing.announce(memory, "create")
    if memory.is_automatic:
        enforce_limit(memory)
    return memory


def _propose(draft: Draft, may_replace: Memory | None, *, by: User | None, now: datetime) -> Saved:
    """Store a draft as a proposal for review, unless an equal one is waiting or was rejected."""
    billed_user = charge("memories", by, draft.author)
    proposed = new_row(draft, may_replace, brought_by=billed_user, now=now)
    equals = Memory.objects.exclude(review=Review.NONE).filter(
        workspace=draft.workspace, content_hash=proposed.content_hash
    )
    if equal := next((each for each in equals if each.place == draft.place), None):
        return Saved(equal, created=False, pending=True)
    proposed.review, proposed.deleted_at = Review.PENDING, now
    proposed.save(force_insert=True)
    index_words([proposed])
    Revision.objects.create(memory=proposed, action=RevisionAction.PROPOSE, by=by, at=now)
    changing.announce(proposed, "propose")
    return Saved(proposed, created=False, pending=True)


def _check_change(memory: Memory, changes: dict[str, Any], *, confirmed: bool) -> None:
    """Check changed fields for credentials, also in combination with other fields that contain none."""
    new = {name: value for name, value in changes.items() if getattr(memory, name) != value}
    rest = {name: getattr(memory, name) or "" for name in TEXTS if name not in new}
    texts = {name: text if isinstance(text, str) else "\n".join(text) for name, text in rest.items()}
    rest = {name: rest[name] for name, text in texts.items() if not is_sensitive(text)}
    refuse_sensitive(new, rest, personal=not confirmed)
