"""Middleware: headers, probes, language, time zone, errors as pages or JSON, compression, reads from replicas."""

import logging
import re
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import ClassVar
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.sessions.exceptions import SessionInterrupted
from django.contrib.sessions.middleware import SessionMiddleware as DjangosSessionMiddleware
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed, JsonResponse
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.utils.translation.trans_real import parse_accept_lang_header
from django.views.defaults import server_error as error_page
from opentelemetry.trace import SpanKind, StatusCode
from psycopg.errors import ForeignKeyViolation

from memoryhub.database.queries import release_connection
from memoryhub.database.replicas import answering, pin_to_primary, primary_is_away, stands_in
from memoryhub.errors import (
    Conflict,
    DomainError,
    Malformed,
    NotFound,
    Unavailable,
    refuse_writes,
    trouble_of,
)
from memoryhub.http import health
from memoryhub.localization import chosen_by
from memoryhub.monitoring import metrics, request_origin, tracing

logger = logging.getLogger(__name__)
requests_log = logging.getLogger("memoryhub.requests")
Handler = Callable[[HttpRequest], HttpResponseBase]

# Pages load only files of this server, without inline scripts, and only artifacts may be framed
# (workspaces.views.artifacts). The admin's select boxes need inline styles.
STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "manifest-src 'self'"
)
RELAXED = STRICT.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
# Browser features that no page uses, and the microphone, which only our pages may use.
PERMISSIONS = (
    "accelerometer=(), browsing-topics=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), "
    "magnetometer=(), microphone=(self), midi=(), payment=(), serial=(), usb=()"
)
PROGRAMS = ("/v1/", "/mcp", "/scim/")
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class Middleware:
    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response


class OriginMiddleware(Middleware):
    """Middleware that sets every request's id and network, and traces, counts and logs the response."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        source = request_origin.origin_of(request)
        request_origin.current.set(source)
        began, method = time.perf_counter(), metrics.method_of(request)
        # It controls sampling, so only proxies may set it.
        parent = request.headers.get("traceparent", "") if settings.TRUSTED_PROXIES else ""
        with tracing.span("memoryhub.request", kind=SpanKind.SERVER, parent=parent) as traced:
            response = self.get_response(request)
            seconds = time.perf_counter() - began
            response.headers["X-Request-ID"] = source.request_id
            route = metrics.count_request(request, response, seconds)
            traced.set_attributes({"http.request.method": method, "http.route": route})
            traced.set_attribute("http.response.status_code", response.status_code)
            traced.set_attribute("memoryhub.request_id", source.request_id)
            traced.update_name(f"{method} {route}")
            if response.status_code >= 500:
                traced.set_status(StatusCode.ERROR)
        fields: dict[str, object] = {"route": route, "method": request.method}
        fields |= {"status": response.status_code, "milliseconds": round(seconds * 1000, 1)}
        requests_log.info("%(method)s %(route)s %(status)s", fields, extra={"fields": fields})
        return response


class ProbesMiddleware(Middleware):
    """Middleware that answers health checks and metrics first, since monitors use IP addresses without HTTPS."""

    VIEWS: ClassVar[dict[str, Handler]] = {
        "/healthz": health.healthz,
        "/readyz": health.readyz,
        "/metrics": health.metrics,
    }

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        view = self.VIEWS.get(request.path_info)
        if view is None:
            return self.get_response(request)
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        response = view(request)
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response._has_been_logged = True  # type: ignore[attr-defined]  # Django's attribute: do not log errors
        return response


class SecurityHeadersMiddleware(Middleware):
    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        policy = RELAXED if request.path.startswith("/admin/") else STRICT
        response.headers.setdefault("Content-Security-Policy", policy)
        if response.status_code == 429:
            response.headers.setdefault("Retry-After", "60")  # allauth's limits do not set it
        response.headers.setdefault("Permissions-Policy", PERMISSIONS)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        # Nearly every page contains private text, which the back button must not show after signing out.
        response.headers.setdefault("Cache-Control", "no-store")
        return response


class StorableCookiesMiddleware(Middleware):
    """Middleware that drops cookies with a NUL, because the database rejects NUL when it looks up the session."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request.COOKIES = {name: value for name, value in request.COOKIES.items() if "\x00" not in value}
        return self.get_response(request)


class SessionMiddleware(DjangosSessionMiddleware):
    """Django's session middleware with another response if the session cannot be saved. Django always responds with
    400.

    If the database caused the failure, a read still gets its response, since a session stores only small conveniences,
    such as the last open workspace. Other requests get the database's error.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        try:
            return super().process_response(request, response)
        except SessionInterrupted as error:
            cause = error.__context__ and error.__context__.__context__
            trouble = trouble_of(cause)
            if trouble is None:
                raise
            return response if request.method in SAFE_METHODS else answer_error(request, trouble)


class DomainErrorMiddleware(Middleware):
    """Middleware that converts domain errors of views to a page, a fragment or JSON with their status."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not speaks_json(request.path) and (
            "\x00" in request.path or "%00" in request.META.get("QUERY_STRING", "")
        ):
            # No page has a NUL in its URL, and Postgres rejects NUL in queries.
            return answer_error(request, NotFound())
        if request.method not in SAFE_METHODS and not stands_in():
            # Check this first, because files, mails and model calls cannot be rolled back. Recall is checked too,
            # since it records which memories were used.
            try:
                refuse_writes()
            except (Unavailable, DatabaseError, InterfaceError) as error:
                return answer_error(request, _as_domain_error(error) or Unavailable())
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, IntegrityError) and isinstance(exception.__cause__, ForeignKeyViolation):
            logger.warning("A write came too late: %s", exception.__cause__.diag.constraint_name)
            exception = Conflict(_("What this belongs to has since been deleted."), code="gone")
        error = _as_domain_error(exception)
        return answer_error(request, error) if error else None


def speaks_json(path: str) -> bool:
    """Return whether this path belongs to an API."""
    return "/api/" in path or path.startswith(PROGRAMS)


def _as_domain_error(error: BaseException | None) -> DomainError | None:
    if isinstance(error, DataError) and "NUL (0x00)" in str(error):
        return Malformed()  # for example an id in a form, which Postgres rejects
    return error if isinstance(error, DomainError) else trouble_of(error)


def answer_error(request: HttpRequest, error: DomainError) -> HttpResponse:
    """Return the error as JSON, an HTML fragment or a page."""
    if speaks_json(request.path):
        response: HttpResponse = JsonResponse(error.body(), status=error.status)
    elif getattr(request, "htmx", False):
        response = render(request, "partials/error.html", {"error": error}, status=error.status)
        response.headers["HX-Reselect"] = ".toast"  # the whole message, even if the request selects a part
    elif isinstance(error, Unavailable):  # without context processors that query the database for the user
        response = HttpResponse(render_to_string("error.html", {"error": error}), status=error.status)
    else:
        response = render(request, "error.html", {"error": error}, status=error.status)
    for name, value in error.headers().items():
        response.headers[name] = value
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the response to an unhandled error, without its cause: 503 if the database failed, else 500."""
    if trouble := trouble_of(sys.exc_info()[1]):
        return answer_error(request, trouble)
    if speaks_json(request.path):
        message = _("Something failed on the server. What you had saved is safe.")
        return JsonResponse({"error": {"code": "internal", "message": message}}, status=500)
    return error_page(request)


class CompressedPagesMiddleware(GZipMiddleware):
    """Django's gzip, for pages only.

    The length of a compressed response can reveal a secret that is next to attacker-controlled text (BREACH). So Django
    adds a random length and masks the CSRF token, and responses to POST are not compressed, such as the page that shows
    a new key once. The API, files and streams are not compressed either: compression would weaken the API's ETags,
    files are mostly compressed already, and streams must not be buffered.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = response.get("Content-Type", "").startswith("text/html")
        if response.streaming or request.method != "GET" or not is_page:
            return response
        return super().process_response(request, response)


READING = frozenset({"GET", "HEAD"})


class ReadingMiddleware(Middleware):
    """Middleware that retries a request that only reads, if its connection was lost or a replica can answer it.

    So a restart of the database delays reads but causes no errors. With replicas, one answers while the primary is
    unavailable. A streaming response releases its connection before it starts, because it runs in another thread.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        may_read_replicas = bool(settings.REPLICAS) and reads_only(request)
        if may_read_replicas and request.method not in READING:
            _ = request.body  # cache the body, so that it can be read twice
        allow = answering if may_read_replicas else nullcontext
        try:
            with allow():
                response = self.get_response(request)
            was_cut = connection.connection is not None and bool(connection.connection.closed)
            if response.status_code >= 500 and (
                (may_read_replicas and primary_is_away(failed=True))
                or (request.method in READING and was_cut)
            ):
                connection.close()
                with allow():
                    response = self.get_response(request)
        except BaseException:  # there is no response whose closing would release the connection
            release_connection()
            raise
        wrote_nothing = response.status_code == 503 and connection.connection is None  # it never connected
        if settings.REPLICAS and not may_read_replicas and not wrote_nothing:
            _pin(request)
        if response.streaming:
            release_connection()
        return response


def reads_only(request: HttpRequest) -> bool:
    """Return whether a request only reads: by its method, or by its view's `only_reads` (recall is a POST)."""
    if request.method in READING:
        return True
    try:
        view = resolve(request.path_info).func
    except Resolver404:
        return False
    return bool(getattr(getattr(view, "cls", None), "only_reads", False))


def _pin(request: HttpRequest) -> None:
    """Pin the user to the primary, so that they can read their own changes."""
    try:
        person = getattr(getattr(request, "user", None), "pk", None)
    except (DatabaseError, InterfaceError):  # the user was not loaded, and now cannot be
        return
    if person is not None:
        pin_to_primary(person)


# English only. In the admin only Django's own words are translated, and a half-translated page is worse than English.
ENGLISH = ("/admin/", *PROGRAMS)
SHARED = "/shared/"  # independent of the signed-in user
LONGEST_HEADER = 500  # characters of a header that are used, and so cached


class LanguageMiddleware(Middleware):
    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        before, language = translation.get_language(), language_for(request)
        translation.activate(language)
        response = self.get_response(request)
        if not response.streaming:  # a stream continues in this language
            translation.activate(before or settings.LANGUAGE_CODE)
        response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ["Accept-Language"])
        return response


def language_for(request: HttpRequest) -> str:
    """Return the language of the response to this request. May load the user, which pages need anyway."""
    for_anybody = request.path_info.startswith((*ENGLISH, SHARED)) or speaks_json(request.path_info)
    chosen = "" if for_anybody else chosen_by(request.user)
    return chosen or language_at(request.path_info, request.headers.get("Accept-Language", ""))


def language_at(path: str, accept_language: str) -> str:
    """Return the language for a path and an Accept-Language header, regardless of the user."""
    if path.startswith(ENGLISH):
        return str(settings.LANGUAGE_CODE)
    return asked_for(accept_language[:LONGEST_HEADER])


@lru_cache(maxsize=1000)
def asked_for(accept_language: str) -> str:
    """Return the first supported language of an Accept-Language header; English if there is none."""
    for wanted, _weight in parse_accept_lang_header(accept_language.lower()):
        if wanted == "*":
            break
        try:
            return translation.get_supported_language_variant(wanted)
        except LookupError:
            continue
    return str(settings.LANGUAGE_CODE)


# The time zone of pages is the browser's, which js/theme.js stores in a cookie; UTC until then. API responses, the
# admin and shared chats use UTC, as stored.

NAME = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}")
LONGEST = 100  # characters of a name that are used, and so cached


class TimeZoneMiddleware(Middleware):
    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        for_all = speaks_json(request.path_info) or request.path_info.startswith((*ENGLISH, SHARED))
        with timezone.override(UTC if for_all else zone_named(request.COOKIES.get("zone", "")[:LONGEST])):
            return self.get_response(request)


class Zone(ZoneInfo):
    def fromutc(self, moment: datetime) -> datetime:
        """Convert from UTC, or leave a time unchanged that is out of range locally. Imports may contain the year 1."""
        try:
            return super().fromutc(moment)
        except OverflowError:
            return moment


@lru_cache(maxsize=1000)
def zone_named(name: str) -> tzinfo:
    """Return the time zone of this name, which comes from the request; UTC if it is unknown."""
    if not NAME.fullmatch(name):
        return UTC
    try:
        return Zone(name)
    except (ValueError, OSError, LookupError):  # unknown name, a folder of zones, or no time zone data
        return UTC
