"""Admin of accounts, their groups and API keys: rights, closing, reopening and deleting."""

from datetime import datetime
from typing import Any, cast

import allauth.account.admin  # registers the page that is replaced here
import allauth.mfa.admin  # registers the page that is replaced here
import allauth.socialaccount.admin  # noqa: F401  registers the pages that are taken away here
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets, unquote
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.http import urlencode

from memoryhub import mail
from workspaces.accounts import account_changes, program_authorizations
from workspaces.accounts.account_changes import (
    RIGHTS,
    close_account,
    delete_account_of,
    hand_over,
    left_behind,
    reopen_account,
)
from workspaces.accounts.keys import end_keys
from workspaces.accounts.reauthentication import ask_for_password, reauthenticated_recently
from workspaces.accounts.sessions import end_other_sessions
from workspaces.admin.base import (
    NOT_TOLD,
    TOLD,
    ChangedBySuperusers,
    LeanAdmin,
    Messages,
    ReadOnlyAdmin,
    action,
    counted,
    is_superuser,
)
from workspaces.models import ApiKey, Membership, User
from workspaces.quotas import quota_of
from workspaces.spending.budgets import set_person_budget
from workspaces.spending.monthly_usage import usage_this_month
from workspaces.spending.usage_records import amount
from workspaces.views.forms import BudgetFields

NAMES = ("first_name", "last_name")
BUDGET = ("tokens", "money")


def _handover_messages(handed: list[Membership], otherwise: str = "") -> Messages:
    """Yield a message about the workspaces that were handed over, naming at most ten.

    ``handed``: the memberships of their new owners. ``otherwise``: the message if there are none.
    """
    named = [f"“{each.workspace.name}” to {each.user.get_username()}" for each in handed[:10]]
    more = f" and {len(handed) - 10} more" if len(handed) > 10 else ""
    if handed:
        yield f"Handed over: {', '.join(named)}{more}.", messages.SUCCESS
    elif otherwise:
        yield otherwise, messages.INFO


class PersonForm(UserChangeForm, BudgetFields):
    """Form of an account with its monthly budget."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        budget = getattr(self.instance, "budget", None)
        self.initial.update(tokens=budget and budget.tokens, money=budget and budget.money)


@admin.register(User)
class PersonAdmin(LeanAdmin, UserAdmin):
    form = PersonForm
    list_display = ("username", "email", "memory_default", "is_staff", "is_active", "last_login")
    list_filter = ("is_staff", "is_superuser", "is_active")
    ordering = ("-id",)
    search_fields = ("username__icontains", "email__icontains", "=public_id")
    search_help_text = "A part of the name or address, or the id (usr_)."
    readonly_fields = ("public_id", "last_login", "date_joined", "has", "took")
    actions = ("close", "reopen", "hand_over", "sign_out", "test_mail", "delete_accounts")
    fieldsets = (
        (None, {"fields": ("username", "password", "public_id")}),
        ("Person", {"fields": (*NAMES, "email", "memory_default")}),
        ("Permissions", {"fields": ("is_active", *RIGHTS)}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
        ("Usage", {"fields": ("has",), "description": "What this person has made. The limits are settings."}),
        (
            "Model usage per month",
            {
                "fields": (*BUDGET, "took"),
                "description": "The limit for all workspaces together, beside each workspace's own budget.",
            },
        ),
    )

    @admin.display(description="used so far")
    def has(self, person: User) -> str:
        return ", ".join(quota_of(person, what).in_words() for what in settings.QUOTAS)

    @admin.display(description="tokens per month")
    def tokens(self, person: User) -> str:
        """Return the person's monthly token limit, for staff who may see but not set it."""
        budget = getattr(person, "budget", None)
        return "-" if budget is None or budget.tokens is None else f"{budget.tokens:,}"

    @admin.display(description="cost per month")
    def money(self, person: User) -> str:
        budget = getattr(person, "budget", None)
        return "-" if budget is None or budget.money is None else amount(budget.money)

    @admin.display(description="used this month")
    def took(self, person: User) -> str:
        now = timezone.now()
        bill = usage_this_month(person, now=now)
        cost = f", {bill.about}{amount(bill.cost)}" if bill.has_cost else ""
        text = f"{bill.about}{bill.tokens:,} tokens{cost}"
        query = urlencode({"day__year": now.year, "day__month": now.month, "user": person.pk})
        return format_html(
            '<a href="{}?{}">{}</a>', reverse("admin:workspaces_modeluse_changelist"), query, text
        )

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Return whether the user may change this person. Only superusers change superusers."""
        below = obj is None or not obj.is_superuser or cast(User, request.user).is_superuser
        return below and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Disable Django's deletion. An admin action deletes accounts and hands over shared workspaces."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Return the fields that the user may not change.

        Staff may change only the fields in NAMES. Superusers may change all but ``is_active``, because accounts are
        closed by an admin action.
        """
        if is_superuser(request):
            return (*self.readonly_fields, "is_active")
        return [name for name in flatten_fieldsets(self.get_fieldsets(request, obj)) if name not in NAMES]

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Leave out the password for staff who are no superusers. It would show the beginning of its hash."""
        shown = super().get_fieldsets(request, obj)
        if obj is None or is_superuser(request):
            return shown
        (_, first), *rest = shown
        fields = [name for name in first["fields"] if name != "password"]
        return [(None, {"fields": fields}), *rest]

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        touched = [name for name in form.changed_data if name in account_changes.CHANGES] if change else []
        if touched:
            ask_for_password(request)
        if change and not set(BUDGET).isdisjoint(form.changed_data):
            budget = {name: form.cleaned_data[name] for name in BUDGET}
            set_person_budget(obj, **budget, by=cast(User, request.user), now=timezone.now())
        before = User.objects.filter(pk=obj.pk).values_list("email", flat=True).first() or ""
        super().save_model(request, obj, form, change)
        if touched:
            by, now = cast(User, request.user), timezone.now()
            account_changes.change_account(obj, fields=touched, email_before=before, by=by, now=now)
            self.message_user(request, *(TOLD if mail.is_set() else NOT_TOLD))

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """Set a person's password. Superusers only, after they have re-authenticated."""
        if not is_superuser(request):
            raise PermissionDenied
        if request.method == "POST" and not reauthenticated_recently(request):
            return HttpResponseRedirect(request.get_full_path())
        ask_for_password(request)
        with transaction.atomic():
            person = self.get_object(request, unquote(id))
            response = super().user_change_password(request, id, form_url)
            changed = person and User.objects.exclude(password=person.password).filter(pk=person.pk).first()
            if changed:
                by, keep = cast(User, request.user), request.session.session_key
                account_changes.change_password(
                    changed, keep=keep if changed == by else None, by=by, now=timezone.now()
                )
                self.message_user(request, *(TOLD if mail.is_set() else NOT_TOLD))
        return response

    @action(
        "Close the account (can be reopened)",
        "change",
        asks="They are signed out, and can no longer sign in, nor can their programs. Nothing of theirs is deleted. "
        "Where they are the only owner, who has been an editor longest becomes one.",
    )
    def close(self, request: HttpRequest, rows: QuerySet[User]) -> Messages:
        mine = cast(User, request.user)
        own = rows.filter(pk=mine.pk).exists()
        others = rows.exclude(pk=mine.pk)
        if not mine.is_superuser:
            others = others.filter(is_superuser=False)
        closed, handed, now = list(others.filter(is_active=True)), [], timezone.now()
        for person in closed:
            handed += close_account(person, by=mine, now=now, hands_over=mine.is_superuser)
        yield f"{counted(len(closed), 'account', 'accounts')} closed.", messages.SUCCESS
        yield from _handover_messages(handed)
        if left := sum(len(left_behind(person)) for person in closed):
            left_over = counted(left, "workspace has", "workspaces have")
            text = f"{left_over} no owner now whose account is open. A superuser can hand them over."
            yield text, messages.WARNING
        if own:
            yield "Yours was left open: somebody else has to close it.", messages.WARNING

    @action("Reopen the account", "change", asks="They can sign in again.")
    def reopen(self, request: HttpRequest, rows: QuerySet[User]) -> Messages:
        if not is_superuser(request):
            rows = rows.filter(is_superuser=False)
        opened = list(rows.filter(is_active=False))
        for person in opened:
            reopen_account(person, by=cast(User, request.user))
        yield f"{counted(len(opened), 'account', 'accounts')} reopened.", messages.SUCCESS

    @action(
        "Hand over the workspaces of closed accounts",
        "change",
        asks="Where they are the only owner, who has been an editor longest becomes one, and is told by mail.",
    )
    def hand_over(self, request: HttpRequest, rows: QuerySet[User]) -> Messages:
        if not is_superuser(request):
            raise PermissionDenied
        closed, by = rows.filter(is_active=False), cast(User, request.user)
        yield from _handover_messages(
            [membership for person in closed for membership in hand_over(person, by=by)],
            "None was left behind.",
        )

    @action(
        "Send a test mail", "change", asks="A mail that says nothing but that mail arrives, sent at once."
    )
    def test_mail(self, request: HttpRequest, rows: QuerySet[User]) -> Messages:
        if not is_superuser(request):
            raise PermissionDenied
        if not mail.is_set():
            yield "There is no server for mail: set MEMORYHUB_SMTP_URL.", messages.ERROR
            return
        person = rows.exclude(email="").first()
        if person is None:
            yield "None of them gave an address.", messages.ERROR
        elif wrong := mail.try_out(person.email):
            yield f"The mail to {person.email} could not be sent. {wrong}", messages.ERROR
        else:
            yield f"The server has taken a mail to {person.email}.", messages.SUCCESS

    @action(
        "Sign out everywhere",
        "change",
        asks="Every browser in which they are signed in, and what they let programs do, ends at once. "
        "Their API keys stay.",
    )
    def sign_out(self, request: HttpRequest, rows: QuerySet[User]) -> Messages:
        if not is_superuser(request):
            raise PermissionDenied
        by, now = cast(User, request.user), timezone.now()
        ended = 0
        for person in rows:
            program_authorizations.end_all_of(person, by=by, now=now)
            keep = request.session.session_key if person == by else None
            ended += end_other_sessions(person, keep=keep, by=by)
        yield f"{counted(ended, 'session', 'sessions')} ended.", messages.SUCCESS

    @action(
        "Delete the account and its data",
        "change",
        asks="Their account, workspaces without other members, personal memories and private chats go for good, and "
        "cannot be brought back. Where they are the only owner, who has been an editor longest becomes one.",
        danger=True,
    )
    def delete_accounts(self, request: HttpRequest, rows: QuerySet[User]) -> Messages:
        if not is_superuser(request):
            raise PermissionDenied
        ask_for_password(request)

        def delete(person: User, *, by: User, now: datetime) -> None:
            delete_account_of(person, by=by)

        yield from self.each(request, rows, rows, delete, "deleted")


# allauth's own page would show secrets to staff and let them add some.
admin.site.unregister(Authenticator)


@admin.register(Authenticator)
class AuthenticatorAdmin(ReadOnlyAdmin):
    list_display = ("user", "kind", "created_at", "last_used_at")
    list_select_related = ("user",)
    ids = {"usr": "user__public_id"}
    fields = ("user", "kind", "created_at", "last_used_at")
    actions = ("turn_off",)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Allow only superusers to turn off two-factor sign-in. The password alone then opens the account."""
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
    def turn_off(self, request: HttpRequest, rows: QuerySet[Authenticator]) -> Messages:
        ask_for_password(request)
        people = User.objects.filter(pk__in=rows.values("user"))
        number = account_changes.turn_two_factor_off(people, by=cast(User, request.user), now=timezone.now())
        yield f"Two-factor sign-in is off for {counted(number, 'person', 'people')}.", messages.SUCCESS
        yield TOLD if mail.is_set() else NOT_TOLD


# The pages of Django and allauth for these write nothing to the audit log and ask for no confirmation.
admin.site.unregister([Group, EmailAddress])


@admin.register(Group)
class StaffGroupAdmin(ChangedBySuperusers, GroupAdmin):
    """Admin of groups. Only superusers grant and revoke rights."""

    def save_model(self, request: HttpRequest, obj: Group, form: Any, change: bool) -> None:
        ask_for_password(request)
        super().save_model(request, obj, form, change)

    def delete_model(self, request: HttpRequest, obj: Group) -> None:
        ask_for_password(request)
        super().delete_model(request, obj)


@admin.register(EmailAddress)
class AddressAdmin(ReadOnlyAdmin):
    """Read-only admin of mail addresses.

    If staff could add or confirm an address, they could have a password reset sent to it.
    """

    list_display = ("email", "user", "verified", "primary")
    list_select_related = ("user",)
    list_filter = ("verified",)
    search_fields = ("email__icontains", "=user__public_id")
    search_help_text = "A part of the address, or the id of a person (usr_)."
    fields = ("user", "email", "verified", "primary")


# Single sign-on is configured by the environment, so allauth's pages for providers, secrets and tokens are removed.
admin.site.unregister([SocialApp, SocialToken, SocialAccount])


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Admin of API keys. Keys are not stored, and their hashes are not shown."""

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
    def revoke(self, request: HttpRequest, rows: QuerySet[ApiKey]) -> Messages:
        ids = list(rows.values_list("pk", flat=True))
        ended = end_keys(ids, by=cast(User, request.user), now=timezone.now())
        yield f"{counted(ended, 'key', 'keys')} revoked.", messages.SUCCESS
