"""The routes. Without ``MEMORYHUB_SCIM_TOKEN`` none of them is there."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.core.internal import ratelimit
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.csrf import csrf_exempt

from memoryhub.ids import PATTERN
from workspaces.models import User
from workspaces.scim import accounts, reading
from workspaces.scim.errors import ScimError

USER = "urn:ietf:params:scim:schemas:core:2.0:User"
LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
MOST = 200  # users on a page
View = Callable[..., HttpResponse]


def scim(*methods: str) -> Callable[[View], View]:
    """A route for who has the token: wrong ones are counted, and compared in constant time."""

    def decorate(view: View) -> View:
        @csrf_exempt
        @login_not_required
        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not settings.SCIM_TOKEN:
                raise Http404
            try:
                _let_in(request)
                if request.method not in methods:
                    raise ScimError(501, f"This is not supported here; {', '.join(methods)} is.")
                return view(request, *args, **kwargs)
            except ScimError as error:
                return _error(error)

        return checked

    return decorate


def _let_in(request: HttpRequest) -> None:
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer" and constant_time_compare(token.strip(), settings.SCIM_TOKEN):
        return
    if not ratelimit.consume(request, app="allauth.account", action="scim_token", limit_get=True):
        raise ScimError(429, "Too many wrong tokens from your network. Try later.")
    raise ScimError(401, "The bearer token is missing or wrong.")


@scim("GET", "POST")
def users(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        made = accounts.make_account(reading.values_of(_body(request)), now=timezone.now())
        answer = _json(_user(request, made), 201)
        answer["Location"] = _location(request, made)
        return answer
    found = User.objects.order_by("pk")
    if (name := reading.username_asked_for(request.GET.get("filter", ""))) is not None:
        found = found.filter(username__iexact=name.replace("\x00", ""))
    start, count = _number(request, "startIndex", 1), min(_number(request, "count", MOST), MOST)
    start = max(1, start)
    page = list(found[start - 1 : start - 1 + max(0, count)])
    body = {
        "schemas": [LIST],
        "totalResults": found.count(),
        "startIndex": start,
        "itemsPerPage": len(page),
        "Resources": [_user(request, each) for each in page],
    }
    return _json(body)


@scim("GET", "PUT", "PATCH")
def user(request: HttpRequest, user_id: str) -> HttpResponse:
    """Who is to go is deactivated: deleting for good is for themselves, and for administrators."""
    person = User.objects.filter(public_id=user_id).first() if PATTERN.fullmatch(user_id) else None
    if person is None:
        raise ScimError(404, "There is no such user.")
    if request.method != "GET":
        read = reading.changes_of if request.method == "PATCH" else reading.values_of
        person = accounts.change_account(person, read(_body(request)), now=timezone.now())
    return _json(_user(request, person))


@scim("GET")
def provider(request: HttpRequest) -> HttpResponse:
    no = {"supported": False}
    scheme = {"type": "oauthbearertoken", "name": "Bearer token", "description": "MEMORYHUB_SCIM_TOKEN"}
    body = {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"],
        "patch": {"supported": True},
        "bulk": {**no, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": MOST},
        "changePassword": no,
        "sort": no,
        "etag": no,
        "authenticationSchemes": [scheme],
    }
    return _json(body)


@scim("GET")
def resource_types(request: HttpRequest) -> HttpResponse:
    kind = {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ResourceType"],
        "id": "User",
        "name": "User",
        "endpoint": "/Users",
        "schema": USER,
    }
    return _json(
        {"schemas": [LIST], "totalResults": 1, "startIndex": 1, "itemsPerPage": 1, "Resources": [kind]}
    )


def _body(request: HttpRequest) -> dict[str, Any]:
    try:
        found = json.loads(request.body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ScimError(400, "The body must be a JSON object.", "invalidSyntax")
    return found


def _number(request: HttpRequest, name: str, default: int) -> int:
    text = request.GET.get(name, "")
    if not text:
        return default
    if not text.removeprefix("-").isdecimal() or len(text) > 9:
        raise ScimError(400, f"{name} must be a whole number.", "invalidValue")
    return int(text)


def _user(request: HttpRequest, person: User) -> dict[str, Any]:
    return {
        "schemas": [USER],
        "id": person.public_id,
        "userName": person.username,
        "name": {"givenName": person.first_name, "familyName": person.last_name},
        "emails": [{"value": person.email, "primary": True}] if person.email else [],
        "active": person.is_active,
        "meta": {
            "resourceType": "User",
            "created": person.date_joined.isoformat(),
            "location": _location(request, person),
        },
    }


def _location(request: HttpRequest, person: User) -> str:
    return request.build_absolute_uri(reverse("scim:user", args=[person.public_id]))


def _error(error: ScimError) -> HttpResponse:
    body = {"schemas": [ERROR], "status": str(error.status), "detail": error.detail}
    answer = _json(body | ({"scimType": error.kind} if error.kind else {}), error.status)
    if error.status == 401:
        answer["WWW-Authenticate"] = 'Bearer realm="scim"'
    return answer


def _json(body: Any, status: int = 200) -> HttpResponse:
    return JsonResponse(body, status=status, content_type="application/scim+json")
