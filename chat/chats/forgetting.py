"""Permanent deletion of chats: by a user, after retention, and when their creator leaves."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from chat.chats.services import announce, audit_place, require_own, soft_delete
from chat.models import Chat, ChatMark, ChatQuerySet, Import, ToolCall
from memories.forgetting import forget
from memories.forgetting.forget import Report
from memories.models import Memory
from memoryhub.errors import NotFound
from workspaces.actions.removal import Counts, counted, purge_deleted
from workspaces.audit import Verb, record
from workspaces.models import Artifact, Membership, Role, User
from workspaces.retention import Kept


def memories_of(chat: Chat, by: User) -> QuerySet[Memory]:
    """Return the memories from this chat that ``by`` may forget permanently, including deleted ones."""
    return Memory.objects.forgettable_by(by).filter(source_chat_id=chat.public_id)


def forget_chat(chat: Chat, *, by: User, now: datetime, memories: bool = False) -> Report:
    """Permanently delete a chat with its messages and all data derived from them.

    ``memories``: also forget its memories that ``by`` may forget; the remaining ones lose their excerpt and source.
    Raises Forbidden unless ``by`` is the chat's creator or a workspace owner, and NotFound if the chat is already gone.
    """
    require_own(chat, by)
    with transaction.atomic():
        wanted = memories_of(chat, by) if memories else Memory.objects.none()
        gone, removed = _remove(chat, wanted, by=by, now=now)
        words = {name.replace(" ", "_"): number for name, number in (gone.removed + removed).items()}
        record(Verb.CHAT_FORGOTTEN, by=by, workspace=audit_place(chat), target=chat.public_id, details=words)
    return forget.report_on(gone, removed, by=by, now=now)


def purge(*, now: datetime, seconds: float) -> int:
    """Permanently delete chats that were deleted ``MEMORYHUB_PURGE_AFTER_DAYS`` ago, and return how many.

    Their memories stay.
    """

    def remove(keys: list[int]) -> None:
        for chat in Chat.objects.filter(pk__in=keys):
            _remove(chat, Memory.objects.none(), by=None, now=now)

    return purge_deleted(Chat.objects.all(), remove, "chats", now=now, seconds=seconds, most=1)


def leave_chats(*, workspace_ids: list[int], user_id: int | None, by: User) -> Counts:
    """Remove or hand over chats before these workspaces or this user are deleted, and return the number of removed
    rows.

    In the workspaces, private chats and imports of users other than ``by`` are deleted but not counted. The user's
    private chats are deleted; the shared ones pass to an owner of their workspace. Called by ``actions.removal``.
    """
    alone = Q(is_private=True) | Q(is_temporary=True)
    Chat.objects.filter(alone, workspace_id__in=workspace_ids).exclude(created_by=by).delete()
    Import.objects.filter(workspace_id__in=workspace_ids).exclude(user=by).delete()
    if user_id is None:
        return Counter()
    own = Chat.objects.filter(created_by_id=user_id)
    removed = counted(own.filter(alone).delete()[1])
    owners = Membership.objects.filter(role=Role.OWNER).exclude(user_id=user_id).order_by("-pk")
    heirs = dict(
        owners.filter(workspace__chats__created_by_id=user_id).values_list("workspace_id", "user_id")
    )
    for workspace_id, heir_id in heirs.items():
        own.filter(workspace_id=workspace_id).update(created_by_id=heir_id)
    return removed


def _remove(
    chat: Chat, wanted: QuerySet[Memory], *, by: User | None, now: datetime
) -> tuple[forget.Gone, Counts]:
    """Delete the chat and its messages, then the data derived from them.

    Messages go first, so that an answer that is being written finds its row gone and queues no extraction.
    """
    locked = Chat.objects.select_for_update(of=("self",)).filter(pk=chat.pk).first()
    if locked is None:
        raise NotFound(_("This chat has since been forgotten."))
    noted_under = [
        *locked.messages.values_list("public_id", flat=True),
        *ToolCall.objects.filter(message__chat=locked).values_list("public_id", flat=True),
        *locked.compactions.values_list("public_id", flat=True),
    ]
    announce(chat)
    removed = counted(locked.delete()[1])
    Artifact.objects.filter(source_chat_id=chat.public_id).update(source_chat_id="", source_message_id="")
    gone = forget.forget_source(noted_under, chat.public_id, memories=wanted, by=by, now=now)
    return gone, removed


def _unpinned() -> ChatQuerySet:
    """Return the chats that no user has pinned, since one user's pin keeps a chat for all.

    Temporary chats are left out, because they are deleted after a day anyway.
    """
    pins = ChatMark.objects.filter(chat=OuterRef("pk"), kind=ChatMark.Kind.PINNED)
    return Chat.objects.live().filter(~Exists(pins), is_temporary=False).select_related("created_by")


CHATS = Kept(
    name="chats",
    rows=_unpinned,
    since=F("active_at"),
    shared=Q(is_private=False),
    of=lambda user: Q(created_by=user),
    delete=soft_delete,
)
