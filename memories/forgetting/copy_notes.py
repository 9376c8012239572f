"""Notes of copies: what people may forget quotes a text that somebody else forgot for good. They decide about it."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from memories.access import get_memory
from memories.forgetting import copies
from memories.forgetting.forget import Report, forget_memories, require_right
from memories.models import CopyKind, KeptCopy, Memory
from memories.models.memory import MemoryQuerySet
from memories.writing.announcing import announce
from memoryhub.errors import NotFound
from workspaces.audit import Verb, record
from workspaces.models import Role, User, Workspace


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
            removed = copies.drop_noted(locked, by)
            place = memory.workspace if memory.owner_id is None else None
            details = {name.replace(" ", "_"): number for name, number in removed.items()}
            record(Verb.MEMORY_FORGOTTEN, by=by, workspace=place, target=memory.public_id, details=details)
            announce(memory, "edit")
            return Report(removed)
    return forget_memories([memory], by=by, now=now)


def keep_noted(memory: Memory) -> None:
    """They stay, and nothing is noted of them any more. Twice does nothing more."""
    KeptCopy.objects.filter(memory=memory).delete()
