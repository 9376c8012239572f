"""Pause work on a connection of its own, do something else, and resume it."""

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection

PATIENCE = 10  # seconds after which a waiting test fails


class Pause:
    """A point to pause at: replace a function by ``pause.before(function)`` or ``pause.after(function)``."""

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
    """A function running on a connection of its own. ``result`` is its return value or exception."""

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
        """Return whether some connection waits for another's lock within a moment."""
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
    """Run ``act`` while ``work`` is paused. Return the result of ``work``."""
    running = Work(work)
    try:
        assert pause.reached.wait(PATIENCE), f"it never got there: {running.result!r}"
        act()
    finally:
        pause.goes_on.set()
    return running.end()
