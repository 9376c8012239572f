"""Two-factor sign-in in the admin: who has it, and turning it off for who lost their telephone.

allauth's own page would show the secrets to staff, and let them add some.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import allauth.mfa.admin  # noqa: F401  registers the page that is replaced here
from allauth.mfa.models import Authenticator
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from memoryhub import mail
from workspaces.accounts import powers
from workspaces.accounts.sign_in import ask_for_password
from workspaces.admin.superusers import NOT_TOLD, TOLD, is_superuser
from workspaces.admin_kit.base import ReadOnlyAdmin, action, counted
from workspaces.models import User

admin.site.unregister(Authenticator)


@admin.register(Authenticator)
class AuthenticatorAdmin(ReadOnlyAdmin):
    many = "authenticators"
    list_display = ("user", "kind", "created_at", "last_used_at")
    list_select_related = ("user",)
    ids = {"usr": "user__public_id"}
    search_help_text = "The id of a person (usr_)."
    fields = ("user", "kind", "created_at", "last_used_at")
    actions = ("turn_off",)

    def for_list(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.defer("data")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Without its second step an account is as good as its password: superusers alone take it away."""
        return is_superuser(request) and super().has_change_permission(request, obj)

    @admin.display(description="kind")
    def kind(self, authenticator: Authenticator) -> str:
        return str(authenticator.get_type_display())

    @action(
        "Turn off two-factor sign-in",
        "change",
        asks="For who lost their telephone and their codes: be sure that it is them. Their password alone opens their "
        "account again, until they set it up anew. They are told by mail. This cannot be undone.",
        danger=True,
    )
    def turn_off(self, request: HttpRequest, rows: QuerySet[Authenticator]) -> Iterator[tuple[str, int]]:
        ask_for_password(request)
        people = User.objects.filter(pk__in=rows.values("user"))
        number = powers.turn_two_factor_off(people, by=cast(User, request.user), now=timezone.now())
        yield f"Two-factor sign-in is off for {counted(number, 'person', 'people')}.", messages.SUCCESS
        yield TOLD if mail.is_set() else NOT_TOLD
