"""SCIM endpoints, with which a company's directory manages accounts and groups. 404 without MEMORYHUB_SCIM_TOKEN."""

import json
from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any

from allauth.core import ratelimit
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.csrf import csrf_exempt

from memoryhub.ids import PATTERN
from workspaces.accounts import provisioning
from workspaces.accounts.provisioning import ScimError
from workspaces.models import DirectoryGroup, User

GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
MOST = 200  # results per page
View = Callable[..., HttpResponse]


def scim(*methods: str) -> Callable[[View], View]:
    """Return a decorator for endpoints that require the SCIM token. Wrong tokens count against a rate limit."""

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
    counted = copy(request)
    counted.method = "POST"  # allauth's limits do not count GET
    if not ratelimit.consume(counted, action="scim_token"):
        raise ScimError(429, "Too many wrong tokens from your network. Try later.")
    raise ScimError(401, "The bearer token is missing or wrong.")


@scim("GET", "POST")
def users(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        account = provisioning.make_account(provisioning.values_of(_body(request)), now=timezone.now())
        answer = _json(_user(request, account), 201)
        answer["Location"] = _location(request, account)
        return answer
    accounts = User.objects.order_by("pk")
    if (name := provisioning.filter_value(request.GET.get("filter", ""), "userName")) is not None:
        accounts = accounts.filter(username__iexact=name.replace("\x00", ""))
    return _page(request, accounts, _user)


@scim("GET", "PUT", "PATCH")
def user(request: HttpRequest, user_id: str) -> HttpResponse:
    """Return or change a user. DELETE is not supported: accounts are deleted by their person or an administrator."""
    person = User.objects.filter(public_id=user_id).first() if PATTERN.fullmatch(user_id) else None
    if person is None:
        raise ScimError(404, "There is no such user.")
    if request.method != "GET":
        read = provisioning.changes_of if request.method == "PATCH" else provisioning.values_of
        person = provisioning.change_account(person, read(_body(request)), now=timezone.now())
    return _json(_user(request, person))


@scim("GET", "POST")
def many_groups(request: HttpRequest) -> HttpResponse:
    _refuse_beside_a_claim()
    if request.method == "POST":
        group = provisioning.make_group(provisioning.group_of(_body(request)))
        answer = _json(_group(request, group), 201)
        answer["Location"] = _location(request, group)
        return answer
    groups = DirectoryGroup.objects.order_by("pk")
    if (name := provisioning.filter_value(request.GET.get("filter", ""), "displayName")) is not None:
        groups = groups.filter(name__iexact=name.replace("\x00", ""))
    return _page(request, groups, _group)


@scim("GET", "PUT", "PATCH", "DELETE")
def one_group(request: HttpRequest, group_id: str) -> HttpResponse:
    _refuse_beside_a_claim()
    if request.method == "DELETE":
        provisioning.change_group(group_id, lambda group: None)
        return HttpResponse(status=204)
    if request.method != "GET":
        body = _body(request)
        if request.method == "PATCH":
            provisioning.change_group(group_id, lambda group: provisioning.group_after(group, body))
            return HttpResponse(status=204)  # without the group, which may be large
        provisioning.change_group(group_id, lambda group: provisioning.group_of(body))
    return _json(_group(request, provisioning.group_with(group_id)))


def _refuse_beside_a_claim() -> None:
    if settings.SSO_GROUPS_CLAIM:
        raise ScimError(501, "Groups come with single sign-on here (MEMORYHUB_SSO_GROUPS_CLAIM).")


@scim("GET", "POST", "PUT", "PATCH", "DELETE")
def nothing(request: HttpRequest, anything: str) -> HttpResponse:
    raise ScimError(
        404, "There is nothing at this address: Users, Groups, ServiceProviderConfig and ResourceTypes are."
    )


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
    offered = {"User": USER} if settings.SSO_GROUPS_CLAIM else {"User": USER, "Group": GROUP}
    kinds = [
        {
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ResourceType"],
            "id": kind,
            "name": kind,
            "endpoint": f"/{kind}s",
            "schema": schema,
        }
        for kind, schema in offered.items()
    ]
    return _list(kinds, len(kinds), 1)


def _page(
    request: HttpRequest, rows: QuerySet[Any], shape: Callable[[HttpRequest, Any], dict[str, Any]]
) -> HttpResponse:
    start, count = _number(request, "startIndex", 1), min(_number(request, "count", MOST), MOST)
    start = max(1, start)
    page = [shape(request, each) for each in rows[start - 1 : start - 1 + max(0, count)]]
    return _list(page, rows.count(), start)


def _list(page: list[dict[str, Any]], total: int, start: int) -> HttpResponse:
    body = {"schemas": [LIST], "totalResults": total, "startIndex": start, "itemsPerPage": len(page)}
    return _json(body | {"Resources": page})


def _body(request: HttpRequest) -> dict[str, Any]:
    try:
        body = json.loads(request.body)
    except RequestDataTooBig:
        raise ScimError(413, "The body is too large. Send fewer members at once.") from None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise ScimError(400, "The body must be a JSON object.", "invalidSyntax")
    return body


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


def _group(request: HttpRequest, group: DirectoryGroup) -> dict[str, Any]:
    resource: dict[str, Any] = {
        "schemas": [GROUP],
        "id": group.public_id,
        "displayName": group.name,
        "meta": {"resourceType": "Group", "location": _location(request, group)},
    }
    if group.external_id:
        resource["externalId"] = group.external_id
    if "members" not in request.GET.get("excludedAttributes", "").replace(" ", "").split(","):
        members = group.members.order_by("pk").values_list("public_id", "username")
        resource["members"] = [{"value": ref, "display": name} for ref, name in members]
    return resource


def _location(request: HttpRequest, what: User | DirectoryGroup) -> str:
    route = "scim:user" if isinstance(what, User) else "scim:group"
    return request.build_absolute_uri(reverse(route, args=[what.public_id]))


def _error(error: ScimError) -> HttpResponse:
    body = {"schemas": [ERROR], "status": str(error.status), "detail": error.detail}
    answer = _json(body | ({"scimType": error.kind} if error.kind else {}), error.status)
    if error.status == 401:
        answer["WWW-Authenticate"] = 'Bearer realm="scim"'
    return answer


def _json(body: Any, status: int = 200) -> HttpResponse:
    return JsonResponse(body, status=status, content_type="application/scim+json")
