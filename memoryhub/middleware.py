"""Headers on every response, and domain errors turned into a page or JSON."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render

from memoryhub.errors import DomainError, NotFound, Unavailable

Handler = Callable[[HttpRequest], HttpResponseBase]

# Pages load their own files only. The admin and the API page bring inline scripts of their own and get 'unsafe-inline'.
STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; manifest-src 'self'"
)
RELAXED = STRICT.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'").replace(
    "style-src 'self'", "style-src 'self' 'unsafe-inline'"
)
RELAXED_PATHS = ("/admin/", "/api/docs/")


class SecurityHeadersMiddleware:
    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        policy = RELAXED if request.path.startswith(RELAXED_PATHS) else STRICT
        response.headers.setdefault("Content-Security-Policy", policy)
        response.headers.setdefault("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
        return response


class DomainErrorMiddleware:
    """Views let domain errors rise; this answers with their status as a page, a fragment or JSON."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "/api/" not in request.path and (
            "\x00" in request.path or "%00" in request.META.get("QUERY_STRING", "")
        ):
            # No page has a NUL in its address, and Postgres cannot look for one.
            return self.answer(request, NotFound())
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return self.answer(request, exception) if isinstance(exception, DomainError) else None

    def answer(self, request: HttpRequest, exception: DomainError) -> HttpResponse:
        if "/api/" in request.path:
            response: HttpResponse = JsonResponse(exception.body(), status=exception.status)
        elif getattr(request, "htmx", False):
            response = render(request, "partials/error.html", {"error": exception}, status=exception.status)
        else:
            response = render(request, "error.html", {"error": exception}, status=exception.status)
        if isinstance(exception, Unavailable):
            response.headers["Retry-After"] = str(exception.retry_after)
        return response
