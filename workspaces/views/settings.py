"""Settings pages of a workspace and a person: single settings, retention, and usage with its budget."""

from collections.abc import Callable
from contextlib import nullcontext
from datetime import date, datetime
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memoryhub.errors import Invalid
from memoryhub.localization import grouped, speaking_to
from workspaces import retention as rules
from workspaces.access import get_workspace
from workspaces.accounts.account_changes import set_name
from workspaces.actions import workspaces
from workspaces.models import Budget, Role, Workspace
from workspaces.spending import monthly_usage
from workspaces.spending.budgets import set_workspace_budget
from workspaces.views import PageRequest, reload_or_redirect
from workspaces.views.forms import BudgetFields, DomainForm


def switch(setting: str, sent: str) -> Callable[..., HttpResponse]:
    """Return a view that turns the ``setting`` of a workspace on or off. ``sent``: name of the checkbox in the form."""

    @require_POST
    def view(request: PageRequest, ws_id: str) -> HttpResponse:
        return _changed(request, ws_id, **{setting: request.POST.get(sent) == "on"})

    return view


@require_POST
def model(request: PageRequest, ws_id: str) -> HttpResponse:
    """Set the default model of a workspace, if one was chosen."""
    changed = _changed(request, ws_id, connection_id=request.POST.get("connection"))
    return redirect("chat:workspace", ws_id) if request.POST.get("from") == "chat" else changed


@require_POST
def short_term_everywhere(request: PageRequest) -> HttpResponse:
    wanted = request.POST.get("everywhere") == "on"
    workspaces.set_preference(request.user, "short_term_everywhere", wanted)
    notices.success(request, _("Saved."))
    return redirect("workspaces:profile")


@require_POST
def name(request: PageRequest) -> HttpResponse:
    set_name(request.user, request.POST.get("name", ""))
    notices.success(request, _("Saved."))
    return redirect(reverse("workspaces:profile") + "#name")


@require_POST
def language(request: PageRequest) -> HttpResponse:
    """Set the person's language. The response already uses it."""
    workspaces.set_language(request.user, request.POST.get("language", ""))
    with speaking_to(request.user) if request.user.language else nullcontext():
        notices.success(request, _("Saved."))
    return reload_or_redirect(request, reverse("workspaces:profile") + "#language")


def _changed(request: PageRequest, ws_id: str, **changes: Any) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER)
    workspaces.update_workspace(workspace, by=request.user, **changes)
    notices.success(request, _("Saved."))
    return redirect("workspaces:settings", ws_id)


LABELS = {
    "chats": later("Chats: days after the last message"),
    "memories": later("Memories: days after they were last changed or used"),
    "documents": later("Documents: days after their last change"),
    "artifacts": later("Artifacts: days after their last change"),
    "activity": later("Activity: days after each entry"),
}


class RetentionForm(DomainForm):
    chats = forms.IntegerField(label=LABELS["chats"], required=False)
    memories = forms.IntegerField(label=LABELS["memories"], required=False)
    documents = forms.IntegerField(label=LABELS["documents"], required=False)
    artifacts = forms.IntegerField(label=LABELS["artifacts"], required=False)
    activity = forms.IntegerField(label=LABELS["activity"], required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            allowed = rules.bounds(name)
            field.widget.attrs |= {"min": allowed.least, "max": allowed.most or rules.MOST_DAYS}
            if allowed.most:
                text = ngettext(
                    "Your administrator keeps them for %(days)s day at most.",
                    "Your administrator keeps them for %(days)s days at most.",
                    allowed.most,
                )
                field.help_text = text % {"days": grouped(allowed.most)}


@require_http_methods(["GET", "POST"])
def retention(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the retention rules (GET). POST saves them, or with ``preview`` shows how many items they would delete."""
    sent = request.method == "POST"
    workspace = get_workspace(request.user, ws_id, need=Role.OWNER if sent else Role.VIEWER)
    now, present = timezone.now(), rules.rules_of(workspace)
    form = RetentionForm(request.POST if sent else None, initial=present)
    context: dict[str, Any] = {"workspace": workspace, "is_owner": workspace.role == Role.OWNER}
    if sent and "preview" in request.POST:
        context["would_go"] = form.done(lambda: _preview(workspace, form.cleaned_data, request, now))
    elif form.done(lambda: rules.set_rules(workspace, by=request.user, now=now, **form.cleaned_data)):
        notices.success(request, _("Saved. Nothing is deleted by it before tomorrow."))
        return redirect("workspaces:retention", ws_id)
    context |= {
        "form": form,
        "lines": [(LABELS[name], days) for name, days in rules.in_force(present).items()],
        "purge_days": settings.PURGE_AFTER_DAYS,
    }
    return render(request, "workspaces/retention.html", context, status=422 if form.errors else 200)


def _preview(workspace: Any, days: rules.Rules, request: PageRequest, now: Any) -> list[tuple[Any, int]]:
    rules.check(days)
    counts = rules.would_go(workspace, days, by=request.user, now=now)
    return [(KINDS[name], number) for name, number in counts.items()]


KINDS = {
    "chats": later("Chats"),
    "memories": later("Memories"),
    "documents": later("Documents"),
    "artifacts": later("Artifacts"),
    "activity": later("Entries of the activity"),
}


class BudgetForm(BudgetFields, DomainForm):
    """Form of a budget, which shows the service's errors at its fields."""


@require_http_methods(["GET", "POST"])
def workspace_usage(request: PageRequest, ws_id: str) -> HttpResponse:
    need = Role.OWNER if request.method == "POST" else Role.VIEWER
    workspace = get_workspace(request.user, ws_id, need=need)
    is_owner, now = workspace.role == Role.OWNER, timezone.now()
    form = _budget_form(request, workspace) if is_owner else None
    if form is not None and form.is_bound:
        form.done(lambda: set_workspace_budget(workspace, **form.cleaned_data, by=request.user, now=now))
        if not form.errors:
            notices.success(request, _("The budget is saved."))
            return redirect("workspaces:usage", ws_id)
    month = monthly_usage.of_workspace(workspace, request.user, _first(request, now), now=now)
    context: dict[str, Any] = {"workspace": workspace, "month": month, "form": form, "is_owner": is_owner}
    context["this_month"] = monthly_usage.month_of("", now=now)
    return render(request, "workspaces/usage.html", context, status=422 if form and form.errors else 200)


@require_GET
def own_usage(request: PageRequest) -> HttpResponse:
    now = timezone.now()
    month = monthly_usage.of_person(request.user, _first(request, now), now=now)
    context = {"month": month, "this_month": monthly_usage.month_of("", now=now)}
    return render(request, "workspaces/usage.html", context)


def _first(request: PageRequest, now: datetime) -> date:
    """Return the first day of the requested month, or of the current month if it is invalid."""
    try:
        return monthly_usage.month_of(request.GET.get("month", ""), now=now)
    except Invalid:
        return monthly_usage.month_of("", now=now)


def _budget_form(request: PageRequest, workspace: Workspace) -> BudgetForm:
    budget = Budget.objects.filter(workspace=workspace).first()
    initial = {"tokens": budget.tokens, "money": budget.money} if budget else None
    return BudgetForm(request.POST if request.method == "POST" else None, initial=initial)
