"""What the conversations of other programs become: private chats of the importer, and what they say of themselves."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from chat.exchange.lines import NO_MESSAGES, left_out
from chat.exchange.local_ids import derived_id
from chat.models import MESSAGE_LENGTH, TITLE_LENGTH
from memories.judging.extraction.candidates import Candidate
from memories.judging.extraction.rules import extract_from_each
from memories.writing.drafts import UNSTORABLE, cut_at_word
from memoryhub.llm.registry import get_reader
from workspaces.models import User

Line = dict[str, Any]


@dataclass
class Said:
    """One message of another program's conversation."""

    id: str
    is_user: bool
    text: str
    at: datetime | None = None
    model: str = ""
    pasted: str = ""  # what came with it, and is not the person's own words


@dataclass
class Transcript:
    id: str
    title: str
    said: list[Said]
    began_at: datetime | None = None
    active_at: datetime | None = None


def lines_of(transcript: Transcript, *, source: str, importer: User) -> Iterator[Line]:
    """The chat and its messages."""
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
    """Return what the person wrote, without what was pasted, by the ids of the messages."""
    return {
        derived_id("msg", importer.public_id, source, transcript.id, each.id): each.text
        for each in transcript.said
        if each.is_user and each.text
    }


def statements_in(messages: Sequence[tuple[str, Line, str]]) -> list[list[Line]]:
    """Return what the rules of extraction find in each message, given by source, line and the person's own words.

    They become personal memories, as everything does that is noticed in a private chat. All are read together, some
    50 ms each. Raises EmbedderError.
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


def text_of(value: Any) -> str:
    return UNSTORABLE.sub("", value).replace("\r\n", "\n").strip() if isinstance(value, str) else ""


def moment_of(value: Any) -> datetime | None:
    """Seconds since 1970, or ISO 8601; None for what is neither."""
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
    """From the first to ``leaf``: one branch of a tree of messages, whatever loops it may have.

    Begins after the last one that is ``known``.
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
