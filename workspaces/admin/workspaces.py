"""Admin of workspaces and their members, and read-only admin of the audit log."""

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memoryhub import mail
from memoryhub.ids import PATTERN
from workspaces import audit
from workspaces.accounts import account_changes
from workspaces.accounts.invitations import invite
from workspaces.accounts.reauthentication import ask_for_password
from workspaces.actions import workspaces
from workspaces.admin.base import (
    NOT_TOLD,
    ConditionFilter,
    LeanAdmin,
    ReadOnlyAdmin,
    acting_owner,
    is_superuser,
)
from workspaces.audit import Verb, in_words, sentence
from workspaces.models import AuditEvent, Membership, User, Workspace

TOLD_OWNERS = ("Its owners are told by mail, if they gave an address.", messages.INFO)


class Shown(forms.Widget):
    """A form widget that shows the name of the current value instead of choices."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        return format_html("{}", self.name)


class MembershipForm(forms.ModelForm):
    """Form of a member. Only a new row has a menu of people, because each menu costs a query."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.fields["user"].disabled = True
            self.fields["user"].widget = Shown(self.instance.user.get_username())


class MembershipInline(admin.TabularInline):
    """Members of a workspace. Only superusers may change them, because a new member can read everything in it."""

    model = Membership
    form = MembershipForm
    extra = 0
    autocomplete_fields = ("user",)
    readonly_fields = ("created_at",)
    verbose_name_plural = "members"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        return super().get_queryset(request).select_related("user", "workspace")

    def has_add_permission(self, request: HttpRequest, obj: Workspace | None = None) -> bool:
        return is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Workspace | None = None) -> bool:
        return is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Workspace | None = None) -> bool:
        return is_superuser(request)


@admin.register(Workspace)
class WorkspaceAdmin(LeanAdmin):
    list_display = ("name", "members", "own_of", "created_at")
    list_select_related = ("default_of",)
    list_filter = (("default_of", admin.EmptyFieldListFilter),)
    ordering = ("-id",)
    search_fields = ("name",)
    ids = {"ws": "public_id", "usr": "memberships__user__public_id"}
    search_help_text = "A part of the name, or the id (ws_) of a workspace or (usr_) of one of its members."
    fields = ("name", "description", "public_id", "default_of", "created_at", "updated_at", "lists")
    readonly_fields = ("public_id", "default_of", "created_at", "updated_at", "lists")
    inlines = (MembershipInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        memberships = Membership.objects.filter(workspace=OuterRef("pk")).order_by().values("workspace")
        number = Subquery(memberships.annotate(number=Count("pk")).values("number"))
        return super().get_queryset(request).annotate(number_of_members=number)

    @admin.display(description="members")
    def members(self, workspace: Any) -> int:
        return workspace.number_of_members or 0

    @admin.display(description="default workspace of")
    def own_of(self, workspace: Workspace) -> str:
        return str(workspace.default_of or "-")

    @admin.display(description="in it")
    def lists(self, workspace: Workspace) -> str:
        lists = (
            ("Memories", "memories_memory"),
            ("Chats", "chat_chat"),
            ("Documents", "workspaces_document"),
        )
        links = ((reverse(f"admin:{name}_changelist"), workspace.pk, title) for title, name in lists)
        return format_html_join(" · ", '<a href="{}?workspace={}">{}</a>', links) if workspace.pk else "-"

    def search(self, rows: QuerySet[Any], text: str) -> QuerySet[Any]:
        column = self.ids.get(text.partition("_")[0]) if "_" in text else None
        return rows.filter(**{column: text}) if column else rows.filter(name__icontains=text)

    def has_delete_permission(self, request: HttpRequest, obj: Workspace | None = None) -> bool:
        """Forbid deletion, because only a workspace's owners may delete its content."""
        return False

    def get_inlines(self, request: HttpRequest, obj: Workspace | None) -> Any:
        return self.inlines if obj else ()

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:
        values = {name: form.cleaned_data[name] for name in ("name", "description")}
        if change:
            with audit.really_by(cast(User, request.user)):
                workspaces.update_workspace(obj, by=acting_owner(obj, request), **values)
        else:
            workspace = workspaces.create_workspace(by=cast(User, request.user), **values)
            obj.pk, obj.public_id = workspace.pk, workspace.public_id
            obj.refresh_from_db()

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Add, change and remove members by services, whose rules apply, such as keeping the last owner.

        The superuser re-authenticates first, and the owners are notified by mail.
        """
        formset.save(commit=False)
        if formset.new_objects or formset.changed_objects:
            ask_for_password(request)
        workspace, really_by = form.instance, cast(User, request.user)
        by = acting_owner(workspace, request)
        came = [
            *formset.new_objects,
            *(member for member, changed in formset.changed_objects if "user" in changed),
        ]
        if came:
            account_changes.mail_owners(
                workspace, [each.user for each in came], by=really_by, now=timezone.now()
            )
        with audit.really_by(really_by):
            for membership in formset.new_objects:
                invite(workspace, user=membership.user, role=membership.role, by=by, now=timezone.now())
            for membership, changed in formset.changed_objects:
                if "user" in changed:
                    before = Membership.objects.select_related("user").get(pk=membership.pk)
                    workspaces.remove_member(workspace, user=before.user, by=by)
                    invite(workspace, user=membership.user, role=membership.role, by=by, now=timezone.now())
                else:
                    workspaces.change_role(workspace, user=membership.user, role=membership.role, by=by)
            for membership in formset.deleted_objects:
                workspaces.remove_member(workspace, user=membership.user, by=by)
        if came:
            self.message_user(request, *(TOLD_OWNERS if mail.is_set() else NOT_TOLD))


class VerbFilter(ConditionFilter):
    """A filter by verb. The column has no choices, because each new verb would then need a migration."""

    title = "what"
    parameter_name = "verb"
    conditions = {verb.value: (verb.label, Q(verb=verb)) for verb in Verb}


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    list_display = ("at", "who", "what", "target", "workspace_id", "said", "network")
    list_filter = ("at", VerbFilter)
    ids = {"": "target"}  # an id with any prefix
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

    def search(self, rows: QuerySet[Any], text: str) -> QuerySet[Any]:
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
