"""Accounts: what they may do, closing and reopening them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from workspaces import audit
from workspaces.admin_kit.base import (
    LeanAdmin,
    action,
    counted,
    offer_undo,
)
from workspaces.models import User
from workspaces.quotas import quota_of

POWERS = ("is_staff", "is_superuser", "groups", "user_permissions")


def _open_or_close(people: QuerySet[User], verb: audit.Verb, *, by: User) -> int:
    """Open or close these accounts; how many."""
    with transaction.atomic():
        found = list(people.select_for_update(of=("self",)))
        User.objects.filter(pk__in=[person.pk for person in found]).update(
            is_active=verb == audit.Verb.ACCOUNT_REOPENED
        )
        for person in found:
            audit.record(verb, by=by, target=person.public_id)
    return len(found)


@admin.register(User)
class PersonAdmin(LeanAdmin, UserAdmin):
    many = "people"
    list_display = ("username", "email", "memory_default", "is_staff", "is_active", "last_login")
    list_filter = ("is_staff", "is_superuser", "is_active")
    ordering = ("-id",)
    sortable_by = ()
    search_fields = ("username__icontains", "email__icontains", "=public_id")
    search_help_text = "A part of the name or address, or the id (usr_)."
    readonly_fields = ("public_id", "last_login", "date_joined", "has")
    actions = ("close", "reopen")
    fieldsets = (
        (None, {"fields": ("username", "password", "public_id")}),
        ("Person", {"fields": ("first_name", "last_name", "email", "memory_default")}),
        ("May do", {"fields": ("is_active", *POWERS)}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
        ("Has", {"fields": ("has",), "description": "Of what one person may make; the limits are settings."}),
    )

    @admin.display(description="made, of at most")
    def has(self, person: User) -> str:
        return ", ".join(quota_of(person, what).in_words() for what in settings.QUOTAS)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Who is no superuser may not touch one: a new password would be as good as the account."""
        below = obj is None or not obj.is_superuser or cast(User, request.user).is_superuser
        return below and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Deleting a person would take their workspace with everything in it: accounts are closed instead."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        fixed = tuple(super().get_readonly_fields(request, obj))
        return fixed if cast(User, request.user).is_superuser else (*fixed, *POWERS)

    @action(
        "Close the account (can be reopened)",
        "change",
        asks="They can no longer sign in, nor can their programs. Nothing of theirs is deleted.",
    )
    def close(self, request: HttpRequest, rows: QuerySet[User]) -> Iterator[tuple[str, int]]:
        mine = cast(User, request.user)
        own = rows.filter(pk=mine.pk).exists()
        others = rows.exclude(pk=mine.pk)
        if not mine.is_superuser:
            others = others.filter(is_superuser=False)
        others = others.filter(pk__in=list(others.filter(is_active=True).values_list("pk", flat=True)))
        closed = _open_or_close(others, audit.Verb.ACCOUNT_CLOSED, by=mine)
        offer_undo(self, request, "reopen", list(others.values_list("pk", flat=True)))
        yield f"{counted(closed, 'account', 'accounts')} closed.", messages.SUCCESS
        if own:
            yield "Yours was left open: somebody else has to close it.", messages.WARNING

    @action("Reopen the account", "change", asks="They can sign in again.")
    def reopen(self, request: HttpRequest, rows: QuerySet[User]) -> Iterator[tuple[str, int]]:
        closed_ones = rows.filter(pk__in=list(rows.filter(is_active=False).values_list("pk", flat=True)))
        opened = _open_or_close(closed_ones, audit.Verb.ACCOUNT_REOPENED, by=cast(User, request.user))
        offer_undo(self, request, "close", list(closed_ones.values_list("pk", flat=True)))
        yield f"{counted(opened, 'account', 'accounts')} reopened.", messages.SUCCESS
