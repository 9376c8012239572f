"""The page on which a person lets a program in, or not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from allauth.account.decorators import reauthentication_required
from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from django.views.decorators.http import require_http_methods
from pydantic import ValidationError

from memoryhub.errors import Malformed
from memoryhub.http.middleware import STRICT
from workspaces.access import default_workspace
from workspaces.models import KeyScope, OAuthClient, User, Workspace
from workspaces.oauth import clients, grants
from workspaces.oauth.grants import resource_of, scope_of
from workspaces.oauth.views import base_of
from workspaces.pages.page_request import PageRequest
from workspaces.pages.workspace_forms import DomainForm

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # SHA-256, in base64 for addresses
STATE_LENGTH = 2_000


@dataclass(frozen=True)
class Asked:
    agreed: grants.Agreed
    scope: str
    state: str | None

    @property
    def place(self) -> str:
        """Return where the person is sent back to: a site, or the whole address of a program on this computer."""
        parts = urlsplit(self.agreed.redirect_uri)
        return parts.netloc if parts.scheme in {"http", "https"} else self.agreed.redirect_uri

    @property
    def is_here(self) -> bool:
        parts = urlsplit(self.agreed.redirect_uri)
        return parts.scheme == "http" and parts.hostname in clients.LOOPBACK

    @property
    def form_target(self) -> str:
        """For the policy of the page: a form may lead where it is redirected to. IPv6 has no word of its own there."""
        parts = urlsplit(self.agreed.redirect_uri)
        if parts.scheme not in {"http", "https"} or ":" in (parts.hostname or ""):
            return f"{parts.scheme}:"
        return f"{parts.scheme}://{parts.netloc}"


class ConsentForm(DomainForm):
    workspace = forms.ModelChoiceField(
        Workspace.objects.none(), to_field_name="public_id", empty_label=None, label=later("Workspace")
    )
    scope = forms.ChoiceField(label=later("Access"))

    def __init__(self, *args: object, user: User, asked: Asked, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.fields["workspace"].queryset = Workspace.objects.visible_to(user)  # type: ignore[attr-defined]
        offered = [(KeyScope.READ, _("Read what is remembered"))]
        if asked.scope == KeyScope.WRITE:
            offered.append((KeyScope.WRITE, _("Read, save and forget memories")))
        self.fields["scope"].choices = offered  # type: ignore[attr-defined]


class SentBack(HttpResponseRedirect):
    """To the program, whose address may have a scheme of its own."""

    def __init__(self, asked: Asked, base: str, **said: str) -> None:
        from mcp.server.auth.provider import construct_redirect_uri

        uri = asked.agreed.redirect_uri
        self.allowed_schemes = [urlsplit(uri).scheme]
        super().__init__(construct_redirect_uri(uri, **said, state=asked.state, iss=base))


@require_http_methods(["GET", "POST"])
@reauthentication_required
def authorize(request: PageRequest) -> HttpResponse:
    """Ask the person before any redirect: anybody who registers a program could have it send people on."""
    asked = read_asked(request)
    base = base_of(request)
    if request.method == "POST" and request.POST.get("answer") != "yes":
        return SentBack(asked, base, error="access_denied", error_description="The person said no.")
    start = {"workspace": default_workspace(request.user).public_id, "scope": asked.scope}
    sent = request.POST if request.method == "POST" else None
    form = ConsentForm(sent, user=request.user, asked=asked, initial=start)
    code = form.done(
        lambda: grants.agree(asked.agreed, **form.cleaned_data, by=request.user, now=timezone.now())
    )
    if code is not None:
        return SentBack(asked, base, code=code)
    response = render(
        request, "workspaces/consent.html", {"form": form, "asked": asked}, status=422 if form.errors else 200
    )
    response["Content-Security-Policy"] = STRICT.replace(
        "form-action 'self'", f"form-action 'self' {asked.form_target}"
    )
    return response


def read_asked(request: HttpRequest) -> Asked:
    """Return the request of the address. Raises Malformed, shown to the person: the program's address may be wrong."""
    from mcp.server.auth.handlers.authorize import AuthorizationRequest

    if any(len(values) > 1 for _name, values in request.GET.lists()):
        raise Malformed(_("The program's request names something twice."))
    try:
        said = AuthorizationRequest.model_validate(request.GET.dict())
    except ValidationError as error:
        names = ", ".join(sorted({str(each["loc"][0]) for each in error.errors()}))
        raise Malformed(_("The program's request is not right: %s.") % names) from None
    client = clients.find(said.client_id)
    if client is None:
        raise Malformed(
            _("This program is not known here. Remove the connection in the program and add it again.")
        )
    resource = resource_of(base_of(request), said.resource)
    if resource is None:
        raise Malformed(_("The program asks for another server than this one."))
    if not CHALLENGE.fullmatch(said.code_challenge) or len(said.state or "") > STATE_LENGTH:
        raise Malformed(_("The program's request is not right: %s.") % "code_challenge, state")
    agreed = grants.Agreed(
        client,
        _redirect_uri(client, request.GET.get("redirect_uri"), str(said.redirect_uri)),
        said.redirect_uri is not None,
        said.code_challenge,
        resource,
    )
    scope = KeyScope.WRITE if said.scope is None else scope_of(said.scope.split())
    return Asked(agreed, scope, said.state)


def _redirect_uri(client: OAuthClient, raw: str | None, normal: str) -> str:
    if raw is None and len(client.redirect_uris) == 1:
        return str(client.redirect_uris[0])
    for each in (raw, normal):
        if each is not None and clients.is_registered(client, each):
            return each
    raise Malformed(_("The program asks that you be sent to an address that it did not register."))
