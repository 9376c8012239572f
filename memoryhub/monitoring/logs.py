"""Log formatters, which add the request's id and keep people's texts out of the log."""

import json
import logging
import re
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from types import TracebackType
from typing import TypeAlias

from django.conf import settings

from memoryhub.monitoring import request_origin, tracing

MESSAGE_LENGTH = 200
KEYS = re.compile(r"((?:accounts/(?:password/reset/key|confirm-email)|/join|/shared)/)[^\s\"'<>]+")
ExcInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def without_keys(line: str) -> str:
    """Replace keys in URLs that reset a password, confirm an address, accept an invitation or open a shared chat."""
    return KEYS.sub(r"\1…", line)


class Formatter(logging.Formatter):
    """A formatter that logs only the first line of an error's message, since later lines may quote rows or requests."""

    def format(self, record: logging.LogRecord) -> str:
        request_id = request_origin.current.get().request_id
        record.request = f" [{request_id}]" if request_id else ""
        return without_keys(super().format(record))

    def formatException(self, ei: ExcInfo) -> str:
        return "\n".join(_lines_of(ei[1], set())) if ei[1] else ""


class RefusalFilter(logging.Filter):
    """A filter that removes the traceback from Django's log line of a response with status 4xx."""

    def filter(self, record: logging.LogRecord) -> bool:
        if 400 <= getattr(record, "status_code", 0) < 500:
            record.exc_info = record.exc_text = None
        return True


class JsonFormatter(Formatter):
    """A formatter that writes one JSON object per line, with request_id, trace_id, error and extra fields if known."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "service": settings.PROCESS_ROLE,
            "process": record.process,
            "message": record.getMessage(),
        }
        if request_id := request_origin.current.get().request_id:
            line["request_id"] = request_id
        if trace_id := tracing.trace_id():
            line["trace_id"] = trace_id
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return without_keys(json.dumps(line, ensure_ascii=False, default=str))


def _lines_of(error: BaseException, seen: set[int]) -> Iterator[str]:
    """Yield the lines of an error's traceback, after those of its causes, as Python prints them."""
    seen.add(id(error))
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None and id(before) not in seen:
        yield from _lines_of(before, seen)
        yield "\nwhich led to:\n"
    yield "Traceback (most recent call last):"
    yield "".join(traceback.format_tb(error.__traceback__)).rstrip()
    kind, message = type(error), str(error).strip().split("\n", 1)[0]
    yield f"{kind.__module__}.{kind.__qualname__}: {message[:MESSAGE_LENGTH]}"
