"""Pages of what models took: of a workspace, with its budget, and of oneself."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from memoryhub.errors import Invalid
from workspaces.access import get_workspace
from workspaces.models import Budget, Role, Workspace
from workspaces.spending import totals
from workspaces.spending.budgets import set_workspace_budget
from workspaces.views import PageRequest
from workspaces.views.forms import BudgetFields, DomainForm


class BudgetForm(BudgetFields, DomainForm):
    """Form of a budget, with the domain's errors at its fields."""


@require_http_methods(["GET", "POST"])
def workspace_usage(request: PageRequest, ws_id: str) -> HttpResponse:
    need = Role.OWNER if request.method == "POST" else Role.VIEWER
    workspace = get_workspace(request.user, ws_id, need=need)
    is_owner, now = workspace.role == Role.OWNER, timezone.now()
    form = _budget_form(request, workspace) if is_owner else None
    if form is not None and form.is_bound and form.is_valid():
        form.done(
            lambda: set_workspace_budget(workspace, **form.cleaned_data, by=request.user, now=now) or True
        )
        if not form.errors:
            notices.success(request, _("The budget is saved."))
            return redirect("workspaces:usage", ws_id)
    first = _first(request)
    month = totals.of_workspace(workspace, request.user, first, now=now)
    context: dict[str, Any] = {"workspace": workspace, "month": month, "form": form, "is_owner": is_owner}
    context["this_month"] = totals.month_of("", now=now)
    return render(request, "workspaces/usage.html", context, status=422 if form and form.errors else 200)


@require_GET
def own_usage(request: PageRequest) -> HttpResponse:
    now = timezone.now()
    month = totals.of_person(request.user, _first(request), now=now)
    context = {"month": month, "this_month": totals.month_of("", now=now)}
    return render(request, "workspaces/usage.html", context)


def _first(request: PageRequest) -> Any:
    """Return the requested month; this one for an invalid one."""
    now = timezone.now()
    try:
        return totals.month_of(request.GET.get("month", ""), now=now)
    except Invalid:
        return totals.month_of("", now=now)


def _budget_form(request: PageRequest, workspace: Workspace) -> BudgetForm:
    budget = Budget.objects.filter(workspace=workspace).first()
    kept: dict[str, int | Decimal | None] = {"tokens": budget.tokens, "money": budget.money} if budget else {}
    return BudgetForm(request.POST if request.method == "POST" else None, initial=kept)
