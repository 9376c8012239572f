"""Small things about text for a model: our prompts, what a text costs, and stored text made harmless."""

from __future__ import annotations

from functools import cache
from pathlib import Path

PROMPTS = Path(__file__).parent / "prompts"
BYTES_PER_TOKEN = (
    3.2  # of English, on the careful side; scripts of two and three bytes a letter cost more tokens
)


@cache
def prompt_text(name: str) -> str:
    return (PROMPTS / f"{name}.md").read_text().strip()


def tokens(text: str) -> int:
    """About how many tokens a text costs; no tokenizer is asked, since every model has another."""
    return int(len(text.encode(errors="replace")) / BYTES_PER_TOKEN) + 4


def cut_to(text: str, room: int) -> str:
    """The beginning of a text that costs at most ``room`` tokens."""
    if tokens(text) <= room:
        return text
    return text.encode(errors="replace")[: max(0, int((room - 4) * BYTES_PER_TOKEN))].decode(errors="ignore")


# Signs that nobody sees, by which text hides from its reader or shows in another order, and doubles of < and >.
_UNSEEN = [0x200B, 0x2060, 0xFEFF, *range(0x200E, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_UNSEEN += range(0xE0000, 0xE0080)
_ESCAPES: dict[int, str | None] = dict.fromkeys(_UNSEEN)
_ESCAPES |= (
    {ord("&"): "&amp;"}
    | {ord(c): "&lt;" for c in "<\uff1c\ufe64"}
    | {ord(c): "&gt;" for c in ">\uff1e\ufe65"}
)


def escape(text: str) -> str:
    """``<``, ``>`` and ``&`` escaped, nothing unseen, on one line: an item can be neither a tag nor a second item."""
    return " ".join(text.translate(_ESCAPES).split())


def one_line(text: str) -> str:
    """For people: no line breaks and nothing unseen. Not escaped, templates do that."""
    return " ".join(text.translate(dict.fromkeys(_UNSEEN)).split())
