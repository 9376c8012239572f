"""Server-sent events, and the limit of open streams per person."""

from __future__ import annotations

import json
import threading
import weakref
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import StreamingHttpResponse
from django.utils.translation import gettext_lazy as later

from memoryhub.database.failures import trouble_of
from memoryhub.errors import DomainError, TooManyRequests, Unavailable
from memoryhub.monitoring import metrics
from workspaces.models import User

RETRY_SECONDS = 30
EVENTS, ANSWERS = (
    "event streams",
    "answers",
)  # kinds of streams: of pages and clients, of programs with a key
_lock = threading.Lock()
_open: Counter[tuple[str, int]] = (
    Counter()
)  # by kind and person; of this process, since a stream lives in one


class Overloaded(Unavailable):
    default_message = later("There is more to do here than can be done at once. Try again in a moment.")
    code, retry_after = "overloaded", 1


class Place:
    """A slot for an open stream of a person. It is released by ``leave`` or when it is garbage-collected.

    Raises Overloaded above MEMORYHUB_STREAMS_AT_ONCE streams in this process, and TooManyRequests above
    MEMORYHUB_EVENT_STREAMS of this person. The new stream is refused instead of closing the oldest, which would
    reconnect and close the next. ``of``: streams of programs with a key are counted separately
    (MEMORYHUB_ANSWER_STREAMS).
    """

    def __init__(self, user: User, *, of: str = EVENTS) -> None:
        most = settings.EVENT_STREAMS if of == EVENTS else settings.ANSWER_STREAMS
        with _lock:
            if _open.total() >= settings.STREAMS_AT_ONCE:
                metrics.SHED.labels("streams").inc()
                raise Overloaded
            if _open[of, user.pk] >= most:
                metrics.THROTTLED.labels(of).inc()
                raise TooManyRequests(retry_after=RETRY_SECONDS)
            _open[of, user.pk] += 1
        self.leave = weakref.finalize(self, _left, (of, user.pk))


class EventStream(StreamingHttpResponse):
    """A response of server-sent events that holds its ``place`` until it is closed.

    If it fails, it ends with an ``error`` event.
    """

    def __init__(self, events: AsyncGenerator[str, None], *, place: Place) -> None:
        super().__init__(_to_their_end(events), content_type="text/event-stream")
        self._place = place
        self["Cache-Control"] = "no-store, no-transform"
        self["X-Accel-Buffering"] = "no"  # proxies must not buffer the events

    def close(self) -> None:
        self._place.leave()
        super().close()


async def _to_their_end(events: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    async with aclosing(events):
        try:
            async for event in events:
                yield event
        except (DomainError, DatabaseError, InterfaceError) as error:
            said = error if isinstance(error, DomainError) else trouble_of(error)
            if said is None:
                raise
            yield f"event: error\ndata: {json.dumps(said.body()['error'])}\n\n"


def _left(held: tuple[str, int]) -> None:
    with _lock:
        _open[held] -= 1
        if not _open[held]:
            del _open[held]
