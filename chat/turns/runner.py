"""Event loop and thread for turns, so that an answer continues after its request ends."""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

from chat.turns import turn

logger = logging.getLogger(__name__)

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_running: set[Future[None]] = set()


def start(answer_pk: int, attempt: int, user_pk: int) -> None:
    """Start writing an answer in this process. Callable from any thread; returns at once."""
    submit(turn.write_answer(answer_pk, attempt, user_pk))


def submit(work: Coroutine[Any, Any, None]) -> Future[None]:
    """Run the coroutine in the event loop for turns, independent of the request."""
    future = asyncio.run_coroutine_threadsafe(work, _ensure_loop())
    with _lock:
        _running.add(future)
    future.add_done_callback(_finished)
    return future


def wait_until_idle(timeout: float) -> bool:
    """Wait for the running turns. Return False if some still run after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while _running and time.monotonic() < deadline:
        time.sleep(0.01)
    return not _running


def _ensure_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="turns", daemon=True).start()
            atexit.register(_close_what_runs)
        return _loop


def _finished(future: Future[None]) -> None:
    with _lock:
        _running.discard(future)
    if not future.cancelled() and (error := future.exception()):
        logger.error("A turn ended in an error it did not handle: %s", type(error).__name__, exc_info=error)


def _close_what_runs() -> None:
    """Store the text of each unfinished answer as interrupted when the process exits."""

    turn.close_interrupted()
