"""In whose hours times are said on pages: the browser's, which it names in a cookie (js/theme.js); UTC before it has.

What is for programs, for staff in the admin or for anybody who has a link is in UTC, as what is stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from memoryhub.http.middleware import speaks_json
from memoryhub.languages import ENGLISH, SHARED

COOKIE = "zone"
NAME = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}")
LONGEST = 100  # characters of a name that are looked at, and so remembered
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
        """As it stands in UTC where the calendar has no such hour: an import may bring year 1 to everybody's pages."""
        try:
            return super().fromutc(moment)
        except OverflowError:
            return moment


@lru_cache(maxsize=1000)
def zone_named(name: str) -> tzinfo:
    """UTC for what is no zone: whoever sends the request says it."""
    if not NAME.fullmatch(name):
        return UTC
    try:
        return Zone(name)
    except (
        ValueError,
        OSError,
        LookupError,
    ):  # none of that name, a folder of zones, no zones on this machine
        return UTC
