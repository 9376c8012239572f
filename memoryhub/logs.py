"""How errors are written to the log: enough to find them, never what people said."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import TypeAlias

MESSAGE_LENGTH = 200
ExcInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class Formatter(logging.Formatter):
    """Of an error's message the first line, cut: below it databases quote rows, and endpoints whole requests."""

    def formatException(self, ei: ExcInfo) -> str:
        return "\n".join(_told(ei[1], set())) if ei[1] else ""


def _told(error: BaseException, seen: set[int]) -> Iterator[str]:
    """The error after those it came from, as Python tells them."""
    seen.add(id(error))
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None and id(before) not in seen:
        yield from _told(before, seen)
        yield "\nwhich led to:\n"
    yield "Traceback (most recent call last):"
    yield "".join(traceback.format_tb(error.__traceback__)).rstrip()
    kind, message = type(error), str(error).strip().split("\n", 1)[0]
    yield f"{kind.__module__}.{kind.__qualname__}: {message[:MESSAGE_LENGTH]}"
