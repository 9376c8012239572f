"""Admin pages of chats, messages, runs and ratings, for moderation. Texts are read-only."""

import re
from datetime import datetime
from typing import Any, cast

from django.contrib import admin
from django.db.models import Max, Model, Q, QuerySet, Value
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import Truncator

from chat.chats import services
from chat.models import AnswerRating, Chat, Message, Run
from chat.models.chats import SHARED
from chat.models.personal_marks import RatingReason
from memoryhub.database.queries import EXACT_COUNT_UP_TO
from memoryhub.ids import PATTERN
from workspaces.admin.base import EXCERPT, ConditionFilter, Messages, ReadOnlyAdmin, action
from workspaces.audit import Verb, record
from workspaces.models import User

WORDS_AMONG_NEWEST = 20_000
NOT_PRIVATE_OF_CHAT = Q(chat__is_private=False, chat__is_temporary=False)
NUMBER = re.compile("[0-9]{1,17}")


def may_read_private(request: HttpRequest) -> bool:
    """Return whether the administrator has the permission to read private and temporary chats."""
    return request.user.has_perm("chat.read_private_chat")


@admin.register(Chat)
class ChatAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "workspace", "created_by", "kind", "memory_enabled", "active_at", "deleted_at")
    list_select_related = ("workspace", "created_by")
    list_filter = (("deleted_at", admin.EmptyFieldListFilter), "is_private")
    ids = {"chat": "public_id", "ws": "workspace__public_id", "usr": "created_by__public_id"}
    search_help_text = "A part of the title, or the id (chat_, ws_, usr_)."
    actions = ("delete_softly", "restore")
    fields = (
        "title",
        "public_id",
        "workspace",
        "created_by",
        "agent",
        "memory_enabled",
        "kind",
        "created_at",
        "active_at",
        "deleted_at",
        "its_messages",
    )
    readonly_fields = ("kind", "its_messages")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        return rows if may_read_private(request) else rows.filter(SHARED)

    def search(self, rows: QuerySet[Any], text: str) -> QuerySet[Any]:
        return super().search(rows, text) if PATTERN.fullmatch(text) else rows.filter(title__icontains=text)

    @admin.display(description="kind")
    def kind(self, chat: Chat) -> str:
        kind = "temporary" if chat.is_temporary else "private" if chat.is_private else "shared"
        return f"{kind}, imported" if chat.is_imported else kind

    @admin.display(description="messages")
    def its_messages(self, chat: Chat) -> str:
        url = reverse("admin:chat_message_changelist")
        return format_html('<a href="{}?chat={}">Messages of this chat</a>', url, chat.pk)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return whether the administrator may use the soft-delete action. No admin page deletes permanently."""
        return obj is None and request.user.has_perm("chat.delete_chat")

    @action(
        "Delete (can be restored)",
        "delete",
        asks="They leave everybody's lists at once. Their messages are kept, and they can be restored.",
    )
    def delete_softly(self, request: HttpRequest, rows: QuerySet[Chat]) -> Messages:
        wanted = rows.filter(deleted_at=None).select_related("workspace", "created_by")

        def delete(chat: Chat, *, by: User, now: datetime) -> None:
            services.delete_chat(chat, by=chat.created_by, now=now)

        yield from self.each(request, rows, wanted, delete, "deleted")

    @action("Restore", "change", asks="They are in their people's lists again.")
    def restore(self, request: HttpRequest, rows: QuerySet[Chat]) -> Messages:
        wanted = rows.filter(deleted_at__isnull=False).select_related("workspace", "created_by")

        def restore(chat: Chat, *, by: User, now: datetime) -> None:
            services.restore_chat(chat, by=chat.created_by, now=now)

        yield from self.each(request, rows, wanted, restore, "restored")


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    list_display = ("opening", "chat", "role", "author", "imported_by", "imported_at", "status", "created_at")
    list_select_related = ("chat", "author", "imported_by")
    list_filter = ("role", "status")
    links = ("chat",)
    ids = {"msg": "public_id", "chat": "chat__public_id", "usr": "author__public_id"}
    search_help_text = (
        f"An id (msg_, chat_, usr_), or a part of the text among the newest {WORDS_AMONG_NEWEST:,}."
    )
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Exclude private chats, except the one that the URL names, for administrators who may read private chats."""
        return super().get_queryset(request).filter(self._named_in_url(request) | NOT_PRIVATE_OF_CHAT)

    def _named_in_url(self, request: HttpRequest) -> Q:
        """Return a filter for the one chat or message that the URL names.

        It matches nothing if there is no such chat or message, or the administrator may not read private chats.
        """
        match = request.resolver_match
        chats, rows = request.GET.getlist("chat"), [match.kwargs.get("object_id", "")] if match else []
        if not may_read_private(request) or len(chats) > 1:
            return Q(pk=None)
        for key, values in (("chat", chats), ("pk", rows)):
            if values and NUMBER.fullmatch(values[0]):
                return Q(**{key: int(values[0])})
        return Q(pk=None)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        self._record_opening(request)
        return super().changelist_view(request, extra_context)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *args: Any, **more: Any
    ) -> Any:
        self._record_opening(request)
        return super().changeform_view(request, object_id, *args, **more)

    def _record_opening(self, request: HttpRequest) -> None:
        """Record in the audit log that an administrator opened a private chat."""
        private = Message.objects.exclude(NOT_PRIVATE_OF_CHAT).filter(self._named_in_url(request))
        target = private.values_list("chat__public_id", flat=True).first()
        if target is not None and self.has_view_permission(request):
            by = cast("User", request.user)
            record(Verb.MODERATED, by=by, target=target, details={"read": "private_chat"})

    @admin.display(description="message")
    def opening(self, message: Message) -> str:
        return Truncator(message.content).chars(EXCERPT) or "(empty)"

    def search(self, rows: QuerySet[Any], text: str) -> QuerySet[Any]:
        if not text or PATTERN.fullmatch(text):
            return super().search(rows, text)
        newest = Message.objects.aggregate(newest=Max("pk"))["newest"] or 0
        # Search the visible rows only. Hidden matches would use up the limit, and so reveal that they exist.
        parts = rows.filter(pk__gt=newest - WORDS_AMONG_NEWEST, content__icontains=text)
        # Search the text once for the keys, not again for the count and for the list.
        keys = list(parts.order_by("-pk").values_list("pk", flat=True)[:EXACT_COUNT_UP_TO])
        return rows.filter(pk__in=keys)


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Admin of runs. Shows no results and no run memory; members read these in the run's workspace."""

    list_display = ("public_id", "workspace", "user", "mode", "status", "rounds", "progressed_at", "error")
    list_select_related = ("workspace", "user")
    list_filter = ("status", "mode")
    ids = {"run": "public_id", "ws": "workspace__public_id", "usr": "user__public_id"}
    actions = None
    fields = (
        "public_id",
        "workspace",
        "user",
        "mode",
        "status",
        "error",
        "rounds",
        "tokens_in",
        "tokens_out",
        "created_at",
        "progressed_at",
        "finished_at",
    )


class ReasonFilter(ConditionFilter):
    title = parameter_name = "reason"
    conditions = {
        reason.value: (reason.label, Q(reasons__contains=[reason.value])) for reason in RatingReason
    }


@admin.register(AnswerRating)
class AnswerRatingAdmin(ReadOnlyAdmin):
    """Admin of ratings. Comments are shown to administrators who may read the rated message."""

    fields = list_display = (
        "rating",
        "why",
        "comment_if_allowed",
        "model_name",
        "agent",
        "answer",
        "user",
        "rated_at",
    )
    list_select_related = ("user", "message", "agent")
    list_filter = ("rating", ReasonFilter, "model_name")
    ids = {
        "msg": "message__public_id",
        "chat": "message__chat__public_id",
        "usr": "user__public_id",
        "agent": "agent__public_id",
    }
    actions = None
    readonly_fields = ("why", "comment_if_allowed", "answer")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Annotate each rating with whether the administrator may read its comment."""
        rows = super().get_queryset(request)
        if not request.user.has_perm("chat.view_message"):
            return rows.annotate(may_read=Value(False))
        shared = Q(message__chat__is_private=False, message__chat__is_temporary=False)
        return rows.annotate(may_read=Value(True) if may_read_private(request) else shared)

    @admin.display(description="reasons")
    def why(self, rating: Any) -> str:
        return ", ".join(str(RatingReason(reason).label) for reason in rating.reasons)

    @admin.display(description="comment")
    def comment_if_allowed(self, rating: Any) -> str:
        return str(rating.comment) if rating.may_read else "(hidden)" if rating.comment else ""

    @admin.display(description="answer")
    def answer(self, rating: Any) -> str:
        if not rating.may_read:
            return str(rating.message.public_id)
        url = reverse("admin:chat_message_change", args=[rating.message_id])
        return format_html('<a href="{}">{}</a>', url, rating.message.public_id)
