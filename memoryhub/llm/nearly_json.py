"""JSON that a model wrote nearly right: a trailing comma, single quotes, a list that was cut.

Only what has its own end is read. Of a list that was cut that is its whole entries; half a statement could say
something else.
"""

from __future__ import annotations

import json
import re
from typing import Any

import json_repair

MOST_REPAIRED = 20  # lists and objects of one reply
_LONGEST = 4_000  # characters of an object that is repaired
_MOST_ENTRIES = 50
_DEEPEST = 6
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},"]', re.DOTALL)
_NAME = re.compile(r"\w{1,40}")


def repaired_object(
    text: str, start: int, *, longest: int = _LONGEST, deepest: int = _DEEPEST
) -> tuple[dict[str, Any], int] | None:
    """The object that begins here, and where it ends; None where it has no end or is no object."""
    depth = 0
    for token in _TOKEN.finditer(text, start, start + longest):
        sign = token[0]
        depth += (sign in "{[") - (sign in "}]")
        if sign == '"' or depth > deepest:
            return None
        if depth == 0:
            value = _repaired(text[start : token.end()])
            return (value, token.end()) if isinstance(value, dict) else None
    return None


def whole_entries(text: str, start: int) -> tuple[list[Any], int | None]:
    """The objects or strings of the list that begins here which have an end, and where the list ends, if it does."""
    entries: list[Any] = []
    waiting: str | None = None  # a string is whole once something follows it
    position = start + 1
    while len(entries) < _MOST_ENTRIES and (token := _TOKEN.search(text, position, position + _LONGEST)):
        sign, position = token[0], token.end()
        if sign in "],":
            entries += [] if waiting is None else [json_or_none(waiting)]
            waiting = None
            if sign == "]":
                return entries, position
        elif sign == "{" and waiting is None and (found := repaired_object(text, token.start())):
            value, position = found
            entries.append(value)
        elif len(sign) > 1 and waiting is None:
            waiting = sign
        else:
            break
    return entries, None


def json_or_none(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _repaired(text: str) -> Any:
    try:
        value = json_repair.loads(text, strict=True)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not all(map(_NAME.fullmatch, value)):
        return None  # a name that is none is a piece of a text whose quotes were misread
    last = next(reversed(value.values()), None)
    is_open = isinstance(last, str) and " " in last and text[:-1].rstrip(" \r\n\t,")[-1] not in "\"'”"
    return None if is_open else value
