"""Answers that this process is writing, and the threads in which their blocking work runs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from django.db import connections

from memoryhub.llm.metering import Meter
from memoryhub.monitoring import tracing
from workspaces.spending.bill import Account


class LiveAnswer:
    """An answer that this process is writing. It grows in the turns' thread and is readable from any thread; readers
    are woken in their own event loops.
    """

    def __init__(self, public_id: str, pk: int, attempt: int, text: str = "") -> None:
        """Start with ``text``, which is what a continued answer already has."""
        self.public_id, self.pk, self.attempt = public_id, pk, attempt
        self.stop_requested = threading.Event()
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._text = text
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

    @property
    def text(self) -> str:
        return self._text

    def append(self, text: str) -> None:
        with self._lock:
            self._text += text
            self.changes += 1
        self.wake()

    def retract(self, length: int) -> None:
        """Remove the last ``length`` characters, which turned out not to belong to the answer."""
        with self._lock:
            self._text = self._text[: len(self._text) - length]
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
        """Yield an event of the caller's loop that is set on every change. The reader clears it."""
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
    """Return the answer if this process is writing it, else None; then the database has the current text."""
    return _answers.get(public_id)


def all_live() -> list[LiveAnswer]:
    return list(_answers.values())


@contextmanager
def being_written(live: LiveAnswer) -> Iterator[LiveAnswer]:
    _answers[live.public_id] = live
    try:
        yield live
    finally:
        if _answers.get(live.public_id) is live:  # unless a retry has replaced it
            del _answers[live.public_id]
        live.wake()


P = ParamSpec("P")
T = TypeVar("T")
_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="turn")
_tool_threads = ThreadPoolExecutor(
    max_workers=8, thread_name_prefix="tool"
)  # separate, so that slow tools do not block turns


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking code (database, embedder) in a thread, and close the thread's database connections afterwards."""
    return await _run_in(_threads, function, *args, **kwargs)


async def in_tool_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run slow blocking code like ``in_thread``, in a separate thread pool."""
    return await _run_in(_tool_threads, function, *args, **kwargs)


async def _run_in(
    threads: ThreadPoolExecutor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    def call() -> T:
        try:
            return function(*args, **kwargs)
        finally:
            connections.close_all()

    return await asyncio.get_running_loop().run_in_executor(threads, tracing.carried(call))
