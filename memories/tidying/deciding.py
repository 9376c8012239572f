"""Decisions about memories while tidying up. Each can be undone."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories.models import KeptAsIs, Memory
from memories.tidying.pairs import texts_of
from memories.writing import changing, gate
from memories.writing.changing import note_wordings
from memoryhub.errors import Invalid, NotFound
from workspaces.access import require
from workspaces.models import Role, User, Workspace


def merge(memory: Memory, *, into: Memory, by: User, now: datetime) -> Memory:
    """Delete a memory and add its text to the history of ``into``, which says the same. Restoring it is the undo.

    Raises Invalid if the two are the same memory or of different places.
    """
    if memory.pk == into.pk or memory.place != into.place:
        raise Invalid(_("Only two memories of the same place can be merged."))
    with transaction.atomic():
        note_wordings([(into, memory.content)], by=by, now=now)
        return gate.delete_memory(memory, by=by, now=now)


def keep(memory: Memory, *, beside: Memory | None = None, by: User, now: datetime) -> KeptAsIs:
    """Record that a memory is still good, or that it and ``beside`` are both valid, until their texts change.

    Of two memories the newer is stored as kept beside the older, and a ``may_replace`` link between them is removed.
    Undo with ``take_back``. Raises Invalid if the two are of different places.
    """
    if beside is not None and memory.place != beside.place:
        raise Invalid(_("Only two memories of the same place can be kept beside each other."))
    if beside is not None and beside.pk == memory.pk:
        beside = None
    if beside is not None and beside.pk > memory.pk:
        memory, beside = beside, memory
    with transaction.atomic():
        linked = beside is not None and memory.may_replace_id == beside.pk
        if linked:
            changing.keep_both(memory, by=by, now=now)
        values = {"texts": texts_of(memory, beside), "was_linked": linked, "by": by, "at": now}
        return KeptAsIs.objects.update_or_create(memory=memory, other=beside, defaults=values)[0]


def get_kept(user: User, number: int, *, workspace: Workspace) -> KeptAsIs:
    """Return a record made by ``keep``.

    Raises NotFound if there is none whose memory the user may see, and Forbidden if the user may not write.
    """
    rows = KeptAsIs.objects.filter(
        pk=number, memory__in=Memory.objects.visible_to(user), memory__workspace=workspace
    )
    found = rows.select_related("memory__workspace", "other").first()
    if found is None:
        raise NotFound(_("This has been undone already."))
    require(workspace.role, Role.EDITOR)
    return found


def take_back(kept: KeptAsIs) -> None:
    """Undo ``keep``, and restore the link between two memories if it was removed."""
    with transaction.atomic():
        if kept.was_linked and kept.other is not None:
            changing.link(kept.memory, to=kept.other)
        kept.delete()
