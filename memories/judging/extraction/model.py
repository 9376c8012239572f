"""Extraction and rewriting by a language model. The model is a plain function here: messages in, text out."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from memories.judging.extraction.candidates import (
    MAX_WORDS,
    Candidate,
    parse_candidates,
    render_conversation,
)

Complete = Callable[[list[dict[str, str]]], str]

_PROMPTS = Path(__file__).resolve().parents[2] / "prompts"
_MAX_SYNTHESIZED = 12_000  # characters of a message that is rewritten
_FENCE = re.compile(r"^```\w*\s*|\s*```$")
_LABEL = re.compile(
    r"^(?:statement|memory|rewritten(?: statement)?|answer|output|result)\s*:\s*", re.IGNORECASE
)
_REFUSAL = re.compile(
    r"^(?:i['\u2019]?m sorry|i am sorry|sorry|as an ai|i can(?:no|['\u2019])t|i am unable|i['\u2019]?m "
    r"unable|here is|here['\u2019]s|sure|"
    r"certainly|none|null|n/a|no statement)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w{3,}")


def extract_with_model(complete: Complete, messages: Sequence[tuple[str, str]]) -> list[Candidate]:
    """Ask a model for what the user said about themselves in the (role, text) messages.

    A reply that is not the JSON asked for gives an empty list. What `complete` raises is the caller's to handle.
    """
    if not any(role == "user" and text.strip() for role, text in messages):
        return []
    reply = complete(
        [
            {"role": "system", "content": _prompt("extract")},
            {"role": "user", "content": render_conversation(messages)},
        ]
    )
    return parse_candidates(reply)


def distil_with_model(complete: Complete, text: str) -> list[Candidate]:
    """The same of a text that nobody said: a summary, or what a tool or long thinking came to."""
    if not text.strip():
        return []
    said = render_conversation([("assistant", text)])
    return parse_candidates(
        complete([{"role": "system", "content": _prompt("distil")}, {"role": "user", "content": said}])
    )


def synthesize(complete: Complete, text: str) -> str:
    """Rewrite one message into one statement of at most 25 words; the message itself where the model fails to.

    An answer is not taken when it is empty, too long, has several lines, is a refusal or a preamble, or shares no word
    with the message.
    """
    if not text.strip():
        return text
    reply = complete(
        [
            {"role": "system", "content": _prompt("synthesize")},
            {"role": "user", "content": render_conversation([("user", text[:_MAX_SYNTHESIZED])])},
        ]
    )
    statement = _LABEL.sub("", _FENCE.sub("", reply.strip()).strip()).strip().strip("\"'“”").strip()
    absurd = (
        not statement
        or "\n" in statement
        or len(statement.split()) > MAX_WORDS
        or statement[0] in "{[<"
        or _REFUSAL.match(statement)
        or not set(_WORD.findall(statement.casefold())) & set(_WORD.findall(text.casefold()))
    )
    return text if absurd else statement


@functools.cache
def _prompt(name: str) -> str:
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()
