"""What a reasoning model writes before its answer, told from the answer: ``<think>`` text, whole or as it streams.

Only what a reply begins with is thought; an answer may speak of such tags. Templates that open the tag in the prompt
leave a reply that begins inside it: its end, alone on a line, then says what all before it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TAGS = ("think", "thinking", "thought", "reasoning")
_NAMES = "|".join(TAGS)
_OPENED = re.compile(rf"<(?:{_NAMES})>", re.IGNORECASE)
_OPENS = re.compile(rf"\s*<(?:{_NAMES})>\s*", re.IGNORECASE)
_CLOSES = re.compile(rf"\s*</(?:{_NAMES})>\s*", re.IGNORECASE)
_CLOSES_ALONE = re.compile(rf"^[ \t]*</(?:{_NAMES})>[ \t]*(?:\n\s*|\Z)", re.IGNORECASE | re.MULTILINE)
_LONGEST = max(map(len, TAGS)) + len("</>")
_LINE = 200  # characters of a line that are looked at: one with a tag alone is shorter


def without_thoughts(text: str) -> str:
    """The answer alone; empty where the thought never ended."""
    if opened := _OPENS.match(text):
        closed = _CLOSES.search(text, opened.end())
        return text[closed.end() :] if closed else ""
    closed = _CLOSES_ALONE.search(text)
    return text[closed.end() :] if closed and not _OPENED.search(text, 0, closed.start()) else text


@dataclass(frozen=True)
class Piece:
    """``retracts``: all that was given out as answer so far is this ``thought``."""

    thought: str = ""
    answer: str = ""
    retracts: bool = False


class ThoughtSplitter:
    """Reads a reply as it comes. Holds back only what may become a tag at the beginning, or the end of a thought."""

    def __init__(self) -> None:
        self._held = ""
        self._state = "start"  # then "thought", "gap" after one, and "plain"; "open" where nothing opened it
        self._said: list[str] = []  # while "open"
        self._tail = ""  # of that, from the break before its last line on

    def feed(self, text: str) -> Piece:
        """What is certain by now."""
        text, self._held = self._held + text, ""
        if self._state == "start":
            if opened := _OPENS.match(text):
                self._state, text = "thought", text[opened.end() :]
            elif _may_be(text, "<"):
                self._held = text
                return Piece()
            else:
                self._state = "open"
        if self._state == "thought":
            return self._thinking(text)
        if self._state == "gap":
            text = text.lstrip()
            self._state = "plain" if text else "gap"
        return self._open(text) if self._state == "open" else Piece(answer=text)

    def end(self) -> Piece:
        """What was held back, now that nothing more comes."""
        held, self._held = self._held, ""
        if self._state == "thought":
            return Piece(thought=held)
        return self._open(held, is_end=True) if self._state == "open" else Piece(answer=held)

    def _thinking(self, text: str) -> Piece:
        if closed := _CLOSES.search(text):
            rest = text[closed.end() :]
            self._state = "plain" if rest else "gap"
            return Piece(text[: closed.start()], rest)
        at = text.rfind("<", max(0, len(text) - _LONGEST))
        at = at if at >= 0 and _may_be(text[at:], "</") else len(text)
        at = len(text[:at].rstrip())  # blanks before an end belong to it
        self._held = text[at:]
        return Piece(text[:at])

    def _open(self, text: str, *, is_end: bool = False) -> Piece:
        self._said.append(text)
        self._tail += text
        if _OPENED.search(self._tail):
            self._state = "plain"
            return Piece(answer=text)
        closed = _CLOSES_ALONE.search(self._tail) if "\n" in self._tail or is_end else None
        if closed and (is_end or "\n" in closed[0]):
            said, rest = "".join(self._said), self._tail[closed.end() :]
            self._state = "plain" if rest else "gap"
            return Piece(said[: len(said) - len(self._tail) + closed.start()].rstrip(), rest, retracts=True)
        last = self._tail.rfind("\n") + 1
        tail = self._tail[max(0, last - 1) :]  # from the break on, so that ^ holds
        self._tail = tail if len(tail) <= _LINE else "." + tail[-_LINE:]
        return Piece(answer=text)


def _may_be(text: str, opening: str) -> bool:
    """Whether it is the beginning of a tag; blanks alone may be followed by one."""
    small = text.lstrip().lower()
    return any(f"{opening}{tag}>".startswith(small) for tag in TAGS)
