"""Event loops for blocking code, so that a call can be cancelled at any moment."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundLoop:
    """An event loop in a thread of its own, begun with the first call in each process, forked ones too."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        os.register_at_fork(after_in_child=self._forget)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True).start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """Block for the result. Raises TimeoutError after so many seconds, and gives the work up."""
        return self.submit(asyncio.wait_for(work, max(seconds, 0.0))).result()

    def _forget(self) -> None:
        """In a forked process: the thread is the parent's."""
        self._lock, self._loop = threading.Lock(), None


calls = BackgroundLoop("calls")
