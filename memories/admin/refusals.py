"""What was not stored, by day: kinds and numbers, for nothing else is known of it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from memories.admin.activity import kind_label
from memories.admin.filters import WorkspaceFilter
from memories.models import Refusal
from memories.models.memory import SOURCE_LABELS
from workspaces.admin_kit.base import ReadOnlyAdmin
from workspaces.admin_kit.filters import ChoiceFilter


class ReasonFilter(ChoiceFilter):
    title = "reason"
    parameter_name = "reason"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("", "All"),
            ("secret", "Looked like a credential"),
            ("sensitive", "Held a personal number"),
            ("forgotten", "Forgotten for good before"),
            ("invalid", "Broke a rule"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.chosen():
            case "":
                return queryset
            case "secret":
                return queryset.exclude(kind__in=("sensitive", "forgotten", "invalid"))
            case reason:
                return queryset.filter(kind=reason)


@admin.register(Refusal)
class RefusalAdmin(ReadOnlyAdmin):
    many = "refusals"
    list_display = ("day", "what", "number", "source", "workspace")
    list_display_links = None
    list_select_related = ("workspace",)
    list_filter = (WorkspaceFilter, ReasonFilter)
    ordering = ("-day", "-id")
    sortable_by = ()
    fields = ("day", "what", "number", "source", "workspace")
    readonly_fields = fields

    @admin.display(description="what it was")
    def what(self, refusal: Refusal) -> str:
        return kind_label(refusal.kind)

    @admin.display(description="where it came from")
    def source(self, refusal: Refusal) -> str:
        return SOURCE_LABELS.get(refusal.source_type, "Another program")
