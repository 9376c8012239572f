"""What every REST door shares: session sign-in answered with 401, and one shape of error."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import authentication, exceptions, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import exception_handler as rest_exception_handler

from memoryhub.errors import DomainError, Forbidden, NotFound, Unavailable


class SessionAuthentication(authentication.SessionAuthentication):
    """Django's session. Says how to authenticate, so that a stranger gets 401 and not 403."""

    def authenticate_header(self, request: Request) -> str:
        return "Session"


def _flatten(detail: Any, name: str = "") -> dict[str, str]:
    if isinstance(detail, dict):
        fields: dict[str, str] = {}
        for key, value in detail.items():
            fields |= _flatten(value, f"{name}.{key}" if name else str(key))
        return fields
    if isinstance(detail, list):
        return {name or "body": " ".join(str(part) for part in detail)}
    return {name or "body": str(detail)}


def exception_handler(exception: Exception, context: dict[str, Any]) -> Response | None:
    """Every error as ``{error: {code, message, fields?}}``; anything unknown rises to Django's 500."""
    if isinstance(exception, Http404):
        exception = NotFound()
    elif isinstance(exception, PermissionDenied):
        exception = Forbidden()
    if isinstance(exception, DomainError):
        response = Response(exception.body(), status=exception.status)
        if isinstance(exception, Unavailable):
            response["Retry-After"] = str(exception.retry_after)
        return response
    response_or_none = rest_exception_handler(exception, context)
    if response_or_none is None or not isinstance(exception, exceptions.APIException):
        return response_or_none
    response = response_or_none
    if isinstance(exception, exceptions.ValidationError):
        response.status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
        fields = _flatten(exception.detail)
        message = " ".join(f"{name}: {text}" for name, text in fields.items())
        response.data = {"error": {"code": "invalid", "message": message, "fields": fields}}
    else:
        codes = {400: "malformed", 401: "not_signed_in", 403: "forbidden", 405: "method_not_allowed", 415: "media_type"}
        code = codes.get(response.status_code, exception.default_code)
        if isinstance(exception, exceptions.PermissionDenied) and "CSRF" in str(exception.detail):
            code = "csrf"
        response.data = {"error": {"code": code, "message": str(exception.detail)}}
    return response
