"""What reading a file gives: blocks of text, or why there are none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Block(NamedTuple):
    text: str
    page: int = 0
    heading: str = ""


class Unreadable(Exception):
    """With the code of why: ``reader.SENTENCES`` says it."""


Blocks = Iterator[Block]
