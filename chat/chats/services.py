"""Changes and permanent deletion of chats, events for open pages, ratings and usage of answers.

Callers check access to the chat. These functions only check rights that not all members have.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Literal

from django.db import transaction
from django.db.models import BigIntegerField, DecimalField, Exists, F, OuterRef, Q, QuerySet, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast
from django.dispatch import Signal
from django.urls import reverse
from django.utils.translation import gettext as _

from chat.chats.personal_memories import use_personal
from chat.models import (
    TITLE_LENGTH,
    AnswerRating,
    Chat,
    ChatMark,
    ChatQuerySet,
    Import,
    Message,
    MessageRole,
    MessageStatus,
    ShareLink,
    ToolCall,
)
from chat.models.chats import SHARED
from chat.models.personal_marks import COMMENT_LENGTH, REASONS, Rating
from memories.forgetting import for_good
from memories.forgetting.for_good import Report
from memories.models import Memory
from memories.writing.drafts import UNSTORABLE, cut_at_word
from memoryhub import pubsub
from memoryhub.errors import Forbidden, Invalid, NotFound
from workspaces.access import role_in
from workspaces.actions.purging import Counts, counted, purge_deleted
from workspaces.audit import Verb, record
from workspaces.model_choice import choose_connection
from workspaces.models import Agent, Artifact, Membership, Role, User, Workspace
from workspaces.models.language_models import Connection
from workspaces.quotas import require_room
from workspaces.retention import Kept, is_overdue
from workspaces.spending.budgets import first_of_next
from workspaces.spending.monthly_usage import Line
from workspaces.spending.usage_records import NUMBERS, Bill

made_private = Signal()  # arguments: chat, now; sent within the transaction


def create_chat(
    *,
    workspace: Workspace,
    by: User,
    now: datetime,
    title: str = "",
    agent: Agent | None = None,
    connection: Connection | None = None,
    memory_enabled: bool | None = None,
    is_private: bool = False,
    is_temporary: bool = False,
    use_personal_memories: bool = False,
) -> Chat:
    """Create a chat. Raises Invalid for an invalid title, and QuotaReached if the user may have no more chats."""
    require_room("chats", by)
    chat = Chat.objects.create(
        workspace=workspace,
        created_by=by,
        title=_clean_title(title),
        agent=agent,
        connection=connection,
        memory_enabled=memory_enabled,
        is_private=is_private,
        is_temporary=is_temporary,
        created_at=now,
        active_at=now,
    )
    if use_personal_memories:
        use_personal(chat, allowed=True, by=by)
    publish_chat_list(chat)
    return chat


def rename_chat(chat: Chat, *, title: str) -> None:
    title = _clean_title(title)
    if not title:
        why = _("is required: 1 to %s characters") % TITLE_LENGTH
        raise Invalid(_("Give the chat a title."), fields={"title": why})
    chat.title = title
    chat.save(update_fields=["title"])
    publish_chat_list(chat)


def set_chat_memory(chat: Chat, *, enabled: bool | None) -> None:
    """Set whether this chat uses memory. None restores the user's default."""
    chat.memory_enabled = enabled
    chat.save(update_fields=["memory_enabled"])


def set_agent(chat: Chat, *, agent: Agent | None) -> None:
    """Set or remove the assistant for the next answers."""
    chat.agent = agent
    chat.save(update_fields=["agent"])


def set_connection(chat: Chat, *, connection_id: str | None, by: User) -> None:
    """Set the model for the next answers; None or "" is the workspace's default. Raises Invalid if not allowed."""
    chat.connection = choose_connection(chat.workspace, connection_id, by=by) if connection_id else None
    chat.save(update_fields=["connection"])


def set_private(chat: Chat, *, is_private: bool, by: User, now: datetime) -> None:
    """Make a chat private or shared, together with its research runs and their results.

    Making it private closes its share links and stops runs of users who can no longer read it. Other runs stay
    unchanged. Raises Forbidden unless ``by`` created the chat.
    """
    if chat.created_by_id != by.pk:
        raise Forbidden(_("Only the person who started a chat can make it private or shared."))
    with transaction.atomic():
        publish_chat_list(chat)  # before the change, so that pages of users who lose access are updated too
        place = audit_workspace(chat)
        if chat.is_private and not is_private:  # earlier permissions did not foresee the new readers
            chat.personal_of.clear()
            chat.opened_at = now
        chat.is_private = is_private
        chat.save(update_fields=["is_private", "opened_at"])
        # A run that read personal data while the chat was private stays private.
        runs = chat.runs.all() if is_private else chat.runs.filter(held_personal=False)
        runs.update(is_private=is_private)
        if is_private:  # a private chat has no readers by link
            if closed := ShareLink.objects.filter(chat=chat).delete()[0]:
                words = {"links": closed}
                record(Verb.LINK_CLOSED, by=by, workspace=place, target=chat.public_id, details=words)
            made_private.send(Chat, chat=chat, now=now)
        publish_chat_list(chat)


def delete_chat(chat: Chat, *, by: User, now: datetime) -> None:
    """Soft-delete a chat. Its memories stay, since they belong to the workspace or to a person, not to the chat."""
    require_own(chat, by)
    with transaction.atomic():
        if soft_delete(chat, now=now):
            record(Verb.CHAT_DELETED, by=by, workspace=audit_workspace(chat), target=chat.public_id)


def soft_delete(chat: Chat, *, now: datetime) -> bool:
    """Soft-delete a chat without checking access. Return False if it was deleted already."""
    was_live = bool(Chat.objects.filter(pk=chat.pk, deleted_at=None).update(deleted_at=now))
    chat.deleted_at = chat.deleted_at or now
    publish_chat_list(chat)
    return was_live


def audit_workspace(chat: Chat) -> Workspace | None:
    """Return the workspace in whose audit log to record an action on the chat; None if only its creator may see it."""
    return chat.workspace if chat.is_shared else None


def restore_chat(chat: Chat, *, by: User, now: datetime) -> None:
    require_own(chat, by)
    if is_overdue("chats", chat.workspace, chat.active_at, now=now):
        chat.active_at = now  # otherwise retention would delete it again at once
    with transaction.atomic():
        if not Chat.objects.filter(pk=chat.pk).update(deleted_at=None, active_at=chat.active_at):
            raise NotFound(_("This chat has since been deleted for good."))
        if chat.deleted_at is not None:
            record(Verb.CHAT_RESTORED, by=by, workspace=audit_workspace(chat), target=chat.public_id)
    chat.deleted_at = None
    publish_chat_list(chat)


def publish_chat_list(chat: Chat) -> None:
    """Tell open pages to reload the chat list: those of all members, or those of the creator if the chat is private."""
    place = chat.workspace.public_id
    readers = f"workspace:{place}" if chat.is_shared else f"user:{chat.created_by.public_id}"
    pubsub.publish(readers, "chat.changed", {"workspace_id": place, "chat_id": chat.public_id})


def require_own(chat: Chat, by: User) -> None:
    if chat.created_by_id != by.pk and role_in(by, chat.workspace) != Role.OWNER:
        raise Forbidden(_("Only the person who started a chat or an owner of the workspace can delete it."))


def _clean_title(title: str) -> str:
    title = " ".join(UNSTORABLE.sub("", title).split())
    if len(title) > TITLE_LENGTH:
        why = _("may have at most %s characters") % TITLE_LENGTH
        raise Invalid(_("The title is too long."), fields={"title": why})
    return title


TITLE_FROM_MESSAGE = 60


def title_from(content: str) -> str:
    return cut_at_word(" ".join(content.split()), TITLE_FROM_MESSAGE)


LONG = 10.0  # seconds


def notify_done(user: User, kind: Literal["answer", "run"], url: str, *, took: float) -> None:
    """Tell the user's open pages, on commit, that an answer or run of at least LONG seconds is done. One statement."""
    if took >= LONG:
        pubsub.publish(f"user:{user.public_id}", "work.done", {"kind": kind, "url": url})


def set_rating(
    message: Message,
    *,
    rating: str,
    by: User,
    now: datetime,
    reasons: Collection[str] = (),
    comment: str = "",
) -> AnswerRating:
    """Store a reader's rating and replace an earlier one. The caller checks that ``by`` may read the message.

    Raises Invalid for anything but a finished answer, and for an invalid rating, reason or comment.
    """
    if message.role != MessageRole.ASSISTANT or message.status == MessageStatus.STREAMING:
        raise Invalid(_("Only a finished answer can be rated."))
    if rating not in Rating.values:
        raise Invalid(fields={"rating": _("must be one of %s") % ", ".join(Rating.values)})
    offered = [str(reason) for reason in REASONS[Rating(rating)]]
    if not set(reasons) <= set(offered):
        raise Invalid(fields={"reasons": _("must be some of %s") % ", ".join(offered)})
    comment = " ".join(UNSTORABLE.sub("", comment).split())
    if len(comment) > COMMENT_LENGTH:
        raise Invalid(fields={"comment": _("may have at most %s characters") % COMMENT_LENGTH})
    fields = {
        "rating": rating,
        "reasons": [reason for reason in offered if reason in reasons],
        "comment": comment,
        "model_name": message.model,
        "agent_id": message.chat.agent_id,
        "rated_at": now,
    }
    return AnswerRating.objects.update_or_create(message=message, user=by, defaults=fields)[0]


def remove_rating(message: Message, *, by: User) -> None:
    AnswerRating.objects.filter(message=message, user=by).delete()


def ratings_of(answers: Sequence[int], reader: User) -> dict[int, AnswerRating]:
    """Return this user's ratings of the answers, by the answers' primary keys. One query."""
    rows = AnswerRating.objects.filter(message__in=answers, user=reader)
    return {rating.message_id: rating for rating in rows}


LISTED = 20
_SUMS = {name: Sum(Cast(KT(f"usage__{name}"), BigIntegerField()), default=0) for name in NUMBERS}
_COST = Sum(Cast(KT("usage__cost"), DecimalField(max_digits=24, decimal_places=8)), default=Decimal(0))


def usage_of(chat: Chat) -> Bill:
    """Return the total usage of all answers of a chat, including earlier versions. One query."""
    answers = Message.objects.filter(chat=chat, usage__isnull=False)
    return _bill(answers.aggregate(**_SUMS, cost=_COST))


def most_expensive_chats(user: User, workspace: Workspace | None, first: date) -> list[Line]:
    """Return the ``LISTED`` most expensive chats of the month that starts on ``first``. One query.

    Includes the chats of ``workspace`` that the user may read or, if it is None, all chats that the user created.
    """
    chats = Chat.objects.visible_to(user).live()
    chats = chats.filter(workspace=workspace) if workspace else chats.filter(created_by=user)
    begins, ends = (datetime.combine(day, time(), tzinfo=UTC) for day in (first, first_of_next(first)))
    answers = Message.objects.filter(chat__in=chats, usage__isnull=False)
    answers = answers.filter(created_at__gte=begins, created_at__lt=ends).order_by()
    rows = answers.values("chat__public_id", "chat__title").annotate(**_SUMS, cost=_COST)
    size = F("tokens_in") + F("tokens_out")
    return [
        Line(
            row["chat__title"] or _("New chat"),
            _bill(row),
            id=row["chat__public_id"],
            address=reverse("chat:chat", args=[row["chat__public_id"]]),
        )
        for row in rows.order_by("-cost", -size)[:LISTED]
    ]


def _bill(sums: Any) -> Bill:
    return Bill(**{name: int(sums[name]) for name in NUMBERS}, cost=sums["cost"])


def memories_of(chat: Chat, by: User) -> QuerySet[Memory]:
    """Return the memories from this chat that ``by`` may permanently forget, including deleted ones."""
    return Memory.objects.forgettable_by(by).filter(source_chat_id=chat.public_id)


def forget_chat(chat: Chat, *, by: User, now: datetime, memories: bool = False) -> Report:
    """Permanently delete a chat with its messages and all data derived from them.

    ``memories``: also forget the memories from this chat that ``by`` may forget. Other memories lose their excerpt and
    source. Raises Forbidden unless ``by`` created the chat or owns the workspace, and NotFound if the chat is gone.
    """
    require_own(chat, by)
    with transaction.atomic():
        wanted = memories_of(chat, by) if memories else Memory.objects.none()
        gone, removed = _remove(chat, wanted, by=by, now=now)
        gone.removed += removed
        words = {name.replace(" ", "_"): number for name, number in gone.removed.items()}
        place = audit_workspace(chat)
        record(Verb.CHAT_FORGOTTEN, by=by, workspace=place, target=chat.public_id, details=words)
    return for_good.report_on(gone, by=by, now=now)


def purge(*, now: datetime, seconds: float) -> int:
    """Permanently delete chats deleted ``MEMORYHUB_PURGE_AFTER_DAYS`` ago, and return how many. Memories stay."""

    def remove(keys: list[int]) -> None:
        for chat in Chat.objects.filter(pk__in=keys):
            _remove(chat, Memory.objects.none(), by=None, now=now)

    return purge_deleted(Chat.objects.all(), remove, "chats", now=now, seconds=seconds, most=1)


def leave_chats(*, workspace_ids: list[int], user_id: int | None, by: User) -> Counts:
    """Delete or hand over chats and imports before workspaces or a user are deleted. Return the counts of deleted rows.

    Other users' private chats and imports in the workspaces are deleted but not counted, because their number is
    private. If ``user_id`` is given, that user's private chats are deleted, and the shared ones pass to another owner.
    """
    Chat.objects.filter(~SHARED, workspace_id__in=workspace_ids).exclude(created_by=by).delete()
    Import.objects.filter(workspace_id__in=workspace_ids).exclude(user=by).delete()
    if user_id is None:
        return Counter()
    own = Chat.objects.filter(created_by_id=user_id)
    removed = counted(own.filter(~SHARED).delete()[1])
    owners = Membership.objects.filter(role=Role.OWNER).exclude(user_id=user_id).order_by("-pk")
    owners = owners.filter(workspace__chats__created_by_id=user_id)
    for workspace_id, heir_id in dict(owners.values_list("workspace_id", "user_id")).items():
        own.filter(workspace_id=workspace_id).update(created_by_id=heir_id)
    return removed


def _remove(
    chat: Chat, wanted: QuerySet[Memory], *, by: User | None, now: datetime
) -> tuple[for_good.Gone, Counts]:
    """Delete the chat and its messages, then the data derived from them, and the memories ``wanted``.

    Return what was deleted: the derived data, and the counts of other rows. Messages are deleted first: if an answer is
    still being written, its process finds no row and queues no extraction. Raises NotFound if the chat no longer
    exists.
    """
    locked = Chat.objects.select_for_update(of=("self",)).filter(pk=chat.pk).first()
    if locked is None:
        raise NotFound(_("This chat has since been deleted."))
    noted_under = [
        *locked.messages.values_list("public_id", flat=True),
        *ToolCall.objects.filter(message__chat=locked).values_list("public_id", flat=True),
        *locked.compactions.values_list("public_id", flat=True),
    ]
    publish_chat_list(chat)
    removed = counted(locked.delete()[1])
    Artifact.objects.filter(source_chat_id=chat.public_id).update(source_chat_id="", source_message_id="")
    gone = for_good.forget_source(noted_under, chat.public_id, memories=wanted, by=by, now=now)
    return gone, removed


def _unpinned() -> ChatQuerySet:
    """Return the chats that a retention rule may delete: those that are neither pinned nor temporary."""
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
