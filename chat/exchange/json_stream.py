"""The elements of a JSON array of any length, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import ijson
from django.utils.translation import gettext as _

from memoryhub.errors import Invalid

DEPTH = 100
ITEM = 64 * 2**20  # characters and values of one element: a conversation is built whole
BUFFER = 65_536


class Readable(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


def items(file: Readable) -> Iterator[Any]:
    """Of an array its elements; objects that stand alone, or one after the other, as they are.

    Raises Invalid for what is no JSON, ends in the middle, or nests or weighs too much.
    """
    maker = _Maker()
    is_empty = True
    try:
        for event, value in ijson.basic_parse(file, use_float=True, multiple_values=True, buf_size=BUFFER):
            is_empty = False
            if maker.take(event, value):
                yield maker.made
                maker.clear()
            if maker.size > ITEM:
                raise Invalid(_("One entry of this file is too large."))
    except ijson.IncompleteJSONError:
        if is_empty:  # an empty part of an export
            return
        raise Invalid(_("This file is incomplete. Download it again.")) from None
    except (ijson.JSONError, ValueError, OverflowError):
        raise Invalid(_("This file is not valid JSON.")) from None


class _Maker:
    """Builds one element from its events, without recursion."""

    def __init__(self) -> None:
        self.in_array = False
        self.depth = 0
        self.clear()

    def clear(self) -> None:
        self.made: Any = None
        self.open: list[Any] = []
        self.keys: list[str] = []
        self.size = 0

    def take(self, event: str, value: Any) -> bool:
        """Whether this event completed an element."""
        self.size += len(value) if isinstance(value, str) else 8
        if event in ("start_map", "start_array"):
            return self._begin(event)
        if event in ("end_map", "end_array"):
            return self._end()
        if event == "map_key":
            self.keys[-1] = value
            return False
        if self.depth == 0 and value is None:
            return False
        if self.depth == 0:
            raise Invalid(_("This file is not valid JSON."))
        return self._add(value)

    def _begin(self, event: str) -> bool:
        self.depth += 1
        if self.depth > DEPTH:
            raise Invalid(_("This file is nested too deeply."))
        if self.depth == 1 and event == "start_array":
            self.in_array = True
            return False
        container: Any = {} if event == "start_map" else []
        if self.open:
            self._add(container)
        self.open.append(container)
        self.keys.append("")
        return False

    def _end(self) -> bool:
        self.depth -= 1
        if not self.open:  # of the array that holds the elements
            return False
        self.made = self.open.pop()
        self.keys.pop()
        return not self.open

    def _add(self, value: Any) -> bool:
        if not self.open:
            self.made = value
            return True
        if isinstance(self.open[-1], dict):
            self.open[-1][self.keys[-1]] = value
        else:
            self.open[-1].append(value)
        return False
