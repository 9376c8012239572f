"""Errors of the REST API in one form, and session authentication that answers 401.

The settings name these classes, so this module must not import ``rest_framework.views``, which reads those settings.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponseBase
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import resolve_url
from django.utils.translation import gettext as _
from rest_framework import authentication, exceptions, status
from rest_framework.request import Request
from rest_framework.response import Response

from memoryhub.errors import DomainError, Forbidden, Malformed, NotFound, TooLarge, trouble_of
from memoryhub.localization import grouped

CODES = {
    400: "malformed",
    401: "not_signed_in",
    403: "forbidden",
    405: "method_not_allowed",
    406: "not_acceptable",
    415: "media_type",
    429: "too_many_requests",
}


class SessionAuthentication(authentication.SessionAuthentication):
    """Django's session authentication with a WWW-Authenticate header. Without a session, a request gets 401 instead of
    403.
    """

    def authenticate_header(self, request: Request) -> str:
        return "Session"


def exception_handler(exception: Exception, context: dict[str, Any]) -> HttpResponseBase | None:
    """Return the response to an error: ``{error: {code, message, fields?}}``, or None for unknown exceptions.

    A browser that is not signed in is redirected to the login page instead.
    """
    translated = exception if isinstance(exception, DomainError) else _translate(exception)
    if translated is not None:
        return _domain_response(translated)
    request = context.get("request")
    if isinstance(exception, exceptions.NotAuthenticated) and request is not None and prefers_html(request):
        path = request.get_full_path() if request.method == "GET" else "/"
        return redirect_to_login(path, resolve_url(settings.LOGIN_URL))
    return _rest_response(exception, context)


def prefers_html(request: HttpRequest | Request) -> bool:
    """Return whether text/html is the first accepted type, as in a browser that follows a link."""
    first = request.META.get("HTTP_ACCEPT", "").split(",")[0]
    return first.split(";")[0].strip().lower() == "text/html"


def _translate(exception: Exception) -> DomainError | None:
    if isinstance(exception, Http404):
        return NotFound()
    if isinstance(exception, PermissionDenied):
        return Forbidden()
    if isinstance(exception, RequestDataTooBig):
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0
        return TooLarge(_("The request has more than %s bytes.") % grouped(limit))
    if isinstance(exception, SuspiciousOperation | MultiPartParserError):
        return Malformed()
    return trouble_of(exception)


def _domain_response(error: DomainError) -> Response:
    body = error.body()
    if error.fields:
        body["error"]["fields"] = {printable(name): printable(text) for name, text in error.fields.items()}
    return Response(body, status=error.status, headers=error.headers())


def _rest_response(exception: Exception, context: dict[str, Any]) -> Response | None:
    from rest_framework.views import exception_handler as rest_exception_handler  # see the module's docstring

    response = rest_exception_handler(exception, context)
    if response is None or not isinstance(exception, exceptions.APIException):
        return response
    if isinstance(exception, exceptions.ValidationError):
        response.status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
        fields = _flatten(exception.detail)
        message = " ".join(f"{name}: {text}" for name, text in fields.items())
        response.data = {"error": {"code": "invalid", "message": message, "fields": fields}}
        return response
    code = CODES.get(response.status_code, str(exception.default_code))
    if isinstance(exception, exceptions.PermissionDenied) and "CSRF" in str(exception.detail):
        code = "csrf"
    if isinstance(exception, exceptions.AuthenticationFailed):
        code = "bad_key"
    response.data = {"error": {"code": code, "message": printable(str(exception.detail))}}
    return response


def _flatten(detail: Any, name: str = "") -> dict[str, str]:
    if isinstance(detail, dict):
        fields: dict[str, str] = {}
        for key, value in detail.items():
            key = "body" if key == "non_field_errors" else printable(str(key))
            fields |= _flatten(value, f"{name}.{key}" if name else key)
        return fields
    if isinstance(detail, list):
        return {name or "body": " ".join(printable(str(part)) for part in detail)}
    return {name or "body": printable(str(detail))}


def printable(text: str) -> str:
    """Return the text without lone surrogates, which JSON may contain and UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()
