"""Admin of daily model usage, and of a person's budget on the person's page."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from django.contrib import admin
from django.contrib.auth.forms import UserChangeForm
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone

from workspaces.admin.base import ReadOnlyAdmin
from workspaces.admin.filters import AutocompleteFilter, ChoiceFilter, WorkspaceFilter
from workspaces.models import ModelUse, Purpose
from workspaces.spending.bill import amount
from workspaces.spending.budgets import first_of_month
from workspaces.spending.totals import of_month
from workspaces.views.forms import BudgetFields

MONTHS = 12
OWN = "(own)"  # for people's own connections, whose names are private
LATELY = timedelta(days=62)


class PersonForm(UserChangeForm, BudgetFields):
    """Form of an account with its monthly budget."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        budget = getattr(self.instance, "budget", None)
        self.initial.update(tokens=budget and budget.tokens, money=budget and budget.money)


class MonthFilter(ChoiceFilter):
    parameter_name = "month"
    offered = [("", "All")]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        first, months = first_of_month(timezone.now()), []
        for _ in range(MONTHS):
            months.append((f"{first:%Y-%m}", f"{first:%B %Y}"))
            first = (first - timedelta(days=1)).replace(day=1)
        return [("", "All"), *months]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        chosen = self.chosen()
        return of_month(queryset, date.fromisoformat(f"{chosen}-01")) if chosen else queryset


class PersonFilter(AutocompleteFilter):
    parameter_name = "user"


class PurposeFilter(ChoiceFilter):
    parameter_name = "purpose"
    offered = [("", "All"), *((str(value), str(label)) for value, label in Purpose.choices)]


class ModelFilter(ChoiceFilter):
    """Filter by recently used models."""

    parameter_name = "model"
    offered = [("", "All")]
    rules = {OWN: Q(model="")}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        lately = ModelUse.objects.filter(day__gte=timezone.now().date() - LATELY)
        names = lately.order_by().values_list("model", flat=True).distinct()
        return [("", "All"), *((name or OWN, name or "Own connections") for name in sorted(names))]


@admin.register(ModelUse)
class ModelUseAdmin(ReadOnlyAdmin):
    """Admin of model usage by day (UTC): numbers, no texts."""

    many = "sums"
    list_display = (
        "day",
        "workspace",
        "user",
        "purpose",
        "model",
        "calls",
        "estimated",
        "tokens_in",
        "tokens_out",
        "in_money",
    )
    list_select_related = ("workspace", "user")
    list_filter = (MonthFilter, WorkspaceFilter, PersonFilter, PurposeFilter, ModelFilter)
    ids = {"ws": "workspace__public_id", "usr": "user__public_id"}
    search_help_text = "The id of a workspace (ws_) or a person (usr_)."
    ordering = ("-day", "-id")
    actions = None
    fields = (
        "day",
        "workspace",
        "user",
        "purpose",
        "model",
        "calls",
        "estimated",
        "unpriced",
        "tokens_in",
        "cached",
        "tokens_out",
        "reasoning",
        "memory",
        "documents",
        "tools",
        "in_money",
    )
    readonly_fields = ("in_money",)

    @admin.display(description="cost")
    def in_money(self, use: ModelUse) -> str:
        """Return the cost of the priced calls, or "-" if no call has a price."""
        return amount(use.cost) if use.calls > use.unpriced else "-"
