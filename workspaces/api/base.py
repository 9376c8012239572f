"""The base of every REST view, and authentication by API key: ``Authorization: Bearer mh_…`` instead of a session.

An OAuth access token (``workspaces.accounts.program_authorizations``) is accepted in place of its key.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import authentication, exceptions, throttling
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, Serializer
from rest_framework.views import APIView

from memoryhub.database.replicas import read, stands_in
from memoryhub.errors import Forbidden, Malformed, NotFound
from workspaces.accounts import program_authorizations
from workspaces.accounts.keys import KeyRefused, count_request, verify_key
from workspaces.accounts.reauthentication import require_fresh_password
from workspaces.api.exceptions import SessionAuthentication
from workspaces.api.idempotency import Note, do_once, identity_of_request
from workspaces.api.paging import ReadyRows, paged
from workspaces.models import ApiKey, KeyScope, TokenKind, User

T = TypeVar("T")


class AlwaysJson(DefaultContentNegotiation):
    """Content negotiation that answers with JSON to any Accept header. A browser's request then reaches the sign-in
    check.
    """

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class StrictJsonParser(JSONParser):
    """JSON parser that also answers 400 for too deep nesting and for numbers that other programs cannot read."""

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        try:
            text = stream.read().decode((parser_context or {}).get("encoding", "utf-8"))
            return json.loads(text, parse_float=_finite, parse_constant=_finite)
        except RecursionError:
            raise ParseError(_("This JSON is nested too deeply.")) from None
        except ValueError as error:
            raise ParseError(_("This is not valid JSON: %s") % error) from None


def _finite(text: str) -> float:
    if math.isfinite(number := float(text)):
        return number
    raise ValueError(f"out of range: {text[:40]}")


class ApiView(APIView):
    """Base view with session authentication and JSON.

    A view checks access while loading, calls one service, and serializes the result.
    """

    content_negotiation_class = AlwaysJson
    parser_classes = [StrictJsonParser]

    @property
    def person(self) -> User:
        """Return the authenticated user. Permissions have checked that there is one."""
        return cast(User, self.request.user)

    def body(self, kind: type[Serializer[Any]]) -> dict[str, Any]:
        """Return the validated request body with defaults.

        Raises ValidationError (422) that names the field, also for a PATCH without fields, which is probably a mistake.
        """
        values = self._checked(kind, self.request.data)
        if self.request.method == "PATCH" and not self.request.data:
            wanted = _("Name at least one field to change: %s.") % ", ".join(kind().fields)
            raise ValidationError({"body": wanted})
        return values

    def query(self, kind: type[Serializer[Any]]) -> dict[str, Any]:
        """Return the validated query parameters."""
        return self._checked(kind, self.request.query_params.dict())

    def page(
        self,
        rows: QuerySet[Any] | ReadyRows,
        serializer: type[BaseSerializer[Any]] | Callable[[Any], dict[str, Any]] | None = None,
        *,
        shape: Callable[[list[Any]], Any] | None = None,
        list_name: str,
        keys: Sequence[str] = ("created_at", "id"),
        descending: bool = False,
        context: Mapping[str, Any] | None = None,
    ) -> Response:
        """Return the page of ``rows`` that the query parameters request, as JSON.

        ``serializer`` converts one row, or ``shape`` all rows at once. ``context`` is passed to the serializer.
        ``keys`` are the fields that order the list, the last one unique. ``list_name`` identifies the list: cursors of
        another are refused.
        """

        def one_by_one(page_rows: list[Any]) -> Any:
            if isinstance(serializer, type):
                return serializer(page_rows, many=True, context=dict(context or {})).data
            assert serializer is not None, "a page needs a serializer or a shape"
            return [serializer(row) for row in page_rows]

        order: dict[str, Any] = {"keys": keys, "descending": descending}
        shaped: dict[str, Any] = {"list_name": list_name, "shape": shape or one_by_one}
        return Response(read(self.person.pk, lambda: paged(self.request, rows, **order, **shaped)))

    def once(self, act: Callable[[], T], *, keep: Callable[[T], Note], reload: Callable[[Note], T]) -> T:
        """Call ``act`` and return its result, unless a request with the same ``Idempotency-Key`` was executed before.

        In that case ``act`` is not called. Instead ``reload`` returns the earlier result, as far as the person may
        still see it, from the note that ``keep`` made of it then. A note contains ids and flags, and is stored.
        """
        identity = identity_of_request(self.request, self.person)
        if identity is None:
            return act()
        done = do_once(identity, act, keep=keep, now=timezone.now())  # unpacked below, for the type checker
        result, note = done
        if result is not None:
            return result
        self.headers["Idempotent-Replayed"] = "true"
        return reload(note)

    def make_once(self, make: Callable[[], T], get: Callable[[User, str], T]) -> T:
        """Create an object with ``make`` and return it, unless a request with the same ``Idempotency-Key`` created it
        before.

        In that case ``get`` loads the object, by the user and its public id.
        """

        def reload(note: Note) -> T:
            [public_id] = note.values()
            return get(self.person, public_id)

        return self.once(make, keep=lambda instance: {"made": cast(Any, instance).public_id}, reload=reload)

    def require_fresh_password(self) -> None:
        """Raise Forbidden with the code ``reauthenticate`` unless the person re-authenticated recently."""
        require_fresh_password(self.request._request)

    def _checked(self, kind: type[Serializer[Any]], data: Any) -> dict[str, Any]:
        serializer = kind(data=data)
        serializer.is_valid(raise_exception=True)
        return cast(dict[str, Any], serializer.validated_data)


class NoSuchRoute(ApiView):
    """Answers unknown URLs with a JSON error: 404, or 401 without a session or a key."""

    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise NotFound(_("This address does not exist in this API."))


# ``ETag`` and ``If-Match``: a change is made only to the version that the client has seen.

TAG = r'(?:W/)?"[\x21\x23-\x7e]*"'
TAGS = re.compile(rf"{TAG}(?:[ \t]*,[ \t]*{TAG})*")
LENGTH = 1000  # characters of the header, some twenty versions

ETAG = OpenApiParameter(
    "ETag",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The version of what is shown; another one after every change. Send it as `If-Match`.",
    response=[200, 201, 202],
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    {"type": "string", "pattern": rf"^(\*|{TAG}([ \t]*,[ \t]*{TAG})*)$", "maxLength": LENGTH},
    OpenApiParameter.HEADER,
    description="The `ETag` you have seen, or several. Changed since: 409 with code `stale`, and the `ETag` as it is "
    "now. `*` or nothing: whatever it is.",
)


def versions_seen(request: Request) -> frozenset[str] | None:
    """Return the versions in ``If-Match`` without quotes, or None if any version matches.

    Weak tags (``W/``) match too, because compressing proxies weaken tags, and ours identify the stored version, not the
    response's bytes. Raises Malformed for another format.
    """
    header = request.headers.get("If-Match")
    if header is None or header.strip() == "*":
        return None
    header = header.strip()
    if len(header) > LENGTH or not TAGS.fullmatch(header):
        raise Malformed(_('If-Match must be * or the value of an ETag header, with its quotes: "mem_…".'))
    return frozenset(tag.removeprefix("W/").strip('"') for tag in re.findall(TAG, header))


class KeyAuthentication(authentication.BaseAuthentication):
    """Authentication by bearer token. If a token is sent, the session is ignored, whether or not the token is valid."""

    def key_text(self, request: Request) -> str | None:
        """Return the bearer token of a request, or None."""
        scheme, _, text = authentication.get_authorization_header(request).strip().partition(b" ")
        return text.strip().decode("latin-1") if scheme.lower() == b"bearer" else None

    def authenticate(self, request: Request) -> tuple[User, ApiKey] | None:
        text = self.key_text(request)
        if text is None:
            return None
        try:
            if text.startswith(program_authorizations.PREFIXES[TokenKind.ACCESS]):
                key = program_authorizations.verify_access(text, path=request.path_info, now=timezone.now())
            else:
                key = verify_key(text, now=timezone.now())
        except KeyRefused as refusal:
            raise exceptions.AuthenticationFailed(str(refusal)) from None
        return key.user, key

    def authenticate_header(self, request: Request) -> str:
        """Return the WWW-Authenticate header, which tells a program where to find the OAuth metadata (RFC 9728)."""
        resources = program_authorizations.RESOURCES
        path = next(each for each in resources if program_authorizations.is_below(request.path_info, each))
        where = request.build_absolute_uri(f"/.well-known/oauth-protected-resource{path}".rstrip("/"))
        wrong = 'error="invalid_token", ' if "authorization" in request.headers else ""
        return f'Bearer realm="MemoryHub", {wrong}resource_metadata="{where}", scope="read write"'


class KeyThrottle(throttling.BaseThrottle):
    """Rate limit of an API key: 429 with Retry-After."""

    retry_after: int | None = None

    def allow_request(self, request: Request, view: Any) -> bool:
        if isinstance(request.auth, ApiKey) and not stands_in():  # a read-only database cannot count requests
            self.retry_after = count_request(request.auth, now=timezone.now())
        return self.retry_after is None

    def wait(self) -> float | None:
        return self.retry_after


class KeyedView(ApiView):
    """Base of views that accept a session or an API key.

    A key acts as its creator, only in the workspace it was made for, and never deletes.
    """

    authentication_classes = [KeyAuthentication, SessionAuthentication]
    throttle_classes = [KeyThrottle]
    only_reads: ClassVar[bool] = False  # POST changes nothing, and may use a replica
    any_scope: ClassVar[bool] = False  # the view itself refuses what read-only keys must not do
    session_only: ClassVar[bool] = False  # refuse API keys of any scope

    @property
    def key(self) -> ApiKey | None:
        """Return the API key of the request, or None for a session."""
        return self.request.auth if isinstance(self.request.auth, ApiKey) else None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.key is not None and hasattr(self, (request.method or "").lower()):  # other methods get 405
            self._hold_to_its_scope(self.key, request.method or "", kwargs.get("workspace_id"))

    def _hold_to_its_scope(self, key: ApiKey, method: str, workspace_id: str | None) -> None:
        if method == "DELETE" or self.session_only:
            raise Forbidden(
                _("An API key cannot delete this. Sign in with a browser to delete it."), code="session_only"
            )
        if workspace_id not in {None, key.workspace.public_id}:
            raise NotFound(_("This workspace does not exist, or this key is not for it."))
        may_write = key.scope == KeyScope.WRITE or self.any_scope
        if not (may_write or method in SAFE_METHODS or self.only_reads):
            raise Forbidden(_("This API key can only read."))
