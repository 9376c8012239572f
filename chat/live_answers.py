"""Answers that this process is writing, the threads of their blocking work, and the states and errors of answers."""

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import connections
from django.utils.translation import gettext as _
from opentelemetry import context

from chat.models import Chat, Message, MessageStatus
from chat.models.answer_steps import StepKind, StepOutcome
from chat.models.chats import STOPPED_AFTER
from memoryhub.llm.errors import ModelError
from memoryhub.llm.metering import Meter
from memoryhub.stored_messages import kept
from workspaces.spending.usage_records import Account


class LiveAnswer:
    """An answer that this process is writing. The turns' thread appends to it; readers wake in their event loops."""

    def __init__(self, public_id: str, pk: int, attempt: int, text: str = "") -> None:
        """Start writing. ``text``: the text so far, if the answer is being continued."""
        self.public_id, self.pk, self.attempt = public_id, pk, attempt
        self.channel = message_channel(public_id)
        self.stop_requested = threading.Event()
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self.text = text
        self._events: dict[str, tuple[str, dict[str, Any]]] = {}
        self.is_whole = False  # the text is complete and only being checked, so a stop does not cut it
        self.model_is_local = False  # until the model is known, assume that prompts leave this machine
        self.was_too_long = False  # for the context window, so it was written from a shorter conversation
        self.goes_on = bool(text)  # the next text continues the last word
        self.was_cut = False  # at the model's length limit
        self.waits = False  # for a person to review the plan
        self.meter = Meter()  # usage of the model, charged to ``account`` once it is known
        self.account: Account | None = None
        self.retracted = 0  # number of retractions
        self.changes = 0  # number of changes, so that readers notice new ones
        self._readers: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    @property
    def took(self) -> float:
        """The seconds since writing began."""
        return time.monotonic() - self._began

    def append(self, text: str) -> None:
        with self._lock:
            self.text += text
            self.changes += 1
        self.wake()

    def retract(self, length: int) -> None:
        """Remove the last ``length`` characters, which turned out not to belong to the answer."""
        with self._lock:
            self.text = self.text[: len(self.text) - length]
            self.retracted += 1
            self.changes += 1
        self.wake()

    @property
    def events(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """The tool and step events by id, in order, each with its kind and current data."""
        with self._lock:
            return dict(self._events)

    def set_event(self, kind: str, key: str, data: dict[str, Any]) -> None:
        with self._lock:
            self._events[key] = (kind, data)
            self.changes += 1
        self.wake()

    def request_stop(self) -> None:
        self.stop_requested.set()
        self.wake()

    def wake(self) -> None:
        with self._lock:
            readers = list(self._readers)
        for loop, event in readers:
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # that reader's loop has ended
                self._readers.discard((loop, event))

    @contextmanager
    def reader(self) -> Iterator[asyncio.Event]:
        """Yield an ``asyncio.Event`` that is set on every change of the answer. The reader clears it."""
        mine = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._readers.add(mine)
        try:
            yield mine[1]
        finally:
            with self._lock:
                self._readers.discard(mine)


_answers: dict[str, LiveAnswer] = {}


def live_answer(public_id: str) -> LiveAnswer | None:
    """Return the answer if this process is writing it, else None. The current text is then in the database."""
    return _answers.get(public_id)


def all_live() -> list[LiveAnswer]:
    return list(_answers.values())


@contextmanager
def being_written(live: LiveAnswer) -> Iterator[None]:
    _answers[live.public_id] = live
    try:
        yield
    finally:
        if _answers.get(live.public_id) is live:  # unless a retry has replaced it
            del _answers[live.public_id]
        live.wake()


P = ParamSpec("P")
T = TypeVar("T")
_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="turn")
# Separate, so that slow tools do not block turns.
_tool_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="tool")


def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
    """Run blocking code (database, embedder) in a thread, and close the thread's database connections afterwards."""
    return _run_in(_threads, partial(function, *args, **kwargs))


def in_tool_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
    """Run slow blocking code like ``in_thread``, but in a separate thread pool."""
    return _run_in(_tool_threads, partial(function, *args, **kwargs))


def _run_in(threads: ThreadPoolExecutor, work: Callable[[], T]) -> Awaitable[T]:
    here = context.get_current()  # spans of the thread become children of the current span

    def call() -> T:
        token = context.attach(here)
        try:
            return work()
        finally:
            context.detach(token)
            connections.close_all()

    return asyncio.get_running_loop().run_in_executor(threads, call)


STOP_POLL = 0.1  # seconds between checks whether another process has stopped


def message_channel(answer_id: str) -> str:
    return f"message:{answer_id}"


def stop_answer(answer: Message, *, now: datetime) -> None:
    """Stop an answer and store its text so far. When this returns, another turn can begin.

    If another process writes it, wait until that has stopped or has sent no heartbeat for three seconds.
    """
    Message.objects.filter(pk=answer.pk, status=MessageStatus.STREAMING).update(stop_requested=True)
    live = live_answer(answer.public_id)
    if live is not None:
        live.request_stop()
        return
    began = time.monotonic()
    answer.refresh_from_db()
    while answer.status == MessageStatus.STREAMING:
        waited = timedelta(seconds=time.monotonic() - began)
        if close_abandoned(answer, now=now + waited) or waited > STOPPED_AFTER:
            return
        time.sleep(STOP_POLL)
        answer.refresh_from_db()


def reap_abandoned(chat: Chat, *, now: datetime) -> None:
    """Close the chat's answers whose process died, with their text so far."""
    for answer in chat.messages.filter(status=MessageStatus.STREAMING):
        close_abandoned(answer, now=now)


def close_abandoned(answer: Message, *, now: datetime) -> bool:
    if not answer.is_abandoned(now):
        return False
    closed = Message.objects.filter(
        pk=answer.pk, status=MessageStatus.STREAMING, attempt=answer.attempt, beat_at=answer.beat_at
    ).update(**_as_abandoned(answer, now))
    close_steps(answer, now=now)
    return bool(closed)


def close_steps(answer: Message, *, now: datetime) -> None:
    """Mark the running steps of an answer as stopped, because it has ended."""
    answer.steps.filter(outcome="").update(outcome=StepOutcome.STOPPED, finished_at=now)


def show_abandoned(answers: Iterable[Message], *, now: datetime) -> None:
    """Make answers whose process died look closed, on the given objects only. For requests that must not write."""
    for answer in answers:
        if answer.is_abandoned(now):
            for name, value in _as_abandoned(answer, now).items():
                setattr(answer, name, value)


def _as_abandoned(answer: Message, now: datetime) -> dict[str, Any]:
    is_whole = answer.steps.filter(kind=StepKind.CHECK).exists()
    if answer.stop_requested and not is_whole:
        return {"status": MessageStatus.STOPPED, "finished_at": now}
    return as_interrupted(is_whole=is_whole, now=now)


def as_interrupted(*, is_whole: bool, now: datetime) -> dict[str, Any]:
    """Return the field values that close an answer whose process ended. ``is_whole``: only the check was unfinished."""
    if is_whole:
        return {"status": MessageStatus.DONE, "finished_at": now}
    return {
        "status": MessageStatus.FAILED,
        "error_code": "interrupted",
        "error": kept("The server stopped in the middle of this answer.", "Your message is saved."),
        "finished_at": now,
    }


CUT = "length"  # error_code of an answer that was cut off at its length limit
CUT_SENTENCE = kept("The answer reached the length limit of one reply.")
PLAN = "plan_waits"  # error_code of an answer whose plan waits for review
PLAN_SENTENCE = kept("The plan waits for you: change it or start the research.")
SAVED = kept("Your message is saved.")
SAVED_SO_FAR = kept("Your message and the text so far are saved.")
BROKEN = kept("Something went wrong here.")


def reason_of(error: ModelError, *, has_text: bool) -> str:
    """Return sentences that say what failed and what is saved. They are stored in English and translated on display."""
    parts = [str(error), _asked_to_wait(error.retry_after), SAVED_SO_FAR if has_text else SAVED]
    return " ".join(filter(None, parts))


def _asked_to_wait(seconds: float | None) -> str:
    if seconds is None or seconds < 1:
        return ""
    if seconds < 90:
        return kept("It asks to wait %s s.") % math.ceil(seconds)
    if (minutes := math.ceil(seconds / 60)) < 90:
        return kept("It asks to wait %s min.") % minutes
    return kept("It asks to wait for more than an hour.")


def advice_for(code: str) -> str:
    """Return what the user can do about a failure with this code, in the reader's language; "" if Retry is enough."""
    elsewhere = _("Or choose another model beside the title.")
    put_right = _("The person who set up the connection can fix and test it.")
    faults = ("model_refused", "model_not_found", "model_moved", "model_address_refused", "model_bad_request")
    advice = {
        CUT: _("Continue lets the model go on from there."),
        **dict.fromkeys(faults, f"{put_right} {elsewhere}"),
        "model_rate_limited": _("Retry after a while.") + f" {elsewhere}",
        "no_model": elsewhere,
        "model_unavailable": _("Retried without success. Try again shortly.") + f" {elsewhere}",
        "model_timeout": _("Retry when it is less busy.") + f" {elsewhere}",
        "model_cut": _("Retry regenerates the answer."),
        "model_bad_reply": _("Retry.") + f" {elsewhere}",
        "content_filtered": _("Rephrase it: the same message will most likely be filtered again.")
        + f" {elsewhere}",
        "model_context_overflow": _(
            "Less of the conversation has already been tried. Shorten your message, start a new chat, or choose a "
            "model with a larger context beside the title."
        ),
        "model_not_local": _(
            "Nothing was sent to it. Choose a model marked local beside the title; an owner of the workspace can "
            "change what may leave."
        ),
    }
    return advice.get(code, "")
