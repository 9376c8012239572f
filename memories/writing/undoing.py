"""Restoring deleted memories, and deciding whether a linked memory replaces the older one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from memories.indexing import index_words, queue_embedding
from memories.models import Memory, Review, Revision
from memories.models.memory import RevisionAction
from memories.writing import tombstones
from memories.writing.announcing import announce
from memories.writing.changing import audit, give_key_up, gone_to, locked_row, one_holder_a_key, replace
from memories.writing.decide import Forgotten, New, Refused, Stored, decide
from memories.writing.similar import one_writer_at_a_time
from memories.writing.tombstones import WasForgotten
from memories.writing.versions import next_update
from memoryhub.errors import Conflict
from workspaces.audit import Verb
from workspaces.index.embedding import active_model
from workspaces.models import User


def restore_memory(memory: Memory, *, by: User | None, now: datetime) -> Memory:
    """Undo a soft delete. Twice does nothing more. It comes back without its key where another has that by now."""
    with one_holder_a_key():
        one_writer_at_a_time(memory.workspace)
        locked = locked_row(memory)
        if locked.review != Review.NONE:
            raise Conflict(_("This is a proposal. Approve or reject it instead."), code="in_review")
        if locked.deleted_at is not None:
            before = _bring_back(locked, by=by, now=now)
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


def _bring_back(memory: Memory, *, by: User | None, now: datetime) -> dict[str, Any]:
    """Ready a locked row to be live again as it is; what of it had to change, for its history."""
    forgotten = tombstones.stand_against_row(memory, by=by)
    verdict = decide(memory, Stored(memory, None, now), now=now, forgotten=forgotten, forced=True)
    match verdict:
        case Forgotten():
            raise WasForgotten
        case Refused(error):
            raise error
        case New(taken_by=Memory() as other):
            before = gone_to(other, memory)
            memory.key = None
            return before
        case New(giver=Memory() as giver):
            give_key_up(giver, to=memory, by=by, now=now)
    return {}


def replace_older(memory: Memory, *, by: User | None, now: datetime) -> Memory:
    """Yes, this one replaces the older it is linked to, which no longer holds. Undo: ``hold_again``."""
    with transaction.atomic():
        locked = locked_row(memory, deleted=False)
        if (older := locked.possibly_replaced) is not None:
            replace(locked_row(older, deleted=False), newer=locked, by=by, now=now)
        return locked_row(memory, deleted=False)


def hold_again(memory: Memory, *, by: User | None, now: datetime) -> Memory:
    """The older one that this one replaced holds again; whether it was replaced is open once more."""
    with transaction.atomic():
        locked = locked_row(memory, deleted=False)
        if (older := locked.replaced) is not None:
            replace(locked_row(older), newer=None, by=by, now=now)
        return locked_row(memory, deleted=False)


def keep_both(memory: Memory, *, by: User | None, now: datetime) -> Memory:
    """No, both are true: the link goes, nothing else changes."""
    with transaction.atomic():
        return _unlink(locked_row(memory, deleted=False))


def link(memory: Memory, *, to: Memory) -> Memory:
    """It may replace an older one: the undo of ``keep_both``."""
    with transaction.atomic():
        locked = locked_row(memory, deleted=False)
        if locked.may_replace is None:
            _point(locked, to)
        return locked


def _unlink(memory: Memory) -> Memory:
    return _point(memory, None)


def _point(memory: Memory, older: Memory | None) -> Memory:
    memory.may_replace = older
    memory.save(update_fields=["may_replace"])
    announce(memory, "edit")
    return memory
