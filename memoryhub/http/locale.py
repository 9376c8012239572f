"""Language and time zone of a request: the user's choice, else the browser's."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.translation.trans_real import parse_accept_lang_header

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
