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
    """Grows in the turn engine's thread and is read from any; readers are woken in their own loops."""

    def __init__(self, public_id: str, pk: int, attempt: int, text: str = "") -> None:
        """``text``: what an answer that goes on has already."""
        self.public_id, self.pk, self.attempt = public_id, pk, attempt
        self.stop_requested = threading.Event()
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._text = text
        self._events: dict[str, tuple[str, dict[str, Any]]] = {}
        self.is_whole = False  # what is still done about it is not writing: a stop takes nothing away
        self.model_is_local = False  # until it is known: what it is shown leaves this machine
        self.was_too_long = (
            False  # for the model's context, so that it was written with less of the conversation
        )
        self.goes_on = bool(text)  # what comes next belongs to the last word so far
        self.was_cut = False  # at the model's limit for one answer
        self.waits = False  # for a person to look at its plan
        self.meter = Meter()  # of what its model takes, and on whom that is put once it is known
        self.account: Account | None = None
        self.retracted = 0  # counts up when text turns out to be none of the answer
        self.changes = 0  # counts up with everything a reader may want to hear of
        self._readers: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    @property
    def took(self) -> float:
        """Seconds that it has been written for."""
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
        """Remove the last characters, which were no part of the answer."""
        with self._lock:
            self._text = self._text[: len(self._text) - length]
            self.retracted += 1
            self.changes += 1
        self.wake()

    @property
    def events(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Return the events beside the text by id: kind and current data, in order."""
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
        """Yield an event of the caller's loop, set whenever there is more; the reader clears it."""
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
    """Return the answer this process is writing, or None: then the database has what there is."""
    return _answers.get(public_id)


def all_live() -> list[LiveAnswer]:
    return list(_answers.values())


@contextmanager
def being_written(live: LiveAnswer) -> Iterator[LiveAnswer]:
    _answers[live.public_id] = live
    try:
        yield live
    finally:
        if _answers.get(live.public_id) is live:  # a retry at that moment has put its own there
            del _answers[live.public_id]
        live.wake()


P = ParamSpec("P")
T = TypeVar("T")
_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="turn")
_tool_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="tool")  # a slow tool holds up no turn


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking code (the database, the embedder) in a thread that gives its connection back afterwards."""
    return await _run_in(_threads, function, *args, **kwargs)


async def in_tool_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run the function like ``in_thread``, in separate threads for slow work."""
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
