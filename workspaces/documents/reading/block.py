"""Results of reading a file: blocks of text, why there are none, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Block(NamedTuple):
    text: str
    page: int = 0
    heading: str = ""


class Unreadable(Exception):
    """``args[0]`` is a key of ``process.SENTENCES``."""


Blocks = Iterator[Block]
READERS: dict[str, Callable[[bytes], Blocks]] = {}
"""By media type, filled by ``formats``: a reader of mails or office files reads what is attached by the others."""
left_out: Counter[str] = Counter()
"""How many "pages", "pictures" and "files" of this process's one file were not read (``process.LEFT_OUT``)."""
