"""Pages of a person's own connections, and the choice of a workspace."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from memoryhub.errors import NotFound
from workspaces.access import workspaces_of
from workspaces.connections import actions, local_servers
from workspaces.connections.connection_form import ConnectionForm
from workspaces.connections.trial import try_connection
from workspaces.models.connection import Connection
from workspaces.pages.page_request import PageRequest


@require_http_methods(["GET", "POST"])
def connection_list(request: PageRequest) -> HttpResponse:
    form = ConnectionForm(request.POST if request.method == "POST" else None)
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    if made := form.done(lambda: actions.create_connection(**who, **form.values())):
        text = _("“%(name)s” has been saved. Test it, then choose it in a chat.")
        notices.success(request, text % {"name": made.name})
        return redirect("workspaces:connections")
    return _list_page(request, form)


def _list_page(request: PageRequest, form: ConnectionForm, **more: Any) -> HttpResponse:
    context = {
        "mine": Connection.objects.live().filter(owner=request.user).order_by("name", "pk"),
        "shared": Connection.objects.live().shared().order_by("name", "pk"),
        "may_connect": settings.PEOPLE_MAY_CONNECT,
        "may_manage": actions.may_manage(request.user),
        "may_look": local_servers.may_look(request.user),
        "form": form,
    }
    return render(request, "workspaces/connections.html", context | more, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
def look_here(request: PageRequest) -> HttpResponse:
    """What runs on this machine. GET: where somebody lands who had to sign in again."""
    if request.method == "GET":
        return redirect("workspaces:connections")
    running = local_servers.look(by=request.user, now=timezone.now())
    return _list_page(request, ConnectionForm(), running=running)


@require_POST
def connect_here(request: PageRequest) -> HttpResponse:
    """One of what was found, in one click; it answers in the workspace visited last."""
    server, model = request.POST.get("server", ""), request.POST.get("model", "")
    last = request.session.get("workspace")
    place = next((each for each in workspaces_of(request.user) if each.public_id == last), None)
    made = local_servers.connect(server, model, by=request.user, now=timezone.now(), place=place)
    name = {"name": made.connection.name}
    if not made.report.answers:
        notices.warning(request, _("“%(name)s” is saved, but did not answer: test it below.") % name)
    elif made.workspace is None:
        notices.success(request, _("“%(name)s” is connected. Choose it beside the title of a chat.") % name)
    else:
        name["workspace"] = made.workspace.name
        notices.success(request, _("“%(name)s” is connected and answers in “%(workspace)s” now.") % name)
        return redirect("chat:workspace", made.workspace.public_id)
    return redirect("workspaces:connections")


def _own(request: PageRequest, connection_id: str, *, to: str) -> Connection:
    """One of the person's own: the shared ones are changed in the admin."""
    found = actions.get_connection(request.user, connection_id, to=to)
    if found.is_shared:
        raise NotFound(actions.NOT_YOURS)
    return found


@require_http_methods(["GET", "POST"])
def connection(request: PageRequest, connection_id: str) -> HttpResponse:
    found = _own(request, connection_id, to="change")
    form = ConnectionForm(request.POST if request.method == "POST" else None, kept=found)
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    if form.done(lambda: actions.update_connection(found, **who, **form.values())):
        notices.success(request, _("Saved. The next answers use it."))
        return redirect("workspaces:connections")
    context = {"connection": found, "form": form}
    return render(request, "workspaces/connection.html", context, status=422 if form.errors else 200)


@require_POST
def delete(request: PageRequest, connection_id: str) -> HttpResponse:
    found = _own(request, connection_id, to="delete")
    used = actions.delete_connection(found, by=request.user, now=timezone.now())
    gone = _("“%(name)s” and its key are deleted.") % {"name": found.name}
    notices.success(request, f"{gone} {used.sentence()}".strip())
    return redirect("workspaces:connections")


@require_POST
def test(request: PageRequest, connection_id: str) -> HttpResponse:
    """The Test button of one's own, and of a shared one for who may change it."""
    found = actions.get_connection(request.user, connection_id, to="change")
    report = try_connection(found, by=request.user, now=timezone.now())
    context: dict[str, Any] = {"connection": found, "report": report}
    if request.htmx:
        return render(request, "workspaces/connection_report.html", context)
    return render(request, "workspaces/connection_tested.html", context)
