"""Read-only admin of the audit log, with filters and links."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from memoryhub.ids import PATTERN
from workspaces.admin.base import ReadOnlyAdmin
from workspaces.admin.filters import ChoiceFilter
from workspaces.audit import Verb, in_words, sentence
from workspaces.models import AuditEvent

KINDS = {
    "sign_in": (
        "Signing in and out",
        (
            Verb.SIGNED_IN,
            Verb.SIGN_IN_FAILED,
            Verb.SIGNED_OUT,
            Verb.SIGNED_UP,
            Verb.REAUTHENTICATED,
            Verb.SESSION_ENDED,
        ),
    ),
    "failed": ("Failed sign-ins", (Verb.SIGN_IN_FAILED,)),
    "credentials": (
        "Passwords, codes and keys",
        (
            Verb.PASSWORD_CHANGED,
            Verb.PASSWORD_RESET,
            Verb.USERNAME_CHANGED,
            Verb.EMAIL_CHANGED,
            Verb.SIGN_ON_CONNECTED,
            Verb.SIGN_ON_DISCONNECTED,
            Verb.TWO_FACTOR_ON,
            Verb.TWO_FACTOR_OFF,
            Verb.RECOVERY_CODES_MADE,
            Verb.KEY_MADE,
            Verb.KEY_REVOKED,
        ),
    ),
    "members": (
        "Members and workspaces",
        (
            Verb.MEMBER_ADDED,
            Verb.ROLE_CHANGED,
            Verb.MEMBER_REMOVED,
            Verb.MEMBER_LEFT,
            Verb.WORKSPACE_MADE,
            Verb.WORKSPACE_CHANGED,
            Verb.WORKSPACE_DELETED,
        ),
    ),
    "gone": (
        "Deleted and forgotten",
        (
            Verb.MEMORY_DELETED,
            Verb.MEMORY_FORGOTTEN,
            Verb.CHAT_DELETED,
            Verb.CHAT_FORGOTTEN,
            Verb.DOCUMENT_DELETED,
            Verb.WORKSPACE_DELETED,
            Verb.ACCOUNT_DELETED,
            Verb.PURGED,
        ),
    ),
    "taken": ("Taken out and brought in", (Verb.EXPORTED, Verb.IMPORTED, Verb.MEMORIES_READ)),
    "admin": (
        "Moderation and the admin",
        (
            Verb.MODERATED,
            Verb.ADMIN_ADDED,
            Verb.ADMIN_CHANGED,
            Verb.ADMIN_DELETED,
            Verb.ADMIN_ACTION,
            Verb.RIGHTS_CHANGED,
            Verb.ACCOUNT_CLOSED,
            Verb.ACCOUNT_REOPENED,
        ),
    ),
}
DAYS = {"1": "Today", "7": "Seven days", "30": "Thirty days"}


class KindOfEventFilter(ChoiceFilter):
    title = "kind"
    parameter_name = "about"
    offered = [("", "All"), *((name, title) for name, (title, _) in KINDS.items())]
    rules = {name: Q(verb__in=verbs) for name, (_, verbs) in KINDS.items()}


class SinceFilter(ChoiceFilter):
    title = "time"
    parameter_name = "since"
    offered = [("", "Any time"), *DAYS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.chosen()
        return queryset.filter(at__gte=timezone.now() - timedelta(days=int(chosen))) if chosen else queryset


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    many = "events"
    list_display = ("at", "who", "what", "target", "workspace_id", "said", "network")
    list_filter = (KindOfEventFilter, SinceFilter)
    ids = {"": "target"}  # of anything
    search_help_text = "The id of a person (usr_), a workspace (ws_), what it was done to, or of a request."
    fields = (
        "at",
        "who",
        "by_id",
        "what",
        "target",
        "workspace_id",
        "said",
        "network",
        "request_id",
    )

    def found(self, rows: QuerySet[Any], text: str) -> QuerySet[Any]:
        if not text:
            return rows
        if not PATTERN.fullmatch(text):
            return rows.filter(request_id=text[:64].replace("\x00", ""))
        if text.startswith("ws_"):
            return rows.filter(workspace_id=text)
        if text.startswith("usr_"):
            return rows.filter(by_id=text) | rows.filter(target=text)
        return rows.filter(target=text)

    @admin.display(description="who")
    def who(self, event: AuditEvent) -> str:
        return event.by_name or "-"

    @admin.display(description="what")
    def what(self, event: AuditEvent) -> str:
        return sentence(event.verb)

    @admin.display(description="details")
    def said(self, event: AuditEvent) -> str:
        return in_words(event.details) or "-"
