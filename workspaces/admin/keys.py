"""API keys, to look at and to revoke."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from workspaces.accounts.keys import end_keys
from workspaces.admin_kit.base import ReadOnlyAdmin, action, counted
from workspaces.models import ApiKey, User


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """API keys of programs. The keys themselves are stored nowhere, and their hashes are not shown."""

    many = "keys"
    list_display = (
        "name",
        "beginning",
        "user",
        "workspace",
        "scope",
        "last_used_at",
        "calls",
        "expires_at",
        "revoked_at",
    )
    list_select_related = ("user", "workspace")
    list_filter = ("scope",)
    ids = {"key": "public_id", "usr": "user__public_id", "ws": "workspace__public_id"}
    search_help_text = "The id of a key (key_), of its maker (usr_) or of a workspace (ws_)."
    fields = (
        "name",
        "beginning",
        "public_id",
        "user",
        "workspace",
        "scope",
        "created_at",
        "last_used_at",
        "calls",
        "expires_at",
        "revoked_at",
    )
    actions = ("revoke",)

    @action(
        "Revoke (for good)",
        "change",
        asks="Programs that use them are refused from now on. This cannot be undone: a new key has to be made.",
        danger=True,
    )
    def revoke(self, request: HttpRequest, rows: QuerySet[ApiKey]) -> Iterator[tuple[str, int]]:
        ended = end_keys(
            list(rows.values_list("pk", flat=True)), by=cast(User, request.user), now=timezone.now()
        )
        yield f"{counted(ended, 'key', 'keys')} revoked.", messages.SUCCESS
