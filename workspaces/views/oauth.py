"""OAuth endpoints: metadata (RFC 9728, 8414), registration (7591), tokens, revocation (7009), and the consent page.

The endpoints do not use sessions, so any origin may call them. Their errors have OAuth's form: ``{error,
error_description}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from allauth.core import ratelimit
from asgiref.sync import async_to_sync
from django import forms
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods
from pydantic import ValidationError

from memoryhub.errors import Malformed, NotFound, refuse_writes
from memoryhub.http.asgi_requests import receiver_of
from memoryhub.http.asgi_requests import scope_of as asgi_scope_of
from memoryhub.http.middleware import STRICT
from memoryhub.localization import grouped
from workspaces.access import default_workspace
from workspaces.accounts import program_authorizations
from workspaces.accounts.program_authorizations import SCOPES, resource_of, scope_of
from workspaces.accounts.reauthentication import confirmed
from workspaces.models import KeyScope, OAuthClient, TokenKind, User, Workspace
from workspaces.views import PageRequest
from workspaces.views.forms import DomainForm

if TYPE_CHECKING:
    from mcp.server.auth.handlers.register import RegistrationHandler
    from mcp.server.auth.handlers.token import TokenHandler

MOST_BYTES = 64 * 1024
FORM = "application/x-www-form-urlencoded"
ANY_ORIGIN = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "Content-Type, MCP-Protocol-Version",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
View = Callable[..., HttpResponse]


def base_of(request: HttpRequest) -> str:
    """Return the base URL of this request, which is also the issuer identifier."""
    return request.build_absolute_uri("/").rstrip("/")


def for_programs(method: str, *, limit: str = "", form: bool = False) -> Callable[[View], View]:
    """Return a decorator for endpoints without cookies, which limits the body's size and the request rate.

    ``method``: the only method allowed. ``limit``: the rate limit's name in the settings. ``form``: the body must be
    form-encoded.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def answer(request: HttpRequest, **kwargs: Any) -> HttpResponse:
            response = _refusal(request, method, limit, form=form) or view(request, **kwargs)
            for name, value in ANY_ORIGIN.items():
                response[name] = value
            return response

        return login_not_required(csrf_exempt(answer))

    return decorate


def _refusal(request: HttpRequest, method: str, limit: str, *, form: bool) -> HttpResponse | None:
    response: HttpResponse | None = None
    if request.method == "OPTIONS":
        response = HttpResponse(status=204, headers={"Access-Control-Allow-Methods": f"{method}, OPTIONS"})
    elif request.method != method:
        response = _error(405, "invalid_request", _("Only %s is allowed here.") % method)
        response["Allow"] = f"{method}, OPTIONS"
    elif not _is_small(request):
        response = _error(
            413, "invalid_request", _("The request has more than %s bytes.") % grouped(MOST_BYTES)
        )
    elif form and not _is_form(request):
        response = _error(400, "invalid_request", _("The body must be a form (%s) in UTF-8.") % FORM)
    elif limit and not ratelimit.consume(request, action=limit):
        refuse_writes(ask=True)  # a read-only database counts no requests: 503
        response = _error(
            429, "temporarily_unavailable", _("Too many requests from your network. Try later.")
        )
    return response


@for_programs("GET")
def resource_metadata(request: HttpRequest, resource: str = "") -> HttpResponse:
    """Return the metadata of a protected resource, which names this server as its authorization server."""
    path = f"/{resource}"
    if path not in program_authorizations.RESOURCES:
        return _error(404, "invalid_request", NotFound().message)
    base = base_of(request)
    return JsonResponse(
        {
            "resource": base + path.rstrip("/"),
            "resource_name": "MemoryHub",
            "authorization_servers": [base],
            "scopes_supported": SCOPES[KeyScope.WRITE].split(),
            "bearer_methods_supported": ["header"],
        }
    )


@for_programs("GET")
def server_metadata(request: HttpRequest) -> HttpResponse:
    base = base_of(request)
    return JsonResponse(
        {
            "issuer": base,
            "authorization_endpoint": base + reverse("oauth:authorize"),
            "token_endpoint": base + reverse("oauth:token"),
            "registration_endpoint": base + reverse("oauth:register"),
            "revocation_endpoint": base + reverse("oauth:revoke"),
            "scopes_supported": SCOPES[KeyScope.WRITE].split(),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
    )


@for_programs("POST", limit="register_program")
def register(request: HttpRequest) -> HttpResponse:
    from mcp.server.auth.handlers.register import RegistrationHandler
    from mcp.server.auth.settings import ClientRegistrationOptions

    from workspaces.accounts.mcp_sdk_provider import Provider

    provider: Any = Provider(base_of(request), now=timezone.now())
    handler = RegistrationHandler(provider, ClientRegistrationOptions(enabled=True))
    return _handled(handler, request)


@for_programs("POST", limit="oauth_token", form=True)
def give_token(request: HttpRequest) -> HttpResponse:
    from mcp.server.auth.handlers.token import TokenHandler
    from mcp.server.auth.middleware.client_auth import ClientAuthenticator

    from workspaces.accounts.mcp_sdk_provider import Provider

    provider: Any = Provider(base_of(request), now=timezone.now(), resource=request.POST.get("resource"))
    return _handled(TokenHandler(provider, ClientAuthenticator(provider)), request)


@for_programs("POST", limit="oauth_token", form=True)
def revoke(request: HttpRequest) -> HttpResponse:
    """Revoke an authorization by its access or refresh token; both end. Tokens of other programs are ignored."""
    client = program_authorizations.find(request.POST.get("client_id", ""))
    if client is None:
        return _error(401, "invalid_client", _("This program is not known here."))
    text = request.POST.get("token")
    if not text:
        return _error(400, "invalid_request", _("Say which token."))
    for kind in TokenKind:
        if token := program_authorizations.find_token(kind, text, client_id=client.public_id):
            program_authorizations.end(token.key_id, now=timezone.now())
    return HttpResponse(status=200)


def _handled(handler: RegistrationHandler | TokenHandler, request: HttpRequest) -> HttpResponse:
    """Return the response of an SDK handler as a Django response."""
    from starlette.requests import Request

    asgi_request = Request(asgi_scope_of(request, ("content-type", "authorization")), receiver_of(request))
    asgi_response = async_to_sync(handler.handle)(asgi_request)
    response = HttpResponse(
        bytes(asgi_response.body), status=asgi_response.status_code, content_type="application/json"
    )
    response["Cache-Control"] = "no-store"
    return response


def _is_small(request: HttpRequest) -> bool:
    try:
        return len(request.body) <= MOST_BYTES
    except RequestDataTooBig:
        return False


def _is_form(request: HttpRequest) -> bool:
    try:
        charset = (request.content_params or {}).get("charset", "utf-8").lower()
        is_named = request.content_type == FORM and charset in {"utf-8", "utf8"}
        return not request.body or (is_named and request.POST is not None)
    except SuspiciousOperation:  # too many form fields
        return False


def _error(status: int, error: str, description: str) -> JsonResponse:
    return JsonResponse({"error": error, "error_description": description}, status=status)


CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # SHA-256 in URL-safe base64
STATE_LENGTH = 2_000


@dataclass(frozen=True)
class Asked:
    agreed: program_authorizations.CheckedRequest
    scope: str
    state: str | None

    @property
    def place(self) -> str:
        """Return where the browser is sent: the host of a web address, or the complete URI if its scheme is the
        program's own.
        """
        parts = urlsplit(self.agreed.redirect_uri)
        return parts.netloc if parts.scheme in {"http", "https"} else self.agreed.redirect_uri

    @property
    def is_here(self) -> bool:
        parts = urlsplit(self.agreed.redirect_uri)
        return parts.scheme == "http" and parts.hostname in program_authorizations.LOOPBACK

    @property
    def form_target(self) -> str:
        """Return the redirect target as a source of the page's Content-Security-Policy, ``form-action``.

        A policy cannot name IPv6 hosts, so for these it is the scheme.
        """
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
    """Redirect to the client application after authorization. Its redirect URI may use a custom scheme."""

    def __init__(self, asked: Asked, base: str, **said: str) -> None:
        from mcp.server.auth.provider import construct_redirect_uri

        uri = asked.agreed.redirect_uri
        self.allowed_schemes = [urlsplit(uri).scheme]
        super().__init__(construct_redirect_uri(uri, **said, state=asked.state, iss=base))


@require_http_methods(["GET", "POST"])
@confirmed()
def authorize(request: PageRequest) -> HttpResponse:
    """Ask the person for consent, and redirect to the program only after their answer.

    A registered program could otherwise redirect people anywhere.
    """
    authorization = read_asked(request)
    base = base_of(request)
    if request.method == "POST" and request.POST.get("answer") != "yes":
        return SentBack(authorization, base, error="access_denied", error_description="The person said no.")
    start = {"workspace": default_workspace(request.user).public_id, "scope": authorization.scope}
    sent = request.POST if request.method == "POST" else None
    form = ConsentForm(sent, user=request.user, asked=authorization, initial=start)
    code = form.done(
        lambda: program_authorizations.store_consent(
            authorization.agreed, **form.cleaned_data, by=request.user, now=timezone.now()
        )
    )
    if code is not None:
        return SentBack(authorization, base, code=code)
    response = render(
        request,
        "workspaces/consent.html",
        {"form": form, "asked": authorization},
        status=422 if form.errors else 200,
    )
    response["Content-Security-Policy"] = STRICT.replace(
        "form-action 'self'", f"form-action 'self' {authorization.form_target}"
    )
    return response


def read_asked(request: HttpRequest) -> Asked:
    """Return the authorization request in the query string.

    Raises Malformed, which is shown to the person. There is no redirect then, because its URI may be wrong.
    """
    from mcp.server.auth.handlers.authorize import AuthorizationRequest

    if any(len(values) > 1 for _name, values in request.GET.lists()):
        raise Malformed(_("The program's request names something twice."))
    try:
        query = AuthorizationRequest.model_validate(request.GET.dict())
    except ValidationError as error:
        names = ", ".join(sorted({str(each["loc"][0]) for each in error.errors()}))
        raise Malformed(_("The program's request is not right: %s.") % names) from None
    client = program_authorizations.find(query.client_id)
    if client is None:
        raise Malformed(
            _("This program is not known here. Remove the connection in the program and add it again.")
        )
    resource = resource_of(base_of(request), query.resource)
    if resource is None:
        raise Malformed(_("The program asks for another server than this one."))
    if not CHALLENGE.fullmatch(query.code_challenge) or len(query.state or "") > STATE_LENGTH:
        raise Malformed(_("The program's request is not right: %s.") % "code_challenge, state")
    agreed = program_authorizations.CheckedRequest(
        client,
        _redirect_uri(client, request.GET.get("redirect_uri"), str(query.redirect_uri)),
        query.redirect_uri is not None,
        query.code_challenge,
        resource,
    )
    scope = KeyScope.WRITE if query.scope is None else scope_of(query.scope.split())
    return Asked(agreed, scope, query.state)


def _redirect_uri(client: OAuthClient, raw: str | None, normal: str) -> str:
    if raw is None and len(client.redirect_uris) == 1:
        return str(client.redirect_uris[0])
    for each in (raw, normal):
        if each is not None and program_authorizations.is_registered(client, each):
            return each
    raise Malformed(_("The program asks that you be sent to an address that it did not register."))
