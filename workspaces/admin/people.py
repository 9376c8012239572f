"""Accounts: what they may do, closing and reopening them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets, unquote
from django.contrib.auth.admin import UserAdmin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone

from memoryhub import mail
from workspaces import audit
from workspaces.accounts import powers
from workspaces.accounts.powers import RIGHTS
from workspaces.accounts.sign_in import ask_for_password, typed_password_lately
from workspaces.admin.superusers import NOT_TOLD, TOLD, is_superuser
from workspaces.admin_kit.base import LeanAdmin, action, counted, offer_undo
from workspaces.models import User
from workspaces.quotas import quota_of

NAMES = ("first_name", "last_name")


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
        ("Person", {"fields": (*NAMES, "email", "memory_default")}),
        ("May do", {"fields": ("is_active", *RIGHTS)}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
        ("Has", {"fields": ("has",), "description": "Of what one person may make; the limits are settings."}),
    )

    @admin.display(description="made, of at most")
    def has(self, person: User) -> str:
        return ", ".join(quota_of(person, what).in_words() for what in settings.QUOTAS)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Who is no superuser may not touch one."""
        below = obj is None or not obj.is_superuser or cast(User, request.user).is_superuser
        return below and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Deleting a person would take their workspace with everything in it: accounts are closed instead."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Superusers alone change how somebody gets in and what they may do; closing an account is an action."""
        if is_superuser(request):
            return (*self.readonly_fields, "is_active")
        return [name for name in flatten_fieldsets(self.get_fieldsets(request, obj)) if name not in NAMES]

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Without the beginning of the password's hash, for who may not change it."""
        shown = super().get_fieldsets(request, obj)
        if obj is None or is_superuser(request):
            return shown
        (_, first), *rest = shown
        fields = [name for name in first["fields"] if name != "password"]
        return [(None, {"fields": fields}), *rest]

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        touched = [name for name in form.changed_data if name in powers.CHANGES] if change else []
        if touched:
            ask_for_password(request)
        before = User.objects.filter(pk=obj.pk).values_list("email", flat=True).first() or ""
        super().save_model(request, obj, form, change)
        if touched:
            by, now = cast(User, request.user), timezone.now()
            powers.change_account(obj, fields=touched, email_before=before, by=by, now=now)
            self.message_user(request, *(TOLD if mail.is_set() else NOT_TOLD))

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """For superusers. What was typed is not kept for when the question is answered: it is a password."""
        if not is_superuser(request):
            raise PermissionDenied
        if request.method == "POST" and not typed_password_lately(request):
            return HttpResponseRedirect(request.get_full_path())
        ask_for_password(request)
        with transaction.atomic():
            person = self.get_object(request, unquote(id))
            response = super().user_change_password(request, id, form_url)
            changed = person and User.objects.exclude(password=person.password).filter(pk=person.pk).first()
            if changed:
                by, keep = cast(User, request.user), request.session.session_key
                powers.change_password(
                    changed, keep=keep if changed == by else None, by=by, now=timezone.now()
                )
                self.message_user(request, *(TOLD if mail.is_set() else NOT_TOLD))
        return response

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
        if not is_superuser(request):
            rows = rows.filter(is_superuser=False)
        closed_ones = rows.filter(pk__in=list(rows.filter(is_active=False).values_list("pk", flat=True)))
        opened = _open_or_close(closed_ones, audit.Verb.ACCOUNT_REOPENED, by=cast(User, request.user))
        offer_undo(self, request, "close", list(closed_ones.values_list("pk", flat=True)))
        yield f"{counted(opened, 'account', 'accounts')} reopened.", messages.SUCCESS
