"""Plain lists: a statement a line, or a JSON array of texts or of objects with a ``content``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from chat.exchange.archive import Part
from chat.exchange.lines import EMPTY, UNKNOWN, left_out
from chat.exchange.lines import NO_STATEMENT as HEADING
from chat.exchange.transcripts import Line
from memoryhub.errors import Invalid

LONGEST = 65_536  # bytes of a line of text; what is longer is refused as too long for a memory
TEXTS = {"content", "memory", "text"}  # names under which lists of other programs have a statement
BULLET = re.compile(r"^\s*(?:([-*•\u2013☐☑]|\(?\d{1,3}[.)]|\[[ xX]\])\s+)+")
NO_STATEMENT = re.compile(
    r"\s*(#{1,6}(\s.*)?|\*\*[^*]+\*\*:?|[^.!?]{1,80}:|[-*•\u2013]?\s*\(?(\d{0,3}|[IVXivx]{1,6})[.)]?|[-=_*~]+)\s*"
)
FIELDS = ("content", "summary", "key", "category", "tags", "importance", "pinned", "expires_at", "created_at")


def lines_in(file: Part) -> Iterator[str]:
    """The lines of a text file that are not blank. Raises Invalid for what is no text."""
    while raw := file.readline(LONGEST):
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            if error.end < len(raw) or len(raw) < LONGEST:
                raise Invalid(_("This file is not UTF-8 text.")) from None
            text = raw.decode(errors="ignore")
        while not raw.endswith(b"\n") and (raw := file.readline(LONGEST)):
            pass
        if text.strip():
            yield text


def line_of(statement: Any, *, importer: str) -> Line:
    """What is wrong with a statement is found where every line is checked."""
    given = statement if isinstance(statement, dict) else {"content": statement}
    text = next((given[name] for name in sorted(TEXTS) if given.get(name)), None)
    given = given if text is None else given | {"content": text}
    if statement is None or given.get("content") is None:
        return left_out(EMPTY if not given.get("content") and len(given) < 2 else UNKNOWN)
    if isinstance(given["content"], str):
        if not is_statement(given["content"]):
            return left_out(EMPTY if not given["content"].strip() else HEADING)
        given = given | {"content": without_bullet(given["content"])}
    fields = {name: given[name] for name in FIELDS if name in given}
    return {"type": "memory", "author": importer, "source_type": "import", **fields}


def is_statement(text: str) -> bool:
    """Not a heading, a number of a list or a rule."""
    return NO_STATEMENT.fullmatch(text) is None


def without_bullet(text: str) -> str:
    return BULLET.sub("", text).strip()
