"""Management commands, and the progress that they show: one line redrawn on a terminal, else one every ten seconds."""

import time
from collections.abc import Callable

from django.core.management.base import OutputWrapper

EVERY = 10.0  # seconds between two lines if the output is no terminal


class Progress:
    """A progress display. ``clock`` returns seconds since any fixed time."""

    def __init__(self, out: OutputWrapper, clock: Callable[[], float] = time.monotonic) -> None:
        self.out, self._clock = out, clock
        self._shown = ""  # text that `end` must write or terminate with a newline
        self._written_at = clock()

    def show(self, text: str) -> None:
        """Replace the shown text."""
        self._shown = text
        if self.out.isatty():
            self.out.write(f"\r\033[K{text}", ending="")
            self.out.flush()
        elif self._clock() - self._written_at >= EVERY:
            self.end()

    def clear(self) -> None:
        """Remove the shown text."""
        if self._shown and self.out.isatty():
            self.out.write("\r\033[K", ending="")
            self.out.flush()
        self._shown = ""

    def end(self) -> None:
        """End the line, so that the last text stays above further output. Idempotent."""
        if self._shown:
            self.out.write("" if self.out.isatty() else self._shown)
        self._shown, self._written_at = "", self._clock()
