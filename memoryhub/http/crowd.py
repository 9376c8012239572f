"""How much a web process takes on at once; what is more is refused, in place of a line without end.

In a line every request gets slower, until all are given up by those who wait. Refused ones come back when
``Retry-After`` says, or go to another process by a balancer.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.translation import get_language_from_request
from django.utils.translation import gettext_lazy as later

from memoryhub.errors import Unavailable
from memoryhub.http import origin
from memoryhub.http.middleware import SecurityHeadersMiddleware, answer_error, speaks_json
from memoryhub.monitoring import metrics

# Monitors, what lets people in, and what pages are made of.
ALWAYS = ("/healthz", "/readyz", "/metrics", "/accounts/", "/static/")
# Seconds for which a thread that computes keeps the interpreter from one that has its answer from the database. By
# default 5 ms, which a recall lost several times over while its question was embedded. But each thread that waits for
# the interpreter wakes once in that time: of a hundred that is more work than what they do.
TURN, TURN_OF_MANY, MANY = 0.0005, 0.005, 16


class Overloaded(Unavailable):
    default_message = later("There is more to do here than can be done at once. Try again in a moment.")
    code, retry_after = "overloaded", 1


class Crowd:
    """Requests that this process works on, ``most`` at once."""

    def __init__(self, most: int) -> None:
        self.most, self.inside = most, 0
        self._lock = threading.Lock()
        sys.setswitchinterval(TURN)

    def is_full(self, path: str) -> bool:
        """Whether one for this path would be refused now."""
        return self.inside >= self.most and not path.startswith(ALWAYS)

    def enter(self, path: str = "", *, anyway: bool = False) -> bool:
        """Whether there is room for one more; it counts until it is said to ``leave``."""
        with self._lock:
            has_room = anyway or not self.is_full(path)
            self._count(has_room)
            return has_room

    def leave(self) -> None:
        with self._lock:
            self._count(-1)

    def _count(self, more: int) -> None:
        were_many, self.inside = self.inside > MANY, self.inside + more
        if were_many != (self.inside > MANY):
            sys.setswitchinterval(TURN if were_many else TURN_OF_MANY)


_here: ContextVar[Crowd | None] = ContextVar("crowd", default=None)


@contextmanager
def counted(crowd: Crowd) -> Iterator[None]:
    """What was let in is inside until this block ends."""
    token = _here.set(crowd)
    try:
        yield
    finally:
        _here.reset(token)
        crowd.leave()


@contextmanager
def aside() -> Iterator[None]:
    """Around what only waits for a model: it is no work for this process, and takes nobody's room."""
    crowd = _here.get()
    if crowd is not None:
        crowd.leave()
    try:
        yield
    finally:
        if crowd is not None:
            crowd.enter(anyway=True)


def refused(request: HttpRequest, why: Callable[[], Unavailable] = Overloaded) -> HttpResponse:
    """A moment's work: what is said is made once for each language, as JSON, as a fragment and as a page."""
    if why is Overloaded:
        metrics.SHED.labels("requests").inc()
    language = get_language_from_request(request)
    is_fragment = request.headers.get("HX-Request") == "true"
    answer = _refusal(why, language, speaks_json(request.path), is_fragment)
    headers = dict(answer.headers) | {
        "Content-Length": str(len(answer.content)),
        "X-Request-ID": origin.request_id_of(request.headers.get("X-Request-ID", "")),
    }
    return HttpResponse(answer.content, status=answer.status_code, headers=headers)


@cache
def _refusal(why: Callable[[], Unavailable], language: str, is_json: bool, is_fragment: bool) -> Any:
    request: Any = HttpRequest()
    request.path, request.htmx = "/api/" if is_json else "/", is_fragment
    with translation.override(language):
        answer = answer_error(request, why())
        return SecurityHeadersMiddleware(lambda _: answer)(request)
