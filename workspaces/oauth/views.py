"""OAuth endpoints: metadata (RFC 9728, 8414), registration (7591), tokens, revocation (7009). No session counts
here, so every origin may call them. Errors are in OAuth's form: ``{error, error_description}``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from allauth.core import ratelimit
from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from memoryhub.database.failures import refuse_writes
from memoryhub.errors import NotFound
from memoryhub.http.asgi import receiver_of, scope_of
from memoryhub.languages import grouped
from workspaces.models import KeyScope, TokenKind
from workspaces.oauth import clients, grants
from workspaces.oauth.grants import SCOPES

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
    """Our address as this request has it, which is the issuer's name."""
    return request.build_absolute_uri("/").rstrip("/")


def for_programs(method: str, *, limit: str = "", form: bool = False) -> Callable[[View], View]:
    """A view that takes no cookie, no more than so many bytes, and what ``limit`` of the settings lets pass.

    ``form``: its body is one, as the protocol has it.
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
    """Describe the endpoints, and that this server issues tokens for them."""
    path = f"/{resource}"
    if path not in grants.RESOURCES:
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

    from workspaces.oauth.provider import Provider

    provider: Any = Provider(base_of(request))
    handler = RegistrationHandler(provider, ClientRegistrationOptions(enabled=True))
    return _handled(handler, request)


@for_programs("POST", limit="oauth_token", form=True)
def give_token(request: HttpRequest) -> HttpResponse:
    from mcp.server.auth.handlers.token import TokenHandler
    from mcp.server.auth.middleware.client_auth import ClientAuthenticator

    from workspaces.oauth.provider import Provider

    provider: Any = Provider(base_of(request), resource=request.POST.get("resource"))
    return _handled(TokenHandler(provider, ClientAuthenticator(provider)), request)


@for_programs("POST", limit="oauth_token", form=True)
def revoke(request: HttpRequest) -> HttpResponse:
    """By an access or a refresh token, whichever; both end. What is no token of this program's is passed over."""
    client = clients.find(request.POST.get("client_id", ""))
    if client is None:
        return _error(401, "invalid_client", _("This program is not known here."))
    text = request.POST.get("token")
    if not text:
        return _error(400, "invalid_request", _("Say which token."))
    for kind in TokenKind:
        if token := grants.find_token(kind, text, client_id=client.public_id):
            grants.end(token, now=timezone.now())
    return HttpResponse(status=200)


def _handled(handler: RegistrationHandler | TokenHandler, request: HttpRequest) -> HttpResponse:
    """Return the response of a handler of the SDK."""
    from starlette.requests import Request

    asked = Request(scope_of(request, ("content-type", "authorization")), receiver_of(request))
    said = async_to_sync(handler.handle)(asked)
    response = HttpResponse(bytes(said.body), status=said.status_code, content_type="application/json")
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
    except SuspiciousOperation:  # more fields than anybody has
        return False


def _error(status: int, error: str, description: str) -> JsonResponse:
    return JsonResponse({"error": error, "error_description": description}, status=status)
