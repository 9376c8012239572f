"""The OpenAPI schema. It is made from the decorator and docstring of each view method.

The docstring's first line is the summary, the rest the description. Errors follow from the kind of route
(``error_codes``), and examples are made from the fields. The settings name ``Schema``, so this module must not import
``rest_framework.views``.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from drf_spectacular.extensions import (
    OpenApiAuthenticationExtension,
    OpenApiSerializerExtension,
    OpenApiSerializerFieldExtension,
)
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from workspaces.api.paging import PageQuery

F = TypeVar("F", bound=Callable[..., Any])
Kind = type[serializers.BaseSerializer[Any]]


class ErrorDetail(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="Stable, for programs.")
    message = serializers.CharField(help_text="A sentence, for people.")
    fields = serializers.DictField(  # type: ignore[assignment]  # the name is the API's
        child=serializers.CharField(), required=False, help_text="For 422: what is wrong with each field."
    )


class ErrorBody(serializers.Serializer[Any]):
    error = ErrorDetail()


ERRORS: dict[int, tuple[str, dict[str, Any]]] = {
    400: (
        "The request could not be read: malformed JSON, or a cursor of another list.",
        {"code": "malformed", "message": "This is not valid JSON: Expecting value: line 1 column 1 (char 0)"},
    ),
    401: (
        "Not signed in, or the API key is unknown, revoked or expired (code `bad_key`). A browser "
        "(`Accept: text/html` first) is redirected to the login page instead.",
        {"code": "not_signed_in", "message": "Authentication credentials were not provided."},
    ),
    403: (
        "Your role here does not allow this, or the CSRF token is missing (code `csrf`).",
        {"code": "forbidden", "message": "This needs the role editor; yours here is viewer."},
    ),
    404: (
        "This thing does not exist, or you do not have access to it.",
        {"code": "not_found", "message": "This does not exist, or you do not have access to it."},
    ),
    409: (
        "It cannot be done in the present state.",
        {"code": "conflict", "message": "Someone else has changed this. Load it again, then decide."},
    ),
    413: (
        "The body is larger than the server takes.",
        {"code": "too_large", "message": "The request has more than 1,048,576 bytes."},
    ),
    415: (
        "The body is not JSON.",
        {"code": "media_type", "message": 'Unsupported media type "text/plain" in request.'},
    ),
    422: (
        "A field is not valid; `fields` says which and what is allowed.",
        {
            "code": "invalid",
            "message": "content: Must be a string.",
            "fields": {"content": "Must be a string."},
        },
    ),
    429: (
        "This API key has asked too often; `Retry-After` says in how many seconds it may again.",
        {"code": "too_many_requests", "message": "Request was throttled. Expected available in 12 seconds."},
    ),
    503: (
        "A part of the system is not answering; `Retry-After` says when to come again.",
        {"code": "unavailable", "message": "Part of the system is not answering. Try again in a moment."},
    ),
}
FRESH = (
    "Needs a browser session in which you entered your password in the last fifteen minutes "
    "(`/accounts/reauthenticate/`); otherwise 403 with code `reauthenticate`."
)
NO_KEYS = "No API key may do this: 403 with code `session_only`."
WITH_BODY = {400, 413, 415, 422}
WITH_HEADER = {"If-Match": {400, 409}, "Idempotency-Key": {400, 409, 422}}
WITH_PAGES = {400, 422}


@dataclass(frozen=True)
class Route:
    """Description of one method of a view, made by ``documented_under``."""

    tag: str
    operation: str
    answers: Mapping[Any, Any]
    body: Any
    query: Kind | None
    headers: Sequence[OpenApiParameter]
    errors: Sequence[int]
    fresh: bool

    def queries(self, view: Any) -> list[Kind]:
        """Return the serializers of the query parameters: the view's own, those of pagination for a list, and this
        method's.
        """
        paged = any(getattr(answer, "is_page", False) for answer in self.answers.values())
        query_kinds = [getattr(view, "always_takes", None), PageQuery if paged else None, self.query]
        return [each for each in query_kinds if each is not None]

    def error_codes(self, method: str, path: str, view: Any) -> set[int]:
        """Return the statuses of errors: 401 always, others depending on the method, the path and the parameters."""
        queries, codes = self.queries(view), {401, *self.errors}
        if no_keys(method, view) or (method != "GET" and not getattr(view, "only_reads", False)):
            codes.add(403)
        kinds = [*queries, *([] if self.body is None or isinstance(self.body, dict) else [self.body])]
        if "{" in path or any("workspace_id" in kind().fields for kind in kinds):
            codes.add(404)
        if view.throttle_classes:
            codes.add(429)
        if self.body is not None:
            codes |= WITH_BODY
        if queries:
            codes |= WITH_PAGES if any(issubclass(each, PageQuery) for each in queries) else {422}
        return codes.union(*(WITH_HEADER.get(header.name, set()) for header in self.headers))

    def description(self, text: str, method: str, view: Any) -> str:
        more = [FRESH] * self.fresh + [NO_KEYS] * no_keys(method, view)
        return " ".join(filter(None, [text, *more]))


def no_keys(method: str, view: Any) -> bool:
    """Return whether a ``KeyedView`` refuses API keys for this method: for any if ``session_only``, else for DELETE.

    False for other views, which accept no API keys at all.
    """
    return hasattr(view, "session_only") and (view.session_only or method == "DELETE")


def documented_under(tag: str) -> Callable[..., Callable[[F], F]]:
    """Return a decorator that describes view methods for the OpenAPI schema, under the tag ``tag``.

    The decorator is used as ``@documented("chats_list", page_of(ChatJson))``. Its arguments: ``operation`` is the
    operation's id. ``answers`` is a serializer for status 200, a serializer for each status, or nothing for 204.
    ``query``: query parameters besides those of every list. ``errors``: statuses besides those of ``error_codes``.
    ``fresh``: the method requires re-authentication.
    """

    def documented(
        operation: str,
        answers: Mapping[Any, Any] | Kind | None = None,
        *,
        body: Any = None,
        query: Kind | None = None,
        headers: Sequence[OpenApiParameter] = (),
        errors: Sequence[int] = (),
        fresh: bool = False,
    ) -> Callable[[F], F]:
        if not isinstance(answers, Mapping):
            answers = (
                {200: answers} if answers else {204: OpenApiResponse(description="Done, nothing to return.")}
            )
        route = Route(tag, operation, answers, body, query, headers, errors, fresh)

        def decorate(method: F) -> F:
            method.route = route  # type: ignore[attr-defined]  # for ``schema.Schema``
            return method

        return decorate

    return documented


def summary_and_description(method: Callable[..., Any]) -> tuple[str, str]:
    """Return an operation's summary and description: the first paragraph and the rest of the method's docstring.

    Each is joined to one line, and the summary loses its full stop.
    """
    summary, _, more = (inspect.getdoc(method) or "").partition("\n\n")
    summary = " ".join(summary.split()).removesuffix(".")
    return summary, " ".join(more.split())


def error_response(code: int) -> OpenApiResponse:
    description, example = ERRORS[code]
    return OpenApiResponse(
        response=ErrorBody,
        description=description,
        examples=[OpenApiExample(f"Error {code}", value={"error": example}, status_codes=[str(code)])],
    )


@cache
def page_of(item: type[serializers.Serializer[Any]], name: str = "") -> type[serializers.Serializer[Any]]:
    """Return the serializer of a list's page, for the schema."""
    return type(
        f"{name or item.__name__.removesuffix('Json')}Page",
        (serializers.Serializer,),
        {
            "is_page": True,
            "example": {"next_cursor": None},
            "items": item(many=True),
            "next_cursor": serializers.CharField(
                allow_null=True, help_text="Pass it as `cursor`; null on the last page."
            ),
            "has_more": serializers.BooleanField(),
        },
    )


class SessionScheme(OpenApiAuthenticationExtension):
    """OpenAPI security scheme of the session cookie. Writes also need the CSRF token in the header ``X-CSRFToken``."""

    target_class = "workspaces.api.exceptions.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "Sign in at /accounts/login/. POST, PATCH and DELETE also need the header "
            "`X-CSRFToken` with the value of the cookie `csrftoken`.",
        }


class KeyScheme(OpenApiAuthenticationExtension):
    """OpenAPI security scheme of API keys: ``Authorization: Bearer mh_…``"""

    target_class = "workspaces.api.base.KeyAuthentication"
    name = "api_key"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "mh_…",
            "description": "A key from your account page, for one workspace. It needs no CSRF token, and where a "
            "key is sent the session does not count.",
        }


class StrictBody(OpenApiSerializerExtension):
    """OpenAPI schema of request bodies: unknown fields are refused, and required fields are required in a PATCH too."""

    target_class = "workspaces.api.fields.Body"
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Any) -> dict[str, Any]:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        required = [name for name, field in self.target.fields.items() if field.required]
        schema["additionalProperties"] = False
        if required:
            schema["required"] = required
        if auto_schema.method == "PATCH":
            schema["minProperties"] = 1  # an empty change is refused
        if self.target.at_least_one_of:
            # Each alternative repeats the schema, because generators of clients ignore a bare list of names.
            schema["anyOf"] = [
                {**schema, "required": [*required, name]} for name in self.target.at_least_one_of
            ]
        return schema


class StorableText(OpenApiSerializerFieldExtension):
    """OpenAPI schema of text fields, with a pattern that refuses NUL and, where text is required, blank text.

    A pattern's ``\\s`` lacks five characters that Python counts as blank. Where blank text is allowed, drf-spectacular
    adds that as an alternative to the pattern.
    """

    target_class = "workspaces.api.fields.Text"

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Any) -> dict[str, Any]:
        schema = {"type": "string"}
        if direction == "request":
            blank_too, not_blank = r"^[^\x00]+$", r"^[^\x00]*[^\s\x1c-\x1f\x85\x00][^\x00]*$"
            schema["pattern"] = blank_too if self.target.allow_blank else not_blank
        return schema


# Examples for the OpenAPI schema, made from the fields, so that none of them can go out of date.
#
# A serializer's ``example`` has values that a field's type does not determine, such as a name. The example of a request
# body shows its required fields and those in ``example``.

MOMENT = "2026-03-07T10:30:00.000000Z"
ID = "7hQx2TzB8mYw1RsX9vLcHn4E"
# The beginning of an id, where it is not the word before ``_id`` itself.
PREFIXES = {
    "workspace": "ws",
    "template": "rtp",
    "prompt": "prm",
    "memory": "mem",
    "message": "msg",
    "connection": "conn",
}
BY_TYPE = {"string": "…", "integer": 1, "number": 0.5, "boolean": False, "object": {}}


def add_examples(result: dict[str, Any], generator: Any, **options: Any) -> dict[str, Any]:
    """Add an example to each request and response body without one. A postprocessing hook of drf-spectacular."""
    kinds = {
        component.name: component.object
        for component in generator.registry._components.values()
        if component.type == component.SCHEMA
    }
    examples = _Examples(result["components"]["schemas"], kinds)
    for methods in result["paths"].values():
        for operation in methods.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                content.setdefault(
                    "examples", {"Example": {"value": examples.of(content["schema"], sent=True)}}
                )
            for answer in operation["responses"].values():
                for content in answer.get("content", {}).values():
                    content.setdefault("examples", {"Example": {"value": examples.of(content["schema"])}})
    return result


class _Examples:
    def __init__(self, schemas: dict[str, Any], kinds: dict[str, Any]) -> None:
        self._schemas, self._kinds = schemas, kinds

    def of(self, schema: dict[str, Any], name: str = "", *, sent: bool = False) -> Any:
        """Return an example value for an OpenAPI schema. ``name``: the field's name. ``sent``: for a request body, not
        a response.
        """
        if "$ref" in schema:
            return self._of_component(schema["$ref"].split("/")[-1], name, sent=sent)
        for several in ("allOf", "oneOf", "anyOf"):
            if several in schema and "properties" not in schema:
                nullable = any(part.get("type") == "null" for part in schema[several])
                return None if nullable else self.of(schema[several][0], name, sent=sent)
        if "default" in schema or "enum" in schema:
            return schema.get("default", schema.get("enum", [None])[0])
        if schema.get("format") == "date-time" and schema["type"] == "string":
            return MOMENT
        if schema.get("format") == "binary":
            return "(its bytes)"
        return self._of_type(schema, name)

    def _of_type(self, schema: dict[str, Any], name: str) -> Any:
        kind = schema.get("type", "object")
        if kind == "array":
            return [self.of(schema["items"], name.removesuffix("s"))] * schema.get("minItems", 1)
        if "properties" in schema:
            return {field: self.of(part, field) for field, part in schema["properties"].items()}
        if isinstance(kind, list):
            return None
        if kind == "string" and schema.get("pattern", "").startswith("^("):
            return schema["pattern"][2:].split("|")[0]
        if kind == "string" and name.lower().endswith("id"):
            what = name[:-2].rstrip("_")
            return f"{PREFIXES.get(what, what)}_{ID}"
        return schema.get("minimum", BY_TYPE[kind])

    def _of_component(self, name: str, field: str, *, sent: bool) -> Any:
        schema, known = self._schemas[name], getattr(self._kinds.get(name), "example", {})
        if sent:
            wanted = {*schema.get("required", ()), *known} or {*list(schema["properties"])[:1]}
            properties = {each: part for each, part in schema["properties"].items() if each in wanted}
            schema = {**schema, "properties": properties}
        value = self.of({key: part for key, part in schema.items() if key != "anyOf"}, field)
        return (
            {name: _either(example, known.get(name, example)) for name, example in value.items()}
            if known
            else value
        )


def _either(example: Any, known: Any) -> Any:
    return {**example, **known} if isinstance(example, dict) and isinstance(known, dict) else known


class Schema(AutoSchema):
    """drf-spectacular's schema of a view, from ``documented_under`` and docstrings. A DELETE may have a body."""

    def get_operation(self, path: str, path_regex: str, path_prefix: str, method: str, registry: Any) -> Any:
        self._method = getattr(self.view, method.lower())
        if not hasattr(self._method, "route"):
            return None  # the pages that show the schema
        self._route: Route = self._method.route
        return super().get_operation(path, path_regex, path_prefix, method, registry)

    def get_operation_id(self) -> str:
        return self._route.operation

    def get_tags(self) -> list[str]:
        return [self._route.tag]

    def get_summary(self) -> str:
        return summary_and_description(self._method)[0]

    def get_description(self) -> str:  # type: ignore[override]  # spectacular's own hint is of another kind
        summary, more = summary_and_description(self._method)
        return self._route.description(more, self.method, self.view) or f"{summary}."

    def get_override_parameters(self) -> list[Any]:
        return [*self._route.queries(self.view), *self._route.headers]

    def get_request_serializer(self) -> Any:
        return self._route.body

    def get_response_serializers(self) -> Any:
        codes = self._route.error_codes(self.method, self.path, self.view)
        return {**self._route.answers, **{code: error_response(code) for code in sorted(codes)}}

    def get_auth(self) -> list[Any]:
        return [{SessionScheme.name: []}] if no_keys(self.method, self.view) else super().get_auth()

    def _get_request_body(self, direction: Any = "request") -> Any:
        if self.method == "PATCH":
            return {**super()._get_request_body(direction), "required": True}
        if self.method != "DELETE":
            return super()._get_request_body(direction)
        self.method = "PUT"
        try:
            return super()._get_request_body(direction)
        finally:
            self.method = "DELETE"
