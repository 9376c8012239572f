"""What people asked for of their data, the overdue first: to be refused with a reason, or carried out by superusers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from memoryhub import mail
from workspaces.accounts.sign_in import ask_for_password
from workspaces.admin.superusers import NOT_TOLD, TOLD, is_superuser
from workspaces.admin_kit.base import ReadOnlyAdmin, action, counted, one_by_one
from workspaces.admin_kit.filters import ChoiceFilter
from workspaces.data_requests import requests
from workspaces.data_requests.carrying_out import carry_out
from workspaces.models import DataRequest, RequestState, User

OVERDUE = "overdue"


class StateFilter(ChoiceFilter):
    parameter_name = "state"
    offered = [("", "All"), (OVERDUE, "Overdue"), *((each.value, each.name.title()) for each in RequestState)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.chosen() == OVERDUE:
            return queryset & DataRequest.objects.overdue(timezone.now())
        return super().queryset(request, queryset)


@admin.register(DataRequest)
class DataRequestAdmin(ReadOnlyAdmin):
    many = "requests"
    list_display = ("who", "kind", "stands", "asked_at", "due_at", "ended_at", "ended_by")
    list_select_related = ("user", "ended_by")
    list_filter = (StateFilter,)
    ids = {"req": "public_id", "usr": "person"}
    search_help_text = "The id of a request (req_) or a person (usr_)."
    # Open ones first, by when they are due: the overdue stand above all.
    ordering = (F("ended_at").desc(nulls_first=True), "due_at", "id")  # type: ignore[assignment]
    actions = ("delete_accounts",)
    fields = ("who", "person", "kind", "stands", "asked_at", "due_at", "ended_at", "ended_by", "reason")
    readonly_fields = fields[:-1]

    @admin.display(description="who")
    def who(self, row: DataRequest) -> str:
        return row.user.get_username() if row.user else row.person

    @admin.display(description="state")
    def stands(self, row: DataRequest) -> str:
        is_overdue = row.state == RequestState.OPEN and row.due_at < timezone.now()
        return "Overdue" if is_overdue else RequestState(row.state).name.title()

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Of one that is open: it can be refused."""
        may = self.opts.app_label + ".change_datarequest"
        return cast(User, request.user).has_perm(may) and (obj is None or obj.state == RequestState.OPEN)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        if field := form.base_fields.get("reason"):
            field.required, field.label = True, "Refuse it, because"
        return form

    def save_model(self, request: HttpRequest, obj: DataRequest, form: Any, change: bool) -> None:
        by = cast(User, request.user)
        requests.refuse(obj, reason=form.cleaned_data["reason"], by=by, now=timezone.now())
        self.message_user(request, *(TOLD if mail.is_set() else NOT_TOLD))

    @action(
        "Delete the account and its data",
        "change",
        asks="Their account, own workspaces, personal memories and private chats go for good, and cannot be brought "
        "back. Where they are the only owner, who has been an editor longest becomes one.",
        danger=True,
    )
    def delete_accounts(self, request: HttpRequest, rows: QuerySet[DataRequest]) -> Iterator[tuple[str, int]]:
        if not is_superuser(request):
            raise PermissionDenied
        ask_for_password(request)
        done, refused = one_by_one(rows, carry_out, request)
        yield f"{counted(len(done), 'account', 'accounts')} deleted.", messages.SUCCESS
        yield from refused
