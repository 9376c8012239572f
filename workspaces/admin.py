"""People and workspaces. Staff act by Django's permissions, within the rules of ``workspaces.actions``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.db import transaction
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from memoryhub.admin import LeanAdmin, ReadOnlyAdmin, action, counted, offer_undo, rows_by_id
from memoryhub.admin_filters import ChoiceFilter
from workspaces import actions, agents, audit, audit_admin, two_factor_admin  # noqa: F401  registers their pages
from workspaces.keys import end_keys
from workspaces.models import Agent, ApiKey, Membership, Role, User, Workspace

POWERS = ("is_staff", "is_superuser", "groups", "user_permissions")


class KindFilter(ChoiceFilter):
    title = "kind"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("", "All"), ("shared", "Made by somebody"), ("default", "Somebody's own")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.chosen()
        return queryset.filter(default_of__isnull=chosen == "shared") if chosen else queryset


class MembershipForm(forms.ModelForm):
    """Who a member is stands above their row. Only the row of a new one lets choose: choices cost a query each."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.fields["user"].widget = forms.HiddenInput()


class MembershipInline(admin.TabularInline):
    model = Membership
    form = MembershipForm
    extra = 0
    autocomplete_fields = ("user",)
    readonly_fields = ("created_at",)
    verbose_name_plural = "members"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        return super().get_queryset(request).select_related("user", "workspace")


@admin.register(Workspace)
class WorkspaceAdmin(LeanAdmin):
    many = "workspaces"
    list_display = ("name", "members", "own_of", "created_at")
    list_select_related = ("default_of",)
    list_filter = (KindFilter,)
    ordering = ("-id",)
    sortable_by = ()
    search_fields = ("name",)
    search_help_text = "A part of the name, or the id (ws_) of a workspace or (usr_) of one of its members."
    fields = ("name", "description", "public_id", "default_of", "created_at", "updated_at", "lists")
    readonly_fields = ("public_id", "default_of", "created_at", "updated_at", "lists")
    inlines = (MembershipInline,)

    def for_list(self, rows: QuerySet[Workspace]) -> QuerySet[Any]:
        memberships = Membership.objects.filter(workspace=OuterRef("pk")).order_by().values("workspace")
        number = Subquery(memberships.annotate(number=Count("pk")).values("number"))
        return rows.defer("description").annotate(number_of_members=number)

    @admin.display(description="members")
    def members(self, workspace: Any) -> int:
        return workspace.number_of_members or 0

    @admin.display(description="default workspace of")
    def own_of(self, workspace: Workspace) -> str:
        return str(workspace.default_of or "-")

    @admin.display(description="in it")
    def lists(self, workspace: Workspace) -> str:
        if workspace.pk is None:
            return "-"
        links = [("Memories", "memories_memory"), ("Chats", "chat_chat")]
        dashboard = reverse("admin:index")
        shown = format_html('<a href="{}?workspace={}">Dashboard</a>&emsp;', dashboard, workspace.pk)
        for title, name in links:
            url = reverse(f"admin:{name}_changelist")
            shown = format_html('{}<a href="{}?workspace={}">{}</a>&emsp;', shown, url, workspace.pk, title)
        return shown

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        text = search_term.strip()
        if text.startswith("ws_"):
            return queryset.filter(public_id=text), False
        if text.startswith("usr_"):
            return queryset.filter(memberships__user__public_id=text), False
        return (queryset.filter(name__icontains=text) if text else queryset), False

    def has_delete_permission(self, request: HttpRequest, obj: Workspace | None = None) -> bool:
        """Deleting a workspace takes everything in it away for good: that is for its owners."""
        return False

    def get_inlines(self, request: HttpRequest, obj: Workspace | None) -> Any:
        return self.inlines if obj else ()

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:
        values = {name: form.cleaned_data[name] for name in ("name", "description")}
        if change:
            with audit.really_by(cast(User, request.user)):
                actions.update_workspace(obj, by=_acting_owner(obj, request), **values)
        else:
            made = actions.create_workspace(by=cast(User, request.user), **values)
            obj.pk, obj.public_id = made.pk, made.public_id
            obj.refresh_from_db()

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Members come, change and go through the domain, with its rules (never without an owner)."""
        formset.save(commit=False)
        workspace = form.instance
        by = _acting_owner(workspace, request)
        with audit.really_by(cast(User, request.user)):
            for membership in formset.new_objects:
                actions.add_member(workspace, user=membership.user, role=membership.role, by=by)
            for membership, changed in formset.changed_objects:
                if "user" in changed:
                    before = Membership.objects.select_related("user").get(pk=membership.pk)
                    actions.remove_member(workspace, user=before.user, by=by)
                    actions.add_member(workspace, user=membership.user, role=membership.role, by=by)
                else:
                    actions.change_role(workspace, user=membership.user, role=membership.role, by=by)
            for membership in formset.deleted_objects:
                actions.remove_member(workspace, user=membership.user, by=by)


def _acting_owner(workspace: Workspace, request: HttpRequest) -> User:
    """Whom the domain takes to act: staff need no membership, so an owner stands for them.

    Who it really was is in the audit log and the admin's.
    """
    owners = User.objects.filter(memberships__workspace=workspace, memberships__role=Role.OWNER)
    acting = cast(User, request.user)
    return owners.filter(pk=acting.pk).first() or owners.first() or acting


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
    readonly_fields = ("public_id", "last_login", "date_joined")
    actions = ("close", "reopen")
    fieldsets = (
        (None, {"fields": ("username", "password", "public_id")}),
        ("Person", {"fields": ("first_name", "last_name", "email", "memory_default")}),
        ("May do", {"fields": ("is_active", *POWERS)}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )

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


class InUseFilter(ChoiceFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("", "All"), ("in_use", "In use"), ("archived", "Archived")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.chosen()
        return queryset.filter(archived_at__isnull=chosen == "in_use") if chosen else queryset


@admin.register(Agent)
class AgentAdmin(ReadOnlyAdmin):
    """The assistants of all workspaces, what they are told, and archiving those that should not be chosen."""

    many = "assistants"
    list_display = ("name", "workspace", "created_by", "created_at", "archived_at")
    list_select_related = ("workspace", "created_by")
    list_filter = (InUseFilter,)
    ordering = ("-id",)
    sortable_by = ()
    search_fields = ("public_id",)
    search_help_text = "The id of an assistant (agent_), of its maker (usr_) or of a workspace (ws_)."
    fields = (
        "name",
        "public_id",
        "workspace",
        "description",
        "instructions",
        "created_by",
        "created_at",
        "updated_at",
        "archived_at",
    )
    actions = ("archive", "restore")

    def for_list(self, rows: QuerySet[Agent]) -> QuerySet[Any]:
        return rows.defer("instructions", "description")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        places = {"agent": "public_id", "usr": "created_by__public_id", "ws": "workspace__public_id"}
        return rows_by_id(queryset, search_term, places), False

    @action(
        "Archive (no new chats with it)",
        "change",
        asks="Nobody can begin a chat with them. Chats that are there, and their memories, stay.",
    )
    def archive(self, request: HttpRequest, rows: QuerySet[Agent]) -> Iterator[tuple[str, int]]:
        found = list(rows.in_use().select_related("workspace"))  # type: ignore[attr-defined]
        for agent in found:
            agents.archive_agent(agent, by=_acting_owner(agent.workspace, request), now=timezone.now())
        offer_undo(self, request, "restore", [agent.pk for agent in found])
        yield f"{counted(len(found), 'assistant', 'assistants')} archived.", messages.SUCCESS

    @action("Restore", "change", asks="Chats can be begun with them again.")
    def restore(self, request: HttpRequest, rows: QuerySet[Agent]) -> Iterator[tuple[str, int]]:
        found = list(rows.exclude(archived_at=None).select_related("workspace"))
        for agent in found:
            agents.restore_agent(agent, by=_acting_owner(agent.workspace, request), now=timezone.now())
        offer_undo(self, request, "archive", [agent.pk for agent in found])
        yield f"{counted(len(found), 'assistant', 'assistants')} restored.", messages.SUCCESS


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Whose programs may enter where. The keys themselves are nowhere, and their hashes not shown."""

    many = "keys"
    list_display = (
        "name",
        "beginning",
        "user",
        "workspace",
        "scope",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    list_select_related = ("user", "workspace")
    list_filter = ("scope",)
    ordering = ("-id",)
    sortable_by = ()
    search_fields = ("public_id",)
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
        "expires_at",
        "revoked_at",
    )
    actions = ("revoke",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        places = {"key": "public_id", "usr": "user__public_id", "ws": "workspace__public_id"}
        return rows_by_id(queryset, search_term, places), False

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
