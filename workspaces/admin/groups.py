"""Groups of staff and what they may do, and the addresses that people sign in and reset their passwords with.

Both have pages of their own in Django and allauth that note nothing in the audit log and act without asking.
"""

from __future__ import annotations

from typing import Any

import allauth.account.admin  # noqa: F401  registers the page that is replaced here
from allauth.account.models import EmailAddress
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest

from workspaces.accounts.sign_in import ask_for_password
from workspaces.admin.superusers import ChangedBySuperusers
from workspaces.admin_kit.base import ReadOnlyAdmin

admin.site.unregister([Group, EmailAddress])


@admin.register(Group)
class StaffGroupAdmin(ChangedBySuperusers, GroupAdmin):
    """Admin of groups. Only superusers give and take away rights."""

    many = "groups"

    def save_model(self, request: HttpRequest, obj: Group, form: Any, change: bool) -> None:
        ask_for_password(request)
        super().save_model(request, obj, form, change)

    def delete_model(self, request: HttpRequest, obj: Group) -> None:
        ask_for_password(request)
        super().delete_model(request, obj)


@admin.register(EmailAddress)
class AddressAdmin(ReadOnlyAdmin):
    """To look at: who could add or confirm an address here could have any password sent to it."""

    many = "addresses"
    list_display = ("email", "user", "verified", "primary")
    list_select_related = ("user",)
    list_filter = ("verified",)
    search_fields = ("email__icontains", "=user__public_id")
    search_help_text = "A part of the address, or the id of a person (usr_)."
    fields = ("user", "email", "verified", "primary")
