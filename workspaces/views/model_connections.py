"""Pages to connect, change, test and delete models: one's own, and shared ones for administrators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from django.views.decorators.http import require_http_methods, require_POST

from memoryhub.errors import Forbidden, Invalid
from memoryhub.llm.metering import MOST_PRICE
from memoryhub.local.large_model_download import Status, Wanted, read_status, want
from workspaces.access import workspaces_of
from workspaces.accounts.reauthentication import ask_for_password
from workspaces.actions import model_connections
from workspaces.actions.model_connections import CONTEXT, KEY_LENGTH, may_manage
from workspaces.connection_tests import try_connection
from workspaces.models import Workspace
from workspaces.models.language_models import (
    LEAST_CONTEXT,
    MODEL_LENGTH,
    MOST_CONTEXT,
    NAME_LENGTH,
    URL_LENGTH,
    Connection,
)
from workspaces.views import PageRequest
from workspaces.views.forms import DomainForm, plain_field


@require_http_methods(["GET", "POST"])
def connection_list(request: PageRequest) -> HttpResponse:
    """List the connections (GET), or use the form for a new connection (POST), as the pressed button ``act`` says.

    A POST shows the models that the server lists, tests the connection, saves it, or tests and then saves it.
    """
    form, act = _new_form(request), request.POST.get("act", "")
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    more: dict[str, Any] = {}
    if act == "models":
        form.fields["model"].required = False
        more["offered"] = offered = form.done(lambda: model_connections.list_offered(**who, **form.values()))
        if offered and len(offered) == 1:
            form.data = {**dict(form.data.items()), form.add_prefix("model"): offered[0]}
        form.fields["model"].required = True  # the displayed form requires it
    elif act == "test":
        more["report"] = form.done(lambda: model_connections.test_draft(**who, **form.values()))
    elif act == "keep":
        if connection_row := form.done(lambda: model_connections.save_untested(**who, **form.values())):
            text = _("“%(name)s” has been saved. Test it, then choose it in a chat.")
            notices.success(request, text % {"name": connection_row.name})
            return _leave(request, redirect("workspaces:connections"))
    else:
        outcome = form.done(
            lambda: model_connections.connect(**who, place=_last_place(request), **form.values())
        )
        if isinstance(outcome, model_connections.Connected):
            return _leave(request, _connected(request, outcome))
        more = {"report": outcome, "may_keep": outcome is not None}
    return _list_page(request, form, **more)


def _new_form(request: PageRequest, *, sent: bool = True) -> NewConnectionForm:
    """Return the form for a new connection, filled with the request's data if ``sent``."""
    data = request.POST if sent and request.method == "POST" else None
    return NewConnectionForm(
        data,
        preset=(data or request.GET).get("preset", ""),
        manages=may_manage(request.user),
        has_own=settings.PEOPLE_MAY_CONNECT,
        is_first=not Connection.objects.live().shared().exists(),
    )


def _leave(request: PageRequest, away: HttpResponse) -> HttpResponse:
    """Return the redirect ``away``. For htmx, convert it so that the browser loads the whole page."""
    return HttpResponse(headers={"HX-Redirect": away["Location"]}) if request.htmx else away


def _list_page(request: PageRequest, form: NewConnectionForm, **more: Any) -> HttpResponse:
    context = {
        "mine": Connection.objects.live().filter(owner=request.user).order_by("name", "pk"),
        "shared": Connection.objects.live().shared().order_by("name", "pk"),
        "may_connect": settings.PEOPLE_MAY_CONNECT,
        "may_manage": may_manage(request.user),
        "may_find": model_connections.may_find(request.user),
        "presets": PRESETS,
        "larger_model": larger_model_status(),
        "form": form,
    }
    failed = form.errors and not request.htmx  # not for htmx, which would show it as a notice
    return render(request, "workspaces/connections.html", context | more, status=422 if failed else 200)


@require_http_methods(["GET", "POST"])
def find_here(request: PageRequest) -> HttpResponse:
    """Show the model servers on this machine. GET redirects to the list, because it follows a re-authentication."""
    if request.method == "GET":
        return redirect("workspaces:connections")
    running = model_connections.find_local_servers(by=request.user, now=timezone.now())
    return _list_page(request, _new_form(request, sent=False), running=running)


@require_POST
def connect_here(request: PageRequest) -> HttpResponse:
    """Connect a model that was found on this machine, for the workspace that the person visited last."""
    server, model = request.POST.get("server", ""), request.POST.get("model", "")
    outcome = model_connections.connect_local(
        server, model, by=request.user, now=timezone.now(), place=_last_place(request)
    )
    if isinstance(outcome, model_connections.Connected):
        return _connected(request, outcome)
    tried = {
        "running": model_connections.running_servers(),
        "tried": {"server": server, "model": model, "report": outcome},
    }
    return _list_page(request, _new_form(request, sent=False), **tried)


def _last_place(request: PageRequest) -> Workspace | None:
    last = request.session.get("workspace")
    return next((each for each in workspaces_of(request.user) if each.public_id == last), None)


def _connected(request: PageRequest, outcome: model_connections.Connected) -> HttpResponse:
    name = {"name": outcome.connection.name}
    if outcome.workspace is None:
        notices.success(request, _("“%(name)s” is connected. Choose it beside the title of a chat.") % name)
        return redirect("workspaces:connections")
    name["workspace"] = outcome.workspace.name
    notices.success(request, _("“%(name)s” is connected and answers in “%(workspace)s” now.") % name)
    return redirect("chat:workspace", outcome.workspace.public_id)


@require_http_methods(["GET", "POST"])
def connection(request: PageRequest, connection_id: str) -> HttpResponse:
    """Change one's own connection, or a shared one after re-authentication."""
    connection_row = model_connections.get_connection(request.user, connection_id, to="change")
    if connection_row.is_shared:
        ask_for_password(request)
    shape = SharedConnectionForm if connection_row.is_shared else ConnectionForm
    form = shape(request.POST if request.method == "POST" else None, kept=connection_row)
    who: dict[str, Any] = {"by": request.user, "now": timezone.now()}
    if form.done(lambda: model_connections.update_connection(connection_row, **who, **form.values())):
        notices.success(request, _("Saved. The next answers use it."))
        return redirect("workspaces:connections")
    context = {"connection": connection_row, "form": form}
    return render(request, "workspaces/connection.html", context, status=422 if form.errors else 200)


SWITCHED = {
    ("is_default", True): later("“%(name)s” answers now wherever no other model is chosen."),
    ("is_default", False): later("“%(name)s” is no longer the default for everyone."),
    ("has_tools", True): later("“%(name)s” can call tools now."),
    ("has_tools", False): later("“%(name)s” is no longer given tools."),
    ("can_extract", True): later("“%(name)s” can extract memories now."),
    ("can_extract", False): later("“%(name)s” no longer extracts memories."),
}


@require_POST
def switch(request: PageRequest, connection_id: str) -> HttpResponse:
    """Turn one setting of SWITCHED on or off, such as ``is_default=on``."""
    connection_row = model_connections.get_connection(request.user, connection_id, to="change")
    if connection_row.is_shared:
        ask_for_password(request)
    for (name, wanted), text in SWITCHED.items():
        if request.POST.get(name) == ("on" if wanted else "off"):
            model_connections.update_connection(
                connection_row, by=request.user, now=timezone.now(), **{name: wanted}
            )
            notices.success(request, text % {"name": connection_row.name})
    return redirect("workspaces:connections")


@require_POST
def delete(request: PageRequest, connection_id: str) -> HttpResponse:
    connection_row = model_connections.get_connection(request.user, connection_id, to="delete")
    used = model_connections.delete_connection(connection_row, by=request.user, now=timezone.now())
    gone = _("“%(name)s” and its key are deleted.") % {"name": connection_row.name}
    notices.success(request, f"{gone} {used.sentence()}".strip())
    return redirect("workspaces:connections")


@require_POST
def test(request: PageRequest, connection_id: str) -> HttpResponse:
    """Test one's own connection, or a shared one as an administrator."""
    connection_row = model_connections.get_connection(request.user, connection_id, to="change")
    report = try_connection(connection_row, by=request.user, now=timezone.now())
    misset = {
        name: works for name, works in report.abilities.items() if getattr(connection_row, name) != works
    }
    context = {
        "connection": connection_row,
        "name": connection_row.name,
        "report": report,
        "misset": misset,
    }
    template = "workspaces/connection_report.html" if request.htmx else "workspaces/connection_tested.html"
    return render(request, template, context)


def _price(label: Any, help_text: Any = "") -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        help_text=help_text,
        required=False,
        min_value=0,
        max_value=MOST_PRICE,
        decimal_places=6,
        widget=plain_field(inputmode="decimal"),
    )


@dataclass(frozen=True)
class Preset:
    """Default values of the form for a kind of server."""

    name: Any
    address: str = ""
    context: int = 16_384  # tokens
    needs_key: bool = False


PRESETS = {
    "openai": Preset("OpenAI", "https://api.openai.com/v1", needs_key=True),
    "ollama": Preset("Ollama", "http://localhost:11434/v1", CONTEXT),
    "other": Preset(later("Other")),
}


class ConnectionForm(DomainForm):
    name = forms.CharField(label=later("Name"), max_length=NAME_LENGTH, widget=plain_field())
    base_url = forms.CharField(
        label=later("Address"),
        max_length=URL_LENGTH,
        widget=plain_field(inputmode="url", placeholder="https://api.example.org/v1"),
        help_text=later(
            "Of any endpoint compatible with the OpenAI API, up to and including /v1. Redirects are not followed."
        ),
    )
    model = forms.CharField(
        label=later("Model"),
        max_length=MODEL_LENGTH,
        widget=plain_field(),
        help_text=later("Model ID"),
    )
    api_key = forms.CharField(
        label=later("Key"),
        max_length=KEY_LENGTH,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=later("Kept encrypted and never shown again."),
    )
    context_tokens = forms.IntegerField(
        label=later("Context, in tokens"),
        min_value=LEAST_CONTEXT,
        max_value=MOST_CONTEXT,
        initial=16_384,
        help_text=later("For prompt and answer together."),
    )
    has_tools = forms.BooleanField(label=later("Can call tools"), required=False, initial=True)
    can_extract = forms.BooleanField(
        label=later("Can extract memories (otherwise rules do)"), required=False, initial=True
    )
    sees = forms.NullBooleanField(
        label=later("Can see pictures"),
        required=False,
        help_text=later("Leave as Unknown to detect automatically."),
    )

    price_in = _price(later("Price per million input tokens"))
    price_cached = _price(
        later("Price per million cached input tokens"),
        later("Leave it empty if they cost the same as the others."),
    )
    price_out = _price(
        later("Price per million output tokens"),
        later("With both prices, each answer shows its cost. Leave them empty to show none."),
    )

    def __init__(self, *args: Any, kept: Connection | None = None, **kwargs: Any) -> None:
        """Initialize the form. ``kept``: the connection to change."""
        if kept is not None:
            kwargs.setdefault(
                "initial", {name: getattr(kept, name) for name in self.base_fields if name != "api_key"}
            )
        super().__init__(*args, **kwargs)
        self.kept = kept
        if kept is not None and kept.has_key:
            self.fields["api_key"].help_text = later("Leave it empty to keep the one that is stored.")

    def values(self) -> dict[str, Any]:
        """Return the values to save, without the key if it was left empty for a stored connection."""
        values = dict(self.cleaned_data)
        if self.kept is not None and not values["api_key"]:
            del values["api_key"]
        return values


class SharedConnectionForm(ConnectionForm):
    """Form of a shared connection, which administrators may mark as local."""

    is_local = forms.BooleanField(
        label=later("Local: may answer where memories never leave this machine"), required=False
    )

    is_default = forms.BooleanField(
        label=later("Default for everyone: answers wherever no other model is chosen"), required=False
    )


class NewConnectionForm(ConnectionForm):
    """Form of a new connection. A test finds out its capabilities."""

    name = forms.CharField(
        label=later("Name"),
        max_length=NAME_LENGTH,
        required=False,
        widget=plain_field(),
        help_text=later("Defaults to the model's name."),
    )
    shared = forms.BooleanField(
        label=later("For everyone here, not for me alone"), required=False, initial=True
    )
    is_default = SharedConnectionForm.base_fields["is_default"]
    FIRST = ("base_url", "api_key", "model", "shared", "is_default")

    def __init__(
        self, data: Any = None, *, preset: str, manages: bool, has_own: bool, is_first: bool = False
    ) -> None:
        """Initialize the form.

        ``manages``: the person may create shared connections. ``has_own``: the person may create their own.
        ``is_first``: there is no shared connection yet.
        """
        self.preset = preset if preset in PRESETS else "openai" if data is None else "other"
        filled = PRESETS[self.preset]
        super().__init__(
            data,
            initial={"base_url": filled.address, "context_tokens": filled.context, "is_default": is_first},
        )
        self.manages = manages
        hidden = ["has_tools", "can_extract"]
        hidden += [] if manages and has_own else ["shared"]
        hidden += [] if manages else ["is_default"]
        for name in hidden:
            del self.fields[name]
        if filled.address:
            self.fields["base_url"].help_text = ""
        self.fields["api_key"].required = filled.needs_key
        self.fields["model"].widget.attrs["list"] = "offered-models"
        # Typed values stay when the form is shown again, but do not carry over to another kind of server.
        key_id = f"id_api_key_{self.preset}"
        self.fields["api_key"].widget.attrs |= {"id": key_id, "hx-preserve": "true"}

    def values(self) -> dict[str, Any]:
        values = {**super().values(), "shared": self.cleaned_data.get("shared", self.manages)}
        return values if values["shared"] else values | {"is_default": False}

    def first(self) -> list[forms.BoundField]:
        return [self[name] for name in self.FIRST if name in self.fields]

    def more(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in self.FIRST]

    def more_is_wrong(self) -> bool:
        return any(field.errors for field in self.more())


def larger_model_status() -> Status | None:
    """Return the latest status of the download process, or None if no larger model is downloaded on this machine."""
    if not settings.EMBEDDED_MODEL or settings.BUILTIN_MODEL not in {"auto", "large"}:
        return None
    return read_status(settings.DATA_DIR)


@require_http_methods(["GET", "POST"])
def larger_model(request: PageRequest) -> HttpResponse:
    """Show the download's progress as a fragment (GET), or change it (POST, administrators only).

    ``want`` says whether to pause the download, fetch the model or remove it.
    """
    if request.method == "POST":
        if not may_manage(request.user):
            raise Forbidden(_("Only administrators can do this."))
        try:
            want(settings.DATA_DIR, Wanted(request.POST.get("want", "")))
        except ValueError:
            raise Invalid(_("Choose one of the buttons.")) from None
        return redirect("workspaces:connections")
    context = {
        "larger_model": larger_model_status(),
        "with_buttons": request.GET.get("buttons") == "on",
        "may_manage": may_manage(request.user),
    }
    return render(request, "workspaces/larger_model.html", context)
