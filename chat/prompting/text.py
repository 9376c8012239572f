"""Text of prompts: templates, token counts, and escaping of stored text."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from memoryhub.llm.metering import BYTES_PER_TOKEN
from memoryhub.llm.metering import estimated_tokens as tokens

__all__ = [
    "BYTES_PER_TOKEN",
    "cut_to",
    "escape",
    "escaped_lines",
    "loop_length",
    "one_line",
    "prompt_text",
    "tokens",
]

LOOP = (16, 300)  # characters
PROMPTS = Path(__file__).resolve().parent.parent / "prompts"


@cache
def prompt_text(name: str) -> str:
    return (PROMPTS / f"{name}.md").read_text().strip()


def loop_length(text: str) -> int:
    """Return how many characters at the end of a text are repetitions; 0 if the text does not loop.

    A loop is the same 16 to 300 characters, including a letter, three times in a row.
    """
    for size in range(LOOP[0], min(LOOP[1], len(text) // 3) + 1):
        tail = text[-size:]
        if text.endswith(tail * 3) and any(sign.isalpha() for sign in tail):
            return 2 * size
    return 0


def cut_to(text: str, room: int) -> str:
    """Return the beginning of a text, at most ``room`` tokens."""
    if tokens(text) <= room:
        return text
    return text.encode(errors="replace")[: max(0, int((room - 4) * BYTES_PER_TOKEN))].decode(errors="ignore")


# Invisible characters, which hide or reorder text, and characters that look like < and >.
_UNSEEN_RANGES = (
    (0x00, 0x08), (0x0E, 0x1B), (0x7F, 0x84), (0x86, 0x9F),  # control characters except white space
    (0xAD, 0xAD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200B), (0x200E, 0x200F),  # without the joiners between them, which Persian and emoji need
    (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0D), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
_UNSEEN = [sign for first, last in _UNSEEN_RANGES for sign in range(first, last + 1)]
_ESCAPES: dict[int, str | None] = dict.fromkeys(_UNSEEN)
_ESCAPES |= (
    {ord("&"): "&amp;"}
    | {ord(c): "&lt;" for c in "<\uff1c\ufe64\u2039\u27e8\u3008\u276e\u1438\u02c2\u2329"}
    | {ord(c): "&gt;" for c in ">\uff1e\ufe65\u203a\u27e9\u3009\u276f\u1433\u02c3\u232a"}
)


def escape(text: str) -> str:
    """Return the text on one line, without invisible characters and with ``<``, ``>`` and ``&`` escaped, so that an
    item can form neither a tag nor a second item.
    """
    return " ".join(text.translate(_ESCAPES).split())


def escaped_lines(text: str) -> str:
    """Return a text of several lines with each line escaped."""
    return "\n".join(filter(None, map(escape, text.splitlines())))


def one_line(text: str) -> str:
    """Return the text on one line, without invisible characters. Not escaped, because templates escape."""
    return " ".join(text.translate(dict.fromkeys(_UNSEEN)).split())
