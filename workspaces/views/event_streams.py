"""Responses of server-sent events, a limited number at once, and the stream of a workspace's events for open pages."""

import json
import threading
import weakref
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from django.contrib.sessions.models import Session
from django.db import DatabaseError, InterfaceError
from django.http import StreamingHttpResponse
from django.utils.translation import gettext_lazy as later
from django.views.decorators.http import require_GET

from memoryhub import pubsub as bus
from memoryhub.database.queries import release_connection
from memoryhub.database.replicas import pin_to_primary
from memoryhub.errors import DomainError, TooManyRequests, Unavailable, trouble_of
from memoryhub.monitoring import metrics
from workspaces.access import get_workspace
from workspaces.models import Membership, User, Workspace
from workspaces.views import PageRequest

RETRY_SECONDS = 30
# Kinds of streams: of pages and clients, of programs with a key.
EVENTS = "event streams"
ANSWERS = "answers"
_lock = threading.Lock()
# Open streams by kind and person; of this process, since a stream lives in one.
_open: Counter[tuple[str, int]] = Counter()


class Overloaded(Unavailable):
    default_message = later("There is more to do here than can be done at once. Try again in a moment.")
    code, retry_after = "overloaded", 1


class StreamSlot:
    """A slot for an open stream of a person, released by ``leave`` or by garbage collection.

    ``of``: the kind of stream; those of programs with an API key (ANSWERS) are counted separately. Raises Overloaded
    above MEMORYHUB_STREAMS_AT_ONCE streams in this process, and TooManyRequests above MEMORYHUB_EVENT_STREAMS (or
    MEMORYHUB_ANSWER_STREAMS) of this person. A new stream is refused, because the oldest, if closed instead, would
    reconnect and close the next.
    """

    def __init__(self, user: User, *, of: str = EVENTS) -> None:
        most = django_settings.EVENT_STREAMS if of == EVENTS else django_settings.ANSWER_STREAMS
        with _lock:
            if _open.total() >= django_settings.STREAMS_AT_ONCE:
                metrics.SHED.labels("streams").inc()
                raise Overloaded
            if _open[of, user.pk] >= most:
                metrics.THROTTLED.labels(of).inc()
                raise TooManyRequests(retry_after=RETRY_SECONDS)
            _open[of, user.pk] += 1
        self.leave = weakref.finalize(self, _left, (of, user.pk))


class EventStream(StreamingHttpResponse):
    """A response of server-sent events. Closing it releases its ``slot``.

    If an error occurs, it ends with an ``error`` event.
    """

    def __init__(self, events: AsyncGenerator[str, None], *, slot: StreamSlot) -> None:
        super().__init__(_to_their_end(events), content_type="text/event-stream")
        self._slot = slot
        self["Cache-Control"] = "no-store, no-transform"
        self["X-Accel-Buffering"] = "no"  # proxies must not buffer the events

    def close(self) -> None:
        self._slot.leave()
        super().close()


async def _to_their_end(events: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    async with aclosing(events):
        try:
            async for event in events:
                yield event
        except (DomainError, DatabaseError, InterfaceError) as error:
            problem = error if isinstance(error, DomainError) else trouble_of(error)
            if problem is None:
                raise
            yield f"event: error\ndata: {json.dumps(problem.body()['error'])}\n\n"


def _left(held: tuple[str, int]) -> None:
    with _lock:
        _open[held] -= 1
        if not _open[held]:
            del _open[held]


# Seconds. Keeps proxies from closing a quiet stream, and ends streams of readers without access.
HEARTBEAT = 15.0


@require_GET
async def events(request: PageRequest, ws_id: str) -> EventStream:
    """Stream the events of a workspace as server-sent events, for as long as the person is a member."""
    user = cast(User, await request.auser())
    workspace = await sync_to_async(get_workspace)(user, ws_id)
    await sync_to_async(release_connection)()
    session_key = request.session.session_key or ""
    return EventStream(_feed(workspace, user, session_key), slot=StreamSlot(user))


async def _feed(workspace: Workspace, user: User, session_key: str) -> AsyncGenerator[str, None]:
    yield "retry: 3000\n: open\n\n"
    channels = (f"workspace:{workspace.public_id}", f"user:{user.public_id}")
    async for event in bus.subscribe(*channels, heartbeat=HEARTBEAT):
        if not await sync_to_async(_may_still_see)(
            workspace.pk, user.pk, session_key, has_news=event is not None
        ):
            yield "event: closed\ndata: {}\n\n"
            return
        yield _sse(event)


def _sse(event: bus.Event | None) -> str:
    return ": still here\n\n" if event is None else f"event: {event.name}\ndata: {json.dumps(event.data)}\n\n"


def _may_still_see(workspace_pk: int, user_pk: int, session_key: str, *, has_news: bool) -> bool:
    """Return whether the person is still a member with an open session. Checked at every event.

    ``has_news``: an event is about to be sent. The person's next reads then use the primary, because a replica may not
    have the change yet.
    """
    try:
        member = Membership.objects.filter(workspace=workspace_pk, user=user_pk, user__is_active=True)
        if has_news:
            pin_to_primary(user_pk)
        return member.exists() and Session.objects.filter(session_key=session_key).exists()
    finally:
        release_connection()
