"""Line-by-line comparison of two versions of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile

AROUND = 3  # unchanged lines shown before and after a change
# Limit of differing lines to compare, because the cost of hostile texts grows without bound. Above it, all of them are
# shown as removed and added.
MOST_COMPARED = 800


@dataclass(frozen=True)
class Line:
    """A line of a comparison.

    ``sign``: "-" removed, "+" added, " " unchanged, "…" for omitted unchanged lines. Line numbers start at 1, and are
    None if the line is not in that version.
    """

    sign: str
    text: str
    before: int | None = None
    after: int | None = None

    @property
    def word(self) -> str:
        return {"-": "removed", "+": "added"}.get(self.sign, "same")


def compare(before: str, after: str) -> list[Line]:
    """Return the changed lines with some unchanged lines around each; empty if nothing changed."""
    old, new = _lines(before), _lines(after)
    begins = _alike(old, new)
    ends = _alike(old[begins:][::-1], new[begins:][::-1])
    changed_old, changed_new = old[begins : len(old) - ends], new[begins : len(new) - ends]
    if not changed_old and not changed_new:
        return []
    steps: Sequence[tuple[str, int, int, int, int]]
    if max(len(changed_old), len(changed_new)) > MOST_COMPARED:
        steps = [("replace", 0, len(changed_old), 0, len(changed_new))]
    else:
        steps = SequenceMatcher(None, changed_old, changed_new, autojunk=False).get_opcodes()
    lines = [Line(" ", text, at + 1, at + 1) for at, text in enumerate(old[:begins])]
    for step, low, high, from_, to in steps:
        if step == "equal":
            lines += [
                Line(" ", old[begins + at], begins + at + 1, begins + from_ + at - low + 1)
                for at in range(low, high)
            ]
            continue
        lines += [Line("-", changed_old[at], before=begins + at + 1) for at in range(low, high)]
        lines += [Line("+", changed_new[at], after=begins + at + 1) for at in range(from_, to)]
    shift = len(new) - len(old)
    lines += [Line(" ", old[at], at + 1, at + shift + 1) for at in range(len(old) - ends, len(old))]
    return _near_changes(lines)


def _lines(text: str) -> list[str]:
    """Split at line feeds only, so that texts that differ in another line separator are not shown as equal."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


def _alike(one: list[str], other: list[str]) -> int:
    """Return the number of equal lines at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _near_changes(lines: list[Line]) -> list[Line]:
    near: set[int] = set()
    for at, line in enumerate(lines):
        if line.sign != " ":
            near.update(range(at - AROUND, at + AROUND + 1))
    shown: list[Line] = []
    for at, line in enumerate(lines):
        if at in near:
            shown.append(line)
        elif not shown or shown[-1].sign != "…":
            shown.append(Line("…", ""))
    return shown
