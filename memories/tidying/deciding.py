"""What a person does about what they find while tidying up. All of it can be undone."""

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
    """Forget it (softly); its words stay in the history of the one that says the same. Undo: restore it."""
    if memory.pk == into.pk or memory.place != into.place:
        raise Invalid(_("Only two memories of the same place can be merged."))
    with transaction.atomic():
        note_wordings([(into, memory.content)], by=by, now=now)
        return gate.delete_memory(memory, by=by, now=now)


def keep(memory: Memory, *, beside: Memory | None = None, by: User, now: datetime) -> KeptAsIs:
    """It is still good, or both may stand beside each other: neither is brought up again as it reads now.

    Of two the newer is kept beside the older, and a link between them goes. Undo: ``take_back``.
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
    """NotFound outside what this person may see, Forbidden for who may not write."""
    rows = KeptAsIs.objects.filter(
        pk=number, memory__in=Memory.objects.visible_to(user), memory__workspace=workspace
    )
    found = rows.select_related("memory__workspace", "other").first()
    if found is None:
        raise NotFound(_("This has been undone already."))
    require(workspace.role, Role.EDITOR)
    return found


def take_back(kept: KeptAsIs) -> None:
    """Undo of ``keep``: it is brought up again, and two that were linked are."""
    with transaction.atomic():
        if kept.was_linked and kept.other is not None:
            changing.link(kept.memory, to=kept.other)
        kept.delete()
