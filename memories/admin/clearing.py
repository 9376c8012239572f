"""Clearing of a workspace's or an assistant's memories in the admin, with the progress of each clearing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from memories.forgetting import clear
from memories.models import Clearing, Scope
from memoryhub.errors import Conflict
from workspaces.accounts.sign_in import ask_for_password
from workspaces.admin.base import ReadOnlyAdmin, action, counted
from workspaces.admin.filters import WorkspaceFilter
from workspaces.models import User


class ClearingForm(forms.ModelForm):
    """A form for the scope to clear, in which the number of its memories is typed as a confirmation."""

    number = forms.IntegerField(
        min_value=0, required=False, help_text="How many memories go. Leave it empty to be told."
    )

    class Meta:
        model = Clearing
        fields = ("workspace", "agent", "for_good")

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean() or {}
        workspace, agent = cleaned.get("workspace"), cleaned.get("agent")
        if agent is not None and agent.workspace != workspace:
            self.add_error("agent", "This assistant belongs to another workspace.")
        elif workspace is not None:
            scope = Scope.AGENT if agent else Scope.WORKSPACE
            live, whole = clear.count_in(workspace, scope, agent, by=self.instance.by)
            number = whole if cleaned.get("for_good") else live
            if cleaned.get("number") != number:
                self.add_error(
                    "number", f"{counted(number, 'memory goes', 'memories go')}. Type the number to go on."
                )
        return cleaned


@admin.register(Clearing)
class ClearingAdmin(ReadOnlyAdmin):
    """The admin of clearings, except those of personal memories, which only their owner may begin and see."""

    many = "clearings"
    form = ClearingForm
    list_display = ("public_id", "workspace", "scope", "for_good", "status", "progress", "by", "started_at")
    list_select_related = ("workspace", "by")
    list_filter = (WorkspaceFilter,)
    ids = {"clr": "public_id"}
    search_help_text = "The id of a clearing (clr_)."
    autocomplete_fields = ("workspace",)
    raw_id_fields = ("agent",)
    asked = ("workspace", "agent", "for_good", "number")
    shown = (
        "public_id",
        "workspace",
        "scope",
        "agent",
        "for_good",
        "status",
        "progress",
        "left_out",
        "by",
        "as_staff",
        "started_at",
        "finished_at",
    )
    actions = ("undo",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Clearing]:
        return super().get_queryset(request).exclude(scope=Scope.USER)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super(ReadOnlyAdmin, self).has_add_permission(request)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return self.asked if obj is None else self.shown

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return () if obj is None else self.shown

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)

        class OfStaff(form):  # type: ignore[misc, valid-type]
            def __init__(self, *args: Any, **values: Any) -> None:
                super().__init__(*args, **values)
                self.instance.by = request.user

        return OfStaff if obj is None else form

    @admin.display(description="done")
    def progress(self, clearing: Clearing) -> str:
        return f"{clearing.handled:,} of {clearing.total:,}"

    def save_model(self, request: HttpRequest, obj: Clearing, form: Any, change: bool) -> None:
        if obj.for_good:
            ask_for_password(request)
        scope, by = Scope.AGENT if obj.agent else Scope.WORKSPACE, cast("User", request.user)
        begun = clear.begin(
            obj.workspace, scope, obj.agent, by=by, for_good=obj.for_good, now=timezone.now(), as_staff=True
        )
        obj.pk, obj.public_id = begun.pk, begun.public_id

    @action("Undo", "change", asks="What each of them deleted is brought back in the background.")
    def undo(self, request: HttpRequest, rows: QuerySet[Clearing]) -> Iterator[tuple[str, int]]:
        begun = 0
        for clearing in rows:
            try:
                clear.undo(clearing, by=cast("User", request.user), as_staff=True)
                begun += 1
            except Conflict as refusal:
                yield f"{clearing.public_id}: {refusal.message}", messages.WARNING
        if begun:
            yield f"The undo of {counted(begun, 'clearing', 'clearings')} has begun.", messages.SUCCESS
