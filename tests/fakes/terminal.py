"""A stream that says it is a terminal."""

from __future__ import annotations

from io import StringIO


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True
