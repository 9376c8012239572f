"""ASGI helpers: a limit of request bodies, the language and time zone of a request, and requests for ASGI libraries."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext_lazy as later
from django.utils.translation.trans_real import parse_accept_lang_header

from memoryhub.errors import DiskFull, DomainError, trouble_of
from memoryhub.http.middleware import PROGRAMS, speaks_json
from memoryhub.languages import chosen_by

Handler = Callable[[HttpRequest], HttpResponseBase]
# English only. In the admin only Django's own words are translated, and a half-translated page is worse than English.
ENGLISH = ("/admin/", *PROGRAMS)
SHARED = "/shared/"  # independent of the signed-in user
LONGEST_HEADER = 500  # characters of a header that are used, and so cached


class LanguageMiddleware:
    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

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
    return (
        str(settings.LANGUAGE_CODE)
        if path.startswith(ENGLISH)
        else asked_for(accept_language[:LONGEST_HEADER])
    )


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


# The time zone of pages is the browser's, which js/theme.js stores in a cookie; UTC until then.
#
# API responses, the admin and shared chats use UTC, as stored.

COOKIE = "zone"
NAME = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}")
LONGEST = 100  # characters of a name that are used, and so cached
FOR_ALL = (*ENGLISH, SHARED)


class TimeZoneMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        for_all = speaks_json(request.path_info) or request.path_info.startswith(FOR_ALL)
        with timezone.override(UTC if for_all else zone_named(request.COOKIES.get(COOKIE, "")[:LONGEST])):
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
    except (
        ValueError,
        OSError,
        LookupError,
    ):  # unknown name, a folder of zones, or no time zone data
        return UTC


def scope_of(request: HttpRequest, headers: Iterable[str]) -> dict[str, Any]:
    given = {name.lower(): value for name, value in request.headers.items()}
    passed = [(name.encode(), given[name].encode("latin-1", "replace")) for name in headers if name in given]
    return {
        "type": "http",
        "method": request.method,
        "path": request.path_info,
        "query_string": b"",
        "headers": passed,
        "http_version": "1.1",
        "scheme": "http",
    }


def receiver_of(request: HttpRequest) -> Receive:
    came = iter([{"type": "http.request", "body": request.body, "more_body": False}])

    async def receive() -> Any:
        message = next(came, None)
        return await asyncio.Future() if message is None else message  # never report a disconnect

    return receive


# The limit of request bodies, needed because Django writes a body to disk before it authenticates the user.

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]


class BodyTooLarge(DomainError):
    status, code = 413, "too_large"
    default_message = later("The request is too large.")


@dataclass
class BodyLimit:
    """An ASGI middleware that rejects bodies of more than ``most`` bytes, if possible by Content-Length.

    It also responds when a body does not fit on the disk. A proxy must limit slow clients and long headers
    (deploy/haproxy).
    """

    application: Application
    most: int

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        read, is_whole = 0, scope["type"] != "http"

        async def limited() -> Message:
            nonlocal read, is_whole
            message = await receive()
            read += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            return {"type": "http.disconnect"} if read > self.most else message

        length = dict(scope["headers"]).get(b"content-length", b"") if not is_whole else b""
        if length.isdigit() and int(length[:20]) > self.most:
            await _refuse(scope, send, BodyTooLarge)
            return
        try:
            await self.application(scope, limited, send)
        except OSError as error:
            if trouble_of(error) is None:
                raise
            while not is_whole:  # most clients read the response only after they have sent the whole body
                await limited()
            await _refuse(scope, send, DiskFull)
        if read > self.most:  # the application received a disconnect and sent no response
            await _refuse(scope, send, BodyTooLarge)


async def _refuse(scope: Any, send: Send, kind: type[DomainError]) -> None:
    """Send an error response and close the connection, so that the client stops sending the body."""
    accepted = dict(scope["headers"]).get(b"accept-language", b"").decode("latin-1")
    with translation.override(language_at(scope["path"], accepted)):
        error = kind()
        body = json.dumps(error.body()).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    headers += [(name.lower().encode(), value.encode()) for name, value in error.headers().items()]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
