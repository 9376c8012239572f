"""How routes describe themselves in the OpenAPI schema: success, errors, examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from drf_spectacular.extensions import (
    OpenApiAuthenticationExtension,
    OpenApiSerializerExtension,
    OpenApiSerializerFieldExtension,
)
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
)
from rest_framework import serializers

from workspaces.rest.paging import PageQuery

F = TypeVar("F", bound=Callable[..., Any])


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
        {"code": "malformed", "message": "JSON parse error - Expecting value: line 1 column 1 (char 0)"},
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
        {
            "code": "too_many_requests",
            "message": "Request was throttled. Expected available in 12 seconds.",
        },
    ),
    503: (
        "A part of the system is not answering; `Retry-After` says when to come again.",
        {"code": "unavailable", "message": "Part of the system is not answering. Try again in a moment."},
    ),
}
READ_ERRORS = (401,)
WRITE_ERRORS = (401, 403)
BODY_ERRORS = (400, 413, 415, 422)
HEADER_ERRORS = {"If-Match": {400, 409}, "Idempotency-Key": {400, 409, 422}}


def documented(
    summary: str,
    *,
    tag: str,
    operation: str,
    answers: Mapping[Any, Any],
    body: Any = None,
    query: type[serializers.Serializer[Any]] | None = None,
    headers: Sequence[OpenApiParameter] = (),
    errors: Sequence[int] = (),
    description: str = "",
    examples: Sequence[OpenApiExample] = (),
    writes: bool = False,
    session_only: bool = False,
) -> Callable[[F], F]:
    """Describe one method of a view. ``session_only``: of one that takes keys elsewhere, but not here.

    ``answers`` maps success codes to a serializer, None or an OpenApiResponse. ``errors`` adds to those that
    follow by themselves: 401 always; 403 for writes; 400, 413, 415, 422 with a body; 400 and 422 for pages; what the
    request headers bring.
    """
    codes = {*READ_ERRORS, *errors}
    if writes:
        codes |= set(WRITE_ERRORS)
    if body is not None:
        codes |= set(BODY_ERRORS)
    if query is not None:
        codes.add(422)
    if query is not None and issubclass(query, PageQuery):
        codes.add(400)
    for header in headers:
        codes |= HEADER_ERRORS.get(header.name, set())
    responses: dict[Any, Any] = {
        code: OpenApiResponse(description="Done, nothing to return.") if kind is None else kind
        for code, kind in answers.items()
    }
    responses |= {code: error_response(code) for code in sorted(codes)}
    return extend_schema(
        summary=summary,
        description=description or summary + ".",
        operation_id=operation,
        tags=[tag],
        request=body,
        parameters=[*([query] if query is not None else []), *headers],
        responses=responses,
        examples=list(examples),
        auth=[{SessionScheme.name: []}] if session_only else None,  # type: ignore[list-item]  # its hint is wrong
    )


def error_response(code: int) -> OpenApiResponse:
    description, example = ERRORS[code]
    return OpenApiResponse(
        response=ErrorBody,
        description=description,
        examples=[OpenApiExample(f"Error {code}", value={"error": example}, status_codes=[str(code)])],
    )


def request_example(name: str, value: Mapping[str, Any]) -> OpenApiExample:
    return OpenApiExample(name, value=dict(value), request_only=True)


def answer_example(name: str, value: Any, *, code: int = 200) -> OpenApiExample:
    return OpenApiExample(name, value=value, response_only=True, status_codes=[str(code)])


def page_example(*items: Mapping[str, Any]) -> OpenApiExample:
    """The last page of a list."""
    return answer_example("A page", {"items": list(items), "next_cursor": None, "has_more": False})


def page_of(item: type[serializers.Serializer[Any]], name: str) -> type[serializers.Serializer[Any]]:
    """The envelope of one page, as a serializer for the schema."""
    return type(
        f"{name}Page",
        (serializers.Serializer,),
        {
            "items": item(many=True),
            "next_cursor": serializers.CharField(
                allow_null=True, help_text="Pass it as `cursor`; null on the last page."
            ),
            "has_more": serializers.BooleanField(),
        },
    )


class SessionScheme(OpenApiAuthenticationExtension):
    """The session cookie; writes also need the CSRF token in the header ``X-CSRFToken``."""

    target_class = "workspaces.rest.SessionAuthentication"
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
    """``Authorization: Bearer mh_…``"""

    target_class = "workspaces.rest.keys.KeyAuthentication"
    name = "api_key"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "mh_…",
            "description": "A key from your profile page, for one workspace. It needs no CSRF token, and where a "
            "key is sent the session does not count.",
        }


class StrictBody(OpenApiSerializerExtension):
    """Request bodies refuse fields they do not know, and what they require they require in a PATCH too."""

    target_class = "workspaces.rest.fields.Body"
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Any) -> dict[str, Any]:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        required = [name for name, field in self.target.fields.items() if field.required]
        schema["additionalProperties"] = False
        if required:
            schema["required"] = required
        if self.target.at_least_one_of:
            schema["anyOf"] = [{"required": [name]} for name in self.target.at_least_one_of]
        return schema


class StorableText(OpenApiSerializerFieldExtension):
    """Text that must not be blank says so as a pattern, and every text that NUL is refused. A pattern's ``\\s`` lacks
    five signs that are blank in Python.

    Where blank is allowed, spectacular adds that as an alternative to the pattern.
    """

    target_class = "workspaces.rest.fields.Text"

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Any) -> dict[str, Any]:
        schema = {"type": "string"}
        if direction == "request":
            blank_too, not_blank = r"^[^\x00]+$", r"^[^\x00]*[^\s\x1c-\x1f\x85\x00][^\x00]*$"
            schema["pattern"] = blank_too if self.target.allow_blank else not_blank
        return schema
