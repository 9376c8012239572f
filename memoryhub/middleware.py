"""Headers on every response, requests that no database can take, and errors turned into a page or JSON."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import ClassVar

from django.db import IntegrityError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed, JsonResponse
from django.shortcuts import render
from django.views.defaults import server_error as error_page
from psycopg.errors import ForeignKeyViolation

from memoryhub import health, metrics, origin
from memoryhub.errors import Conflict, DomainError, NotFound, Unavailable

logger = logging.getLogger(__name__)
requests_log = logging.getLogger("memoryhub.requests")
Handler = Callable[[HttpRequest], HttpResponseBase]

# Everything loads its own files only, no script is ever inline. The admin's select boxes and the API page set styles.
STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; manifest-src 'self'"
)
RELAXED = STRICT.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
# What no page here asks a browser for.
PERMISSIONS = ", ".join(
    f"{feature}=()"
    for feature in (
        "accelerometer",
        "browsing-topics",
        "camera",
        "display-capture",
        "geolocation",
        "gyroscope",
        "magnetometer",
        "microphone",
        "midi",
        "payment",
        "serial",
        "usb",
    )
)
RELAXED_PATHS = ("/admin/", "/api/docs/")


class OriginMiddleware:
    """Gives every request an id and a network, returns the id, and counts and times the answer."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        source = origin.origin_of(request)
        origin.begin(source)
        began = time.perf_counter()
        response = self.get_response(request)
        seconds = time.perf_counter() - began
        response.headers["X-Request-ID"] = source.request_id
        route = metrics.count_request(request, response, seconds)
        fields: dict[str, object] = {"route": route, "method": request.method}
        fields |= {"status": response.status_code, "milliseconds": round(seconds * 1000, 1)}
        requests_log.info("%(method)s %(route)s %(status)s", fields, extra={"fields": fields})
        return response


class ProbesMiddleware:
    """Answers monitors before anything else is asked of a request: they come by address, without https or cookies."""

    VIEWS: ClassVar[dict[str, Handler]] = {
        "/healthz": health.healthz,
        "/readyz": health.readyz,
        "/metrics": metrics.metrics,
    }

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        view = self.VIEWS.get(request.path_info)
        if view is None:
            return self.get_response(request)
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        response = view(request)
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response._has_been_logged = True  # type: ignore[attr-defined]  # Django's: not an error line for each probe
        return response


class SecurityHeadersMiddleware:
    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        policy = RELAXED if request.path.startswith(RELAXED_PATHS) else STRICT
        response.headers.setdefault("Content-Security-Policy", policy)
        if response.status_code == 429:
            response.headers.setdefault("Retry-After", "60")  # allauth's limits do not say how long
        response.headers.setdefault("Permissions-Policy", PERMISSIONS)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        # Nearly every page holds somebody's words: the back button must not show them after signing out.
        response.headers.setdefault("Cache-Control", "no-store")
        return response


class StorableCookiesMiddleware:
    """Drops cookies with a NUL in them, which only a forger sends: the database looks up sessions, and takes none."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request.COOKIES = {name: value for name, value in request.COOKIES.items() if "\x00" not in value}
        return self.get_response(request)


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
        if isinstance(exception, IntegrityError) and isinstance(exception.__cause__, ForeignKeyViolation):
            logger.warning("A write came too late: %s", exception.__cause__.diag.constraint_name)
            exception = Conflict("What this belongs to was deleted in the meantime.", code="gone")
        return self.answer(request, exception) if isinstance(exception, DomainError) else None

    def answer(self, request: HttpRequest, exception: DomainError) -> HttpResponse:
        if "/api/" in request.path:
            response: HttpResponse = JsonResponse(exception.body(), status=exception.status)
        elif getattr(request, "htmx", False):
            response = render(request, "partials/error.html", {"error": exception}, status=exception.status)
        else:
            response = render(request, "error.html", {"error": exception}, status=exception.status)
        for name, value in exception.headers().items():
            response.headers[name] = value
        return response


def server_error(request: HttpRequest) -> HttpResponse:
    """What nobody foresaw: 500, or 503 while the database is away. Says nothing of the cause; the log does."""
    away = isinstance(sys.exc_info()[1], OperationalError | InterfaceError)
    if "/api/" in request.path:
        message = "Something failed on the server. What you had saved is safe."
        body = Unavailable().body() if away else {"error": {"code": "internal", "message": message}}
        response: HttpResponse = JsonResponse(body, status=500)
    else:
        response = error_page(request)
    if away:
        response.status_code = Unavailable.status
        response.headers["Retry-After"] = str(Unavailable.retry_after)
    return response
