"""The page on which models are connected, looked after, tried and deleted: one's own, and everybody's by who may."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from workspaces.access import workspaces_of
from workspaces.accounts.sign_in import ask_for_password
from workspaces.connections import actions, connecting, local_servers
from workspaces.connections.connection_form import (
    PRESETS,
    ConnectionForm,
    NewConnectionForm,
    SharedConnectionForm,
)
from workspaces.connections.trial import try_connection
from workspaces.models import Workspace
from workspaces.models.connection import Connection
from workspaces.pages.larger_model_views import larger_model_status
from workspaces.pages.page_request import PageRequest


@require_http_methods(["GET", "POST"])
def connection_list(request: PageRequest) -> HttpResponse:
    """POST: ``act`` names the button: list the models, try one, keep it, or both."""
    form, act = _new_form(request), request.POST.get("act", "")
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    more: dict[str, Any] = {}
    if act == "models":
        form.fields["model"].required = False
        more["offered"] = form.done(lambda: connecting.list_offered(**who, **form.values()))
        form.fields["model"].required = True  # as the form that is shown says
    elif act == "test":
        more["report"] = form.done(lambda: connecting.try_out(**who, **form.values()))
    elif act == "keep":
        if kept := form.done(lambda: connecting.keep(**who, **form.values())):
            text = _("“%(name)s” has been saved. Test it, then choose it in a chat.")
            notices.success(request, text % {"name": kept.name})
            return _leave(request, redirect("workspaces:connections"))
    else:
        made = form.done(lambda: connecting.connect(**who, place=_last_place(request), **form.values()))
        if isinstance(made, connecting.Connected):
            return _leave(request, _connected(request, made))
        more = {"report": made, "may_keep": made is not None}
    return _list_page(request, form, **more)


def _new_form(request: PageRequest, *, sent: bool = True) -> NewConnectionForm:
    """As it was ``sent``, where this is what was."""
    data = request.POST if sent and request.method == "POST" else None
    return NewConnectionForm(
        data,
        preset=(data or request.GET).get("preset", ""),
        manages=actions.may_manage(request.user),
        has_own=settings.PEOPLE_MAY_CONNECT,
        is_first=not Connection.objects.live().shared().exists(),
    )


def _leave(request: PageRequest, away: HttpResponse) -> HttpResponse:
    """To another page, of which htmx would otherwise show what it asked for of this one."""
    return HttpResponse(headers={"HX-Redirect": away["Location"]}) if request.htmx else away


def _list_page(request: PageRequest, form: NewConnectionForm, **more: Any) -> HttpResponse:
    manages = actions.may_manage(request.user)
    context = {
        "mine": Connection.objects.live().filter(owner=request.user).order_by("name", "pk"),
        "shared": Connection.objects.live().shared().order_by("name", "pk"),
        "may_connect": settings.PEOPLE_MAY_CONNECT,
        "may_manage": manages,
        "may_find": local_servers.may_find(request.user),
        "presets": PRESETS,
        "larger_model": larger_model_status(),
        "form": form,
    }
    failed = form.errors and not request.htmx  # not to htmx, which would put it among the notices
    return render(request, "workspaces/connections.html", context | more, status=422 if failed else 200)


@require_http_methods(["GET", "POST"])
def find_here(request: PageRequest) -> HttpResponse:
    """Show what runs on this machine. GET: for a person who had to sign in again."""
    if request.method == "GET":
        return redirect("workspaces:connections")
    running = local_servers.find(by=request.user, now=timezone.now())
    return _list_page(request, _new_form(request, sent=False), running=running)


@require_POST
def connect_here(request: PageRequest) -> HttpResponse:
    """Connect a found model in one click; it answers in the workspace visited last."""
    server, model = request.POST.get("server", ""), request.POST.get("model", "")
    made = local_servers.connect(
        server, model, by=request.user, now=timezone.now(), place=_last_place(request)
    )
    if isinstance(made, connecting.Connected):
        return _connected(request, made)
    tried = {"running": local_servers.running(), "tried": {"server": server, "model": model, "report": made}}
    return _list_page(request, _new_form(request, sent=False), **tried)


def _last_place(request: PageRequest) -> Workspace | None:
    last = request.session.get("workspace")
    return next((each for each in workspaces_of(request.user) if each.public_id == last), None)


def _connected(request: PageRequest, made: connecting.Connected) -> HttpResponse:
    name = {"name": made.connection.name}
    if made.workspace is None:
        notices.success(request, _("“%(name)s” is connected. Choose it beside the title of a chat.") % name)
    else:
        name["workspace"] = made.workspace.name
        notices.success(request, _("“%(name)s” is connected and answers in “%(workspace)s” now.") % name)
        return redirect("chat:workspace", made.workspace.public_id)
    return redirect("workspaces:connections")


@require_http_methods(["GET", "POST"])
def connection(request: PageRequest, connection_id: str) -> HttpResponse:
    """Change one of the person's own, or a shared one after confirming their identity."""
    found = actions.get_connection(request.user, connection_id, to="change")
    if found.is_shared:
        ask_for_password(request)
    shape = SharedConnectionForm if found.is_shared else ConnectionForm
    form = shape(request.POST if request.method == "POST" else None, kept=found)
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    if form.done(lambda: actions.update_connection(found, **who, **form.values())):
        notices.success(request, _("Saved. The next answers use it."))
        return redirect("workspaces:connections")
    context = {"connection": found, "form": form}
    return render(request, "workspaces/connection.html", context, status=422 if form.errors else 200)


@require_POST
def default(request: PageRequest, connection_id: str) -> HttpResponse:
    """The switch that makes a shared connection the default for everyone, or no longer."""
    shared = actions.get_connection(request.user, connection_id, to="change")
    ask_for_password(request)
    wanted = request.POST.get("is_default") == "on"
    actions.update_connection(shared, by=request.user, now=timezone.now(), is_default=wanted)
    if wanted:
        text = _("“%(name)s” answers now wherever no other model is chosen.")
    else:
        text = _("“%(name)s” is no longer the default for everyone.")
    notices.success(request, text % {"name": shared.name})
    return redirect("workspaces:connections")


@require_POST
def delete(request: PageRequest, connection_id: str) -> HttpResponse:
    found = actions.get_connection(request.user, connection_id, to="delete")
    used = actions.delete_connection(found, by=request.user, now=timezone.now())
    gone = _("“%(name)s” and its key are deleted.") % {"name": found.name}
    notices.success(request, f"{gone} {used.sentence()}".strip())
    return redirect("workspaces:connections")


@require_POST
def test(request: PageRequest, connection_id: str) -> HttpResponse:
    """The Test button of one's own, and of a shared one for who may change it."""
    found = actions.get_connection(request.user, connection_id, to="change")
    report = try_connection(found, by=request.user, now=timezone.now())
    context: dict[str, Any] = {"connection": found, "name": found.name, "report": report}
    if request.htmx:
        return render(request, "workspaces/connection_report.html", context)
    return render(request, "workspaces/connection_tested.html", context)
