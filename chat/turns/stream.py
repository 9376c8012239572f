"""Streaming of an answer while it is written, from any process and position, as events and as HTML."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import Exists
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.answer_steps import call_event, step_event
from chat.live_answers import close_abandoned, in_thread, live_answer, message_channel
from chat.models import Chat, Message, MessageQuerySet, MessageStatus
from chat.rendering.stored_html import html_or_source
from memoryhub import pubsub
from memoryhub.database.queries import PreparedQuery
from memoryhub.database.replicas import pin_to_primary
from memoryhub.errors import NotFound
from memoryhub.localization import translated
from workspaces.models import User

RECHECK_SECONDS = 2.0  # seconds after which a reader's access is checked again
LAST = ("done", "error")  # the client then loads the answer, which a lagging replica may not have
POLL = 1.0  # seconds between queries, because an event may be missed


@dataclass(frozen=True)
class StreamEvent:
    """An event in the stream of an answer. ``id`` is the number of characters sent so far.

    ``token`` carries more text, and after ``restart`` the text begins again. ``tool`` and ``step`` have the state of a
    tool call or step. They are sent to every new reader, and again on each change.
    """

    kind: str
    data: dict[str, Any] = field(default_factory=dict)
    id: int = 0


@dataclass(frozen=True)
class _State:
    text: str
    status: str
    attempt: int
    error_code: str
    error: str
    events: dict[str, tuple[str, dict[str, Any]]]
    changes: int = 0
    retracted: int | None = None  # None: not written by this process


async def follow(answer_id: str, *, after: int = 0) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of an answer after its first ``after`` characters, until it is done or has failed.

    The last event is ``done`` {status} or ``error`` {code, message}. An event's id is the position to resume from.
    """
    reached, attempt, retracted = after, None, 0
    sent: dict[str, tuple[str, dict[str, Any]]] = {}
    async with pubsub.subscription(message_channel(answer_id)) as listening:
        while True:
            state = await _state(answer_id)
            if state is None:
                gone = {"code": "not_found", "message": _("This answer no longer exists.")}
                yield StreamEvent("error", gone, reached)
                return
            retracts = state.retracted not in (None, retracted)
            if len(state.text) < reached or attempt not in (None, state.attempt) or retracts:
                reached = 0
                sent.clear()
                yield StreamEvent("restart", {}, 0)
            attempt, retracted = state.attempt, state.retracted or retracted
            for key, (kind, data) in state.events.items():
                if sent.get(key) != (kind, data):
                    sent[key] = (kind, data)
                    yield StreamEvent(kind, data, reached)
            if len(state.text) > reached:
                text, reached = state.text[reached:], len(state.text)
                yield StreamEvent("token", {"text": text}, reached)
            if state.status == MessageStatus.FAILED:
                error = {"code": state.error_code, "message": translated(state.error)}
                yield StreamEvent("error", error, reached)
                return
            if state.status != MessageStatus.STREAMING:
                yield StreamEvent("done", {"status": state.status}, reached)
                return
            await _more(answer_id, state.changes, listening)


async def follow_for(
    user: User, chat_id: str, answer_id: str, *, after: int = 0
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of ``follow`` as long as this person may read the answer, which can end while it is written.

    Access is checked before the first event, every two seconds, on each event of a tool call and before the last event.
    """
    looked: float | None = None
    async with aclosing(follow(answer_id, after=after)) as stream_events:
        async for event in stream_events:
            is_due = looked is None or time.monotonic() - looked >= RECHECK_SECONDS
            if event.kind in (*LAST, "tool") or is_due:
                if not await in_thread(_may_read, user.pk, chat_id, answer_id):
                    error = {"code": "not_found", "message": str(NotFound.default_message)}
                    yield StreamEvent("error", error, after)
                    return
                looked = time.monotonic()
            if event.kind in LAST and settings.REPLICAS:
                await in_thread(pin_to_primary, user.pk)
            yield event


def _readable(*, user: int, chat_id: str, answer_id: str) -> MessageQuerySet:
    chats = Chat.objects.visible_to(User(pk=user)).live().filter(public_id=chat_id)
    active = User.objects.filter(pk=user, is_active=True)
    readable = Message.objects.filter(public_id=answer_id, chat__in=chats).readable_by(User(pk=user))
    return readable.filter(Exists(active)).only("pk")


_READABLE = PreparedQuery(_readable, user=int, chat_id=str, answer_id=str)


def _may_read(user_pk: int, chat_id: str, answer_id: str) -> bool:
    return _READABLE.count(user=user_pk, chat_id=chat_id, answer_id=answer_id) > 0


def to_sse(event: StreamEvent) -> str:
    """Return the event in server-sent events format, with its data as one line of JSON."""
    return f"id: {event.id}\nevent: {event.kind}\ndata: {json.dumps(event.data)}\n\n"


async def _state(answer_id: str) -> _State | None:
    live = live_answer(answer_id)
    if live is None:
        return await in_thread(_stored_state, answer_id)
    changes, status = live.changes, MessageStatus.STREAMING  # counted before the text is read
    return _State(live.text, status, live.attempt, "", "", live.events, changes, live.retracted)


def _stored_state(answer_id: str) -> _State | None:
    answer = Message.objects.filter(public_id=answer_id).first()
    if answer is None:
        return None
    if close_abandoned(answer, now=timezone.now()):
        answer.refresh_from_db()
    shown = {call.public_id: ("tool", call_event(call)) for call in answer.tool_calls.defer("output")}
    if answer.has_steps:
        shown |= {step.public_id: ("step", step_event(step)) for step in answer.steps.all()}
    return _State(answer.content, answer.status, answer.attempt, answer.error_code, answer.error, shown)


async def _more(answer_id: str, changes: int, listening: pubsub.Subscription) -> None:
    """Wait until the answer has more than ``changes`` changes, at most one second."""
    live = live_answer(answer_id)
    if live is None:
        await listening.get(POLL)
        return
    with live.reader() as woken:
        if live.changes > changes or live_answer(answer_id) is not live:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(woken.wait(), POLL)


EVERY = 0.1  # minimum seconds between two renderings
# Times the duration of the last rendering, so that a long answer costs at most a twentieth of a core.
REST = 20


async def with_html(stream: AsyncGenerator[StreamEvent, None]) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of ``follow`` from the beginning, with ``html`` {keep, html} in place of ``token``.

    ``keep`` is the length of the previous HTML that stays, in UTF-16 units as in JavaScript; ``html`` is appended.
    """
    text, sent, reached, due, is_new = "", "", 0, 0.0, False
    waiting: asyncio.Future[StreamEvent | None] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(_next(stream))
            await asyncio.wait({waiting}, timeout=max(0.0, due - time.monotonic()) if is_new else None)
            event = None
            if waiting.done():
                event, waiting = waiting.result(), None
                if event is None:
                    return
                if event.kind == "token":
                    text, reached, is_new = text + event.data["text"], event.id, True
                    event = None
                elif event.kind == "restart":
                    text, sent, is_new = "", "", False
            if is_new and (event is not None or time.monotonic() >= due):
                began = time.monotonic()
                html = await asyncio.to_thread(html_or_source, text)
                due = time.monotonic() + max(EVERY, REST * (time.monotonic() - began))
                yield _grown(sent, html, reached)
                sent, is_new = html, False
            if event is not None:
                yield event
    finally:
        if waiting is not None:
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting
        await stream.aclose()


async def _next(stream: AsyncGenerator[StreamEvent, None]) -> StreamEvent | None:
    return await anext(stream, None)


def _grown(before: str, html: str, reached: int) -> StreamEvent:
    differing = (at for at, (a, b) in enumerate(zip(before, html, strict=False)) if a != b)
    keep = next(differing, min(len(before), len(html)))
    units = len(html[:keep].encode("utf-16-le")) // 2
    return StreamEvent("html", {"keep": units, "html": html[keep:]}, reached)
