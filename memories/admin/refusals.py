"""What was not stored, by day: kinds and numbers, for nothing else is known of it."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Q

from memories.admin.activity import kind_label
from memories.models import Refusal
from memories.models.memory import SOURCE_LABELS
from workspaces.admin_kit.base import ReadOnlyAdmin
from workspaces.admin_kit.filters import ChoiceFilter, WorkspaceFilter


class ReasonFilter(ChoiceFilter):
    parameter_name = "reason"
    column = "kind"
    offered = [
        ("", "All"),
        ("secret", "Looked like a credential"),
        ("sensitive", "Held a personal number"),
        ("forgotten", "Forgotten for good before"),
        ("invalid", "Broke a rule"),
        ("unread", "The model's reply could not be read"),
    ]

    rules = {"secret": ~Q(kind__in=("sensitive", "forgotten", "invalid", "unread"))}


@admin.register(Refusal)
class RefusalAdmin(ReadOnlyAdmin):
    many = "refusals"
    list_display = ("day", "what", "number", "source", "workspace")
    list_display_links = None
    list_select_related = ("workspace",)
    list_filter = (WorkspaceFilter, ReasonFilter)
    ordering = ("-day", "-id")
    fields = ("day", "what", "number", "source", "workspace")
    readonly_fields = fields

    @admin.display(description="what it was")
    def what(self, refusal: Refusal) -> str:
        return kind_label(refusal.kind)

    @admin.display(description="where it came from")
    def source(self, refusal: Refusal) -> str:
        return str(SOURCE_LABELS.get(refusal.source_type, "Another program"))
