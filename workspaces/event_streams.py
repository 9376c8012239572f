"""Server-sent events to a person: how they are sent, and how many streams one person may hold open at once."""

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

from memoryhub import metrics
from memoryhub.database.failures import trouble_of
from memoryhub.errors import DomainError, TooManyRequests
from workspaces.models import User

RETRY_SECONDS = 30
_lock = threading.Lock()
_open: Counter[int] = Counter()  # by the person's key; of this process, since a stream lives in one


class Place:
    """One of the streams that a person may hold open. Given back by ``leave``, or when nobody has it any more.

    Raises TooManyRequests over ``MEMORYHUB_EVENT_STREAMS``. The new one is refused rather than the oldest closed: that
    one would come back by itself and push out the next, without end.
    """

    def __init__(self, user: User) -> None:
        with _lock:
            if _open[user.pk] >= settings.EVENT_STREAMS:
                metrics.THROTTLED.labels("event streams").inc()
                raise TooManyRequests(retry_after=RETRY_SECONDS)
            _open[user.pk] += 1
        self.leave = weakref.finalize(self, _left, user.pk)


class EventStream(StreamingHttpResponse):
    """Holds its ``place`` until it is closed; what goes wrong meanwhile is said in an ``error`` event, its last."""

    def __init__(self, events: AsyncGenerator[str, None], *, place: Place) -> None:
        super().__init__(_to_their_end(events), content_type="text/event-stream")
        self._place = place
        self["Cache-Control"] = "no-store, no-transform"
        self["X-Accel-Buffering"] = "no"  # proxies must not collect the events

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


def open_streams(user: User) -> int:
    """How many this person holds open in this process."""
    return _open[user.pk]


def _left(user_pk: int) -> None:
    with _lock:
        _open[user_pk] -= 1
        if not _open[user_pk]:
            del _open[user_pk]
