"""Stop a piece of work in the middle, on a connection of its own, do something else, and let it go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection

PATIENCE = 10  # seconds after which a test fails that waits for nothing


class Pause:
    """Put it where the work is to stop: ``pause.before(function)`` or ``pause.after(function)`` in its place."""

    def __init__(self) -> None:
        self.reached, self.goes_on = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.goes_on.wait(PATIENCE), "nobody let it go on"

    def after(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def paused(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            self()
            return result

        return paused


class Work:
    """A function that runs on a connection of its own. ``result`` is what it returned or raised."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self.result: Any = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._function()
        except Exception as error:
            self.result = error
        finally:
            connection.close()

    def waits_for_a_lock(self) -> bool:
        """Whether, within a moment, some connection waits for another's lock."""
        with connection.cursor() as cursor:
            for _ in range(200):
                cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
                if cursor.fetchone()[0]:
                    return True
                self._thread.join(0.02)
        return False

    def end(self) -> Any:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "it did not end"
        return self.result


def meanwhile(pause: Pause, work: Callable[[], Any], act: Callable[[], Any]) -> Any:
    """What ``work`` comes to when ``act`` happens while it is paused."""
    running = Work(work)
    try:
        assert pause.reached.wait(PATIENCE), f"it never got there: {running.result!r}"
        act()
    finally:
        pause.goes_on.set()
    return running.end()
