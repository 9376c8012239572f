"""Admin pages of chats, messages, runs and ratings, for moderation. Texts are read-only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from django.contrib import admin, messages
from django.db.models import Max, Model, Q, QuerySet, Value
from django.db.models.functions import Left
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from chat.chats import services
from chat.models import AnswerRating, Chat, Message, MessageRole, MessageStatus, Run, RunStatus
from chat.models.marks import Rating, RatingReason
from memoryhub.database.queries import EXACT_COUNT_UP_TO
from memoryhub.ids import PATTERN
from workspaces.admin.base import EXCERPT, ReadOnlyAdmin, action, counted, offer_undo, with_rest
from workspaces.admin.filters import AutocompleteFilter, ChoiceFilter, WorkspaceFilter
from workspaces.audit import Verb, record
from workspaces.models import User

WORDS_AMONG_NEWEST = 20_000
RATED_LATELY = 1_000
NOT_PRIVATE = Q(is_private=False, is_temporary=False)


class ChatFilter(AutocompleteFilter):
    parameter_name = "chat"


class StateFilter(ChoiceFilter):
    parameter_name = "state"
    default = "live"
    offered = [("live", "In use"), ("deleted", "Deleted"), ("every", "Everything")]
    rules = {"live": Q(deleted_at=None), "deleted": Q(deleted_at__isnull=False), "every": Q()}


class RoleFilter(ChoiceFilter):
    parameter_name = "role"
    offered = [("", "All"), *MessageRole.choices]


class StatusFilter(ChoiceFilter):
    parameter_name = "status"
    offered = [("", "All"), *MessageStatus.choices]


def may_read_private(request: HttpRequest) -> bool:
    """Return whether the administrator may read private and temporary chats. This needs a permission of its own."""
    return request.user.has_perm("chat.read_private_chat")


def _note_look(request: HttpRequest, chats: QuerySet[Chat]) -> None:
    """Record in the audit log that an administrator opened a private chat."""
    chat = chats.exclude(NOT_PRIVATE).first()
    if chat is not None and may_read_private(request) and request.user.has_perm("chat.view_message"):
        record(
            Verb.MODERATED,
            by=cast("User", request.user),
            target=chat.public_id,
            details={"read": "private_chat"},
        )


@admin.register(Chat)
class ChatAdmin(ReadOnlyAdmin):
    many = "chats"
    list_display = ("__str__", "workspace", "created_by", "kind", "memory_enabled", "active_at", "deleted_at")
    list_select_related = ("workspace", "created_by")
    list_filter = (WorkspaceFilter, StateFilter)
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
        return rows if may_read_private(request) else rows.filter(NOT_PRIVATE)

    def found(self, rows: QuerySet[Any], text: str) -> QuerySet[Any]:
        return super().found(rows, text) if PATTERN.fullmatch(text) else rows.filter(title__icontains=text)

    @admin.display(description="kind")
    def kind(self, chat: Chat) -> str:
        kind = "temporary" if chat.is_temporary else "private" if chat.is_private else "shared"
        return f"{kind}, imported" if chat.is_imported else kind

    @admin.display(description="messages")
    def its_messages(self, chat: Chat) -> str:
        url = reverse("admin:chat_message_changelist")
        return format_html('<a href="{}?chat={}">Messages of this chat</a>', url, chat.pk)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return the permission for the soft-delete action only. The admin has no page that deletes permanently."""
        return obj is None and request.user.has_perm("chat.delete_chat")

    @action(
        "Delete (can be restored)",
        "delete",
        asks="They leave everybody's lists at once. Their messages are kept, and they can be restored.",
    )
    def delete_softly(self, request: HttpRequest, rows: QuerySet[Chat]) -> Iterator[tuple[str, int]]:
        live = list(rows.filter(deleted_at=None).select_related("workspace", "created_by"))
        already = rows.count() - len(live)
        for chat in live:
            services.delete_chat(chat, by=chat.created_by, now=timezone.now())
        offer_undo(self, request, "restore", [chat.pk for chat in live])
        yield (
            with_rest(f"{counted(len(live), 'chat', 'chats')} deleted", already, "already"),
            messages.SUCCESS,
        )

    @action("Restore", "change", asks="They are in their people's lists again.")
    def restore(self, request: HttpRequest, rows: QuerySet[Chat]) -> Iterator[tuple[str, int]]:
        gone = list(rows.filter(deleted_at__isnull=False).select_related("workspace", "created_by"))
        in_use = rows.count() - len(gone)
        for chat in gone:
            services.restore_chat(chat, by=chat.created_by, now=timezone.now())
        offer_undo(self, request, "delete_softly", [chat.pk for chat in gone])
        sentence = f"{counted(len(gone), 'chat', 'chats')} restored"
        yield with_rest(sentence, in_use, "not deleted"), messages.SUCCESS


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    many = "messages"
    list_display = ("opening", "chat", "role", "author", "imported_by", "imported_at", "status", "created_at")
    list_select_related = ("chat", "author", "imported_by")
    list_filter = (ChatFilter, RoleFilter, StatusFilter)
    ids = {"msg": "public_id", "chat": "chat__public_id", "usr": "author__public_id"}
    search_help_text = (
        f"The id of a message (msg_), chat (chat_) or person (usr_), or a part of the text "
        f"among the newest {WORDS_AMONG_NEWEST:,}."
    )
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Exclude private chats, unless one chat or message is opened by an administrator who may read them; that is
        audited.
        """
        rows = super().get_queryset(request)
        match = request.resolver_match
        one_chat = "chat" in request.GET or bool(match and match.url_name != "chat_message_changelist")
        if one_chat and may_read_private(request):
            return rows
        return rows.filter(chat__is_private=False, chat__is_temporary=False)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        asked = request.GET.get("chat", "")
        if asked.isascii() and asked.isdigit() and len(asked) < 18:
            _note_look(request, Chat.objects.filter(pk=int(asked)))
        return super().changelist_view(request, extra_context)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *args: Any, **more: Any
    ) -> Any:
        if object_id and object_id.isascii() and object_id.isdigit() and len(object_id) < 18:
            _note_look(request, Chat.objects.filter(messages=int(object_id)))
        return super().changeform_view(request, object_id, *args, **more)

    def for_list(self, rows: QuerySet[Message]) -> QuerySet[Any]:
        return rows.defer("content", "error").annotate(start=Left("content", EXCERPT + 1))

    @admin.display(description="message")
    def opening(self, message: Any) -> str:
        start = message.start or "(empty)"
        return f"{start[:EXCERPT].rstrip()}…" if len(start) > EXCERPT else start

    def found(self, rows: QuerySet[Any], text: str) -> QuerySet[Any]:
        if not text or PATTERN.fullmatch(text):
            return super().found(rows, text)
        newest = Message.objects.aggregate(newest=Max("pk"))["newest"] or 0
        # Search the visible rows only. Hidden matches would use up the limit, and so reveal that they exist.
        parts = rows.filter(pk__gt=newest - WORDS_AMONG_NEWEST, content__icontains=text)
        # Search the text once for the keys, not again for the count and for the list.
        keys = list(parts.order_by("-pk").values_list("pk", flat=True)[:EXACT_COUNT_UP_TO])
        return rows.filter(pk__in=keys)


class RunStatusFilter(ChoiceFilter):
    parameter_name = "status"
    offered = [
        ("", "All"),
        *((str(value), str(label)) for value, label in RunStatus.choices),
        ("stuck", "Stuck"),
    ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.chosen() == "stuck":
            return queryset.filter(pk__in=Run.objects.stuck(timezone.now()))
        return super().queryset(request, queryset)


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Admin of runs, to find failed and stuck ones. Results and run memory are visible only in the run's workspace."""

    many = "runs"
    list_display = ("public_id", "workspace", "user", "mode", "status", "rounds", "progressed_at", "error")
    list_select_related = ("workspace", "user")
    list_filter = (WorkspaceFilter, RunStatusFilter)
    ids = {"run": "public_id", "ws": "workspace__public_id", "usr": "user__public_id"}
    search_help_text = "The id of a run (run_), workspace (ws_) or person (usr_)."
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


class RatingFilter(ChoiceFilter):
    parameter_name = "rating"
    offered = [("", "All"), *((str(value), str(label)) for value, label in Rating.choices)]


class ReasonFilter(ChoiceFilter):
    parameter_name = "reason"
    offered = [("", "All"), *((str(value), str(label)) for value, label in RatingReason.choices)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(reasons__contains=[self.chosen()]) if self.chosen() else queryset


class ModelFilter(ChoiceFilter):
    """A filter by the models of the newest 1,000 ratings. A list of all names could be too long."""

    parameter_name = "model"
    column = "model_name"
    offered = [("", "All")]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        newest = AnswerRating.objects.order_by("-pk").values_list("model_name", flat=True)[:RATED_LATELY]
        return [("", "All"), *((name, name) for name in sorted(set(newest)) if name)]


class AssistantFilter(AutocompleteFilter):
    parameter_name = "agent"


@admin.register(AnswerRating)
class AnswerRatingAdmin(ReadOnlyAdmin):
    """Admin of ratings. Comments are shown to administrators who may read the rated message."""

    many = "ratings"
    list_display = (
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
    list_filter = (RatingFilter, ReasonFilter, ModelFilter, AssistantFilter)
    ids = {"msg": "message__public_id", "chat": "message__chat__public_id", "usr": "user__public_id"}
    search_help_text = "The id of a message (msg_), chat (chat_) or person (usr_)."
    actions = None
    fields = ("rating", "why", "comment_if_allowed", "model_name", "agent", "answer", "user", "rated_at")
    readonly_fields = ("why", "comment_if_allowed", "answer")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Annotate each rating with whether the administrator may read its comment."""
        rows = super().get_queryset(request)
        hidden = Q(message__chat__is_private=True) | Q(message__chat__is_temporary=True)
        if not request.user.has_perm("chat.view_message"):
            return rows.annotate(may_read=Value(False))
        return rows.annotate(may_read=Value(True) if may_read_private(request) else Q(~hidden))

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
