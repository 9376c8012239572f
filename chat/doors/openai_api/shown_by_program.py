"""What a program put before the model that no person said: nothing of it is to become a memory unreviewed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from chat.doors.openai_api.program_request import OF_PROGRAM, Body, text_of
from chat.turns.program_turns import Shown
from memories.judging.extraction.provenance import words_to_keep

MOST_READ = 400_000  # characters of one request
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")  # as in JSON: what tools come to is often that


def shown_in(body: Body, messages: Sequence[Body]) -> Shown:
    """Of everything that is sent but the words of messages in the person's role: tools and their descriptions, outputs,
    instructions, schemas, and what a program marked as its own in a person's message. Answers of assistants as well: a
    program sends them, so it may have made them up.
    """
    words: set[str] = set()
    left = MOST_READ
    for text in _texts(body, messages):
        words |= words_to_keep(text[: max(left, 0)])
        if "\\" in text:
            words |= words_to_keep(ESCAPE.sub(_unescaped, text[: max(left, 0)]))
        left -= len(text)
    return Shown(words, left < 0 or any(_has_more(message.get("content")) for message in messages))


def _texts(body: Body, messages: Sequence[Body]) -> Iterator[str]:
    yield from _texts_in([value for name, value in body.items() if name not in {"model", "messages"}])
    for message in messages:
        if message["role"] == "user":
            yield from (marked[0] for marked in OF_PROGRAM.finditer(text_of(message)))
        own = {"role", "content"} if message["role"] == "user" else {"role"}
        yield from _texts_in([value for name, value in message.items() if name not in own])


def _texts_in(value: Any) -> Iterator[str]:
    """However deep they lie."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case list(values):
                waiting += values
            case dict(named):
                waiting += [*named, *named.values()]


def _has_more(content: Any) -> bool:
    """Pictures, files, sounds: nobody here knows what they say."""
    return isinstance(content, list) and any(
        not isinstance(part, dict) or part.get("type") != "text" for part in content
    )


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else " "
