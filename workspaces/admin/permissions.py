"""Rights of superusers alone, beside any permissions of staff: changing other people's accounts and sign-in."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest

from workspaces.admin_kit.base import LeanAdmin
from workspaces.models import Role, User, Workspace

TOLD = ("They are told by mail, if they gave an address.", messages.INFO)
NOT_TOLD = ("No mail is set up here (MEMORYHUB_SMTP_URL): tell them yourself.", messages.WARNING)


def is_superuser(request: HttpRequest) -> bool:
    return cast(User, request.user).is_superuser


class ChangedBySuperusers(LeanAdmin):
    """Admin that Django's permissions let people see, and only superusers change."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_superuser(request) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_superuser(request) and super().has_delete_permission(request, obj)


# In whose name staff act.


def acting_owner(workspace: Workspace, request: HttpRequest) -> User:
    """Return the owner as whom staff act in the domain: they need no membership.

    Who it really was is in the audit log and the admin's.
    """
    owners = User.objects.filter(memberships__workspace=workspace, memberships__role=Role.OWNER)
    acting = cast(User, request.user)
    return owners.filter(pk=acting.pk).first() or owners.first() or acting
