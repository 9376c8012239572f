"""Progress of a command: redrawn on one line of a terminal, or as a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.core.management.base import OutputWrapper

EVERY = 10.0  # seconds between two lines where they stay


class Progress:
    """A progress display. ``clock``: returns seconds from any start."""

    def __init__(self, out: OutputWrapper, clock: Callable[[], float] = time.monotonic) -> None:
        self.out, self._clock = out, clock
        self._shown = ""  # what `end` still has to write, or to end the line of
        self._written_at = clock()

    def show(self, text: str) -> None:
        """Show ``text`` in place of the previous text."""
        self._shown = text
        if self.out.isatty():
            self.out.write(f"\r\033[K{text}", ending="")
            self.out.flush()
        elif self._clock() - self._written_at >= EVERY:
            self.end()

    def clear(self) -> None:
        """Remove the shown text: what is written next says more."""
        if self._shown and self.out.isatty():
            self.out.write("\r\033[K", ending="")
            self.out.flush()
        self._shown = ""

    def end(self) -> None:
        """Keep the last text as a line of its own, before other output. Idempotent."""
        if self._shown:
            self.out.write("" if self.out.isatty() else self._shown)
        self._shown, self._written_at = "", self._clock()
