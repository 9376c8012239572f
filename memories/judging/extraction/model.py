"""Extraction of statements by a language model, and rewriting of a text into one statement.

The model is passed as a function from messages to text.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from memories.judging.extraction.candidates import (
    MAX_CONVERSATION,
    MAX_WORDS,
    Candidate,
    one_line,
    parse_candidates,
    render_conversation,
)
from memories.judging.extraction.courtesy import says_nothing
from memories.judging.extraction.grounding import names_in
from memoryhub.llm.errors import ModelError

Complete = Callable[[list[dict[str, str]]], str]

_PROMPTS = Path(__file__).resolve().parents[2] / "prompts"
MAX_EARLIER = 4_000  # characters of the messages before a turn in the prompt
_MAX_SYNTHESIZED = 12_000  # characters of a message to rewrite
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


@dataclass(frozen=True)
class Around:
    """The context of a turn: the messages before it, its time and author, and the memories already saved from it."""

    earlier: Sequence[tuple[str, str]] = ()
    said_on: date | None = None
    speaker: str = ""
    saved: Sequence[str] = ()


def extract_with_model(
    complete: Complete,
    messages: Sequence[tuple[str, str]],
    around: Around | None = None,
    unread: Callable[[], None] | None = None,
) -> list[Candidate]:
    """Ask a model what the user states about themselves in the (role, text) messages.

    If the reply is not the required JSON, the result is empty and ``unread`` is called. Statements copied from the
    prompt's examples are dropped. Messages that are only courtesies are not sent. Exceptions of ``complete`` propagate.
    """
    around = around or Around()
    said = [text for role, text in messages if role == "user" and text.strip()]
    if all(says_nothing(text, around.earlier) for text in said):
        return []
    prompt = _prompt("extract")
    reply = complete(
        [{"role": "system", "content": prompt}, {"role": "user", "content": _asked(messages, around)}]
    )
    known = "\n".join(text for _role, text in (*around.earlier, *messages))
    return [found for found in parse_candidates(reply, unread) if not _is_example(found.text, prompt, known)]


def _asked(messages: Sequence[tuple[str, str]], around: Around) -> str:
    """Return the prompt's data: the context of the turn, shortened to the room that the turn leaves, and the turn."""
    turn = render_conversation(messages)
    parts = [f"Today is {around.said_on:%A}, {around.said_on.isoformat()}."] if around.said_on else []
    if around.speaker:
        parts.append(f"The user is called {one_line(around.speaker)}.")
    room = min(MAX_EARLIER, MAX_CONVERSATION - len(turn))
    if around.earlier and room > 100:
        parts.append(render_conversation(around.earlier, room, tag="earlier"))
    if around.saved:
        lines = "\n".join(f"- {one_line(text)}" for text in around.saved)
        parts.append(f"<saved>\n{lines}\n</saved>")
    return "\n".join([*parts, turn])


def _is_example(text: str, prompt: str, said: str) -> bool:
    """Return whether a statement has a name from the prompt's examples that nobody mentioned in the conversation."""
    copied = names_in(text) & _names_of_examples(prompt)
    return bool(copied and copied - {word.casefold() for word in _WORD.findall(said)})


@functools.cache
def _names_of_examples(prompt: str) -> frozenset[str]:
    return frozenset(names_in(prompt[prompt.index("Examples") :]))


def distil_with_model(
    complete: Complete, text: str, unread: Callable[[], None] | None = None
) -> list[Candidate]:
    """Ask a model for the statements of a text that no person said: a summary, a tool result or long thinking.

    Exceptions of ``complete`` propagate.
    """
    if not text.strip():
        return []
    said = render_conversation([("assistant", text)])
    reply = complete([{"role": "system", "content": _prompt("distil")}, {"role": "user", "content": said}])
    return parse_candidates(reply, unread)


def synthesize(complete: Complete, text: str) -> str:
    """Rewrite one message into one statement of at most 25 words, or return the message if the model fails to.

    A reply is rejected if it is empty, too long, has several lines, is a refusal or a preamble, or shares no word with
    the message.
    """
    return _rewritten(complete, "synthesize", [("user", text[:_MAX_SYNTHESIZED])]) or text


def propose(complete: Complete, messages: Sequence[tuple[str, str]]) -> str:
    """Return one statement to remember from a question and its answer, given as (role, text).

    Return "" if the model gives no usable statement.
    """
    return _rewritten(complete, "propose", messages)


def _rewritten(complete: Complete, prompt: str, messages: Sequence[tuple[str, str]]) -> str:
    text = "\n".join(text for _role, text in messages)
    if not text.strip():
        return ""
    asked = render_conversation(messages)
    reply = complete([{"role": "system", "content": _prompt(prompt)}, {"role": "user", "content": asked}])
    statement = _LABEL.sub("", _FENCE.sub("", reply.strip()).strip()).strip().strip("\"'“”").strip()
    absurd = (
        not statement
        or "\n" in statement
        or len(statement.split()) > MAX_WORDS
        or statement[0] in "{[<"
        or _REFUSAL.match(statement)
        or not set(_WORD.findall(statement.casefold())) & set(_WORD.findall(text.casefold()))
    )
    return "" if absurd else statement


@functools.cache
def _prompt(name: str) -> str:
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()


logger = logging.getLogger(__name__)


def statement_of(text: str, complete: Complete | None) -> str | None:
    """Return the text rewritten by the model into one statement, or None if it should be stored as it is.

    None if no model is able enough, or the model fails or returns nothing usable. May wait for the model.
    """
    if complete is None:
        return None
    try:
        statement = synthesize(complete, text)
    except ModelError as error:
        logger.warning("A text to remember was not rewritten: %s", error.code)
        return None
    return None if statement == text else statement
