"""Conversion of other programs' conversations and lists of statements to lines of an import."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _

from chat.exchange.archive import Part
from chat.exchange.lines import EMPTY, NO_MESSAGES, UNKNOWN, derived_id, left_out
from chat.exchange.lines import NO_STATEMENT as HEADING
from chat.models import MESSAGE_LENGTH, TITLE_LENGTH
from memories.judging.extraction.candidates import Candidate
from memories.judging.extraction.rules import extract_from_each
from memories.writing.drafts import UNSTORABLE, cut_at_word
from memoryhub.errors import Invalid
from memoryhub.llm.registry import get_reader
from workspaces.models import User

Line = dict[str, Any]


@dataclass
class Said:
    """A message of another program's conversation."""

    id: str
    is_user: bool
    text: str
    at: datetime | None = None
    model: str = ""
    pasted: str = ""  # pasted or attached text, which the user did not write


@dataclass
class Transcript:
    id: str
    title: str
    said: list[Said]
    began_at: datetime | None = None
    active_at: datetime | None = None


def lines_of(transcript: Transcript, *, source: str, importer: User) -> Iterator[Line]:
    """Yield the lines of a chat and its messages."""
    said = [each for each in transcript.said if each.text or each.pasted]
    if not said:
        yield left_out(NO_MESSAGES, of="chat")
        return
    mine, name = importer.public_id, importer.get_username()
    chat = derived_id("chat", mine, source, transcript.id)
    began_at = transcript.began_at or next((each.at for each in said if each.at), None)
    last = next((each.at for each in reversed(said) if each.at), None)
    yield {
        "type": "chat",
        "id": chat,
        "created_by": name,
        "title": cut_at_word(" ".join(transcript.title.split()), TITLE_LENGTH),
        "is_private": True,
        "created_at": _iso(began_at),
        "active_at": _iso(last or transcript.active_at or began_at),
    }
    at, question = began_at, None
    for each in said:
        at = each.at or at
        message = derived_id("msg", mine, source, transcript.id, each.id)
        content = "\n\n".join(filter(None, (each.text, each.pasted)))
        yield {
            "type": "message",
            "id": message,
            "chat": chat,
            "role": "user" if each.is_user else "assistant",
            "author": name if each.is_user else None,
            "content": cut_at_word(content, MESSAGE_LENGTH) if each.is_user else content,
            "reply_to": None if each.is_user else question,
            "model": each.model[:200],
            "created_at": _iso(at),
            "finished_at": _iso(at),
        }
        if each.is_user:
            question = message


def own_words(transcript: Transcript, *, source: str, importer: User) -> dict[str, str]:
    """Return the text that the user wrote in each message, without pasted text, by message id."""
    return {
        derived_id("msg", importer.public_id, source, transcript.id, each.id): each.text
        for each in transcript.said
        if each.is_user and each.text
    }


def statements_in(messages: Sequence[tuple[str, Line, str]]) -> list[list[Line]]:
    """Return the statements that the extraction rules find in each message, given as (source, line, user's own words).

    They become personal memories, as in a private chat. All messages are embedded together, at about 50 ms each. Raises
    EmbedderError if the embedder fails.
    """
    found = extract_from_each([text for _, _, text in messages], get_reader())
    return [
        [_memory(candidate, number, message, source) for number, candidate in enumerate(candidates)]
        for (source, message, _), candidates in zip(messages, found, strict=True)
    ]


def _memory(candidate: Candidate, number: int, message: Line, source: str) -> Line:
    return {
        "type": "memory",
        "id": derived_id("mem", message["id"], str(number)),
        "scope": "user",
        "content": cut_at_word(candidate.text),
        "category": candidate.kind,
        "importance": candidate.importance,
        "source_type": "import",
        "source_chat_id": message["chat"],
        "source_message_id": message["id"],
        "source_details": {"from": source, "extractor": "rules", **candidate.details},
        "created_at": message["created_at"],
    }


def text_of(value: object) -> str:
    return UNSTORABLE.sub("", value).replace("\r\n", "\n").strip() if isinstance(value, str) else ""


def moment_of(value: object) -> datetime | None:
    """Parse seconds since 1970 or ISO 8601. Return None for any other value."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            moment = datetime.fromisoformat(value.strip())
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def path_to(leaf: str, parents: dict[str, str], *, known: Container[str] = ()) -> list[str]:
    """Return the branch of a tree of messages from the first to ``leaf``. Stops at loops.

    The branch starts after the last message that is ``known``.
    """
    path: list[str] = []
    seen: set[str] = set()
    at = leaf
    while at in parents and at not in seen and at not in known:
        seen.add(at)
        path.append(at)
        at = parents[at]
    return path[::-1]


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


LONGEST = 65_536  # limit in bytes of a line of text; longer lines are cut, and then refused as too long for a memory
TEXTS = {"content", "memory", "text"}  # fields that hold the statement in other programs' lists
BULLET = re.compile(r"^\s*(?:([-*•\u2013☐☑]|\(?\d{1,3}[.)]|\[[ xX]\])\s+)+")
NO_STATEMENT = re.compile(
    r"\s*(#{1,6}(\s.*)?|\*\*[^*]+\*\*:?|[^.!?]{1,80}:|[-*•\u2013]?\s*\(?(\d{0,3}|[IVXivx]{1,6})[.)]?|[-=_*~]+)\s*"
)
FIELDS = ("content", "summary", "key", "category", "tags", "importance", "pinned", "expires_at", "created_at")


def lines_in(file: Part) -> Iterator[str]:
    """Yield the non-blank lines of a text file. Raises Invalid if the file is not UTF-8."""
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
    """Return the line of a statement. It is not validated here but with all other lines."""
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
    """Return whether the line is a statement, not a heading, list number or horizontal rule."""
    return NO_STATEMENT.fullmatch(text) is None


def without_bullet(text: str) -> str:
    return BULLET.sub("", text).strip()
