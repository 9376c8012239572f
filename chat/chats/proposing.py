"""A statement proposed for “Remember this”, where the message itself is none: a question, or an answer."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from chat.models import Message, MessageRole
from chat.turns.chosen_model import chosen_for_chat
from memories.judging.extraction.model import propose
from memories.judging.extraction.rules import extract_with_rules
from memories.writing.drafts import cut_at_word
from memories.writing.mined import completer
from memoryhub.llm.errors import ModelError
from memoryhub.llm.registry import get_reader
from workspaces.models import User

logger = logging.getLogger(__name__)
PROPOSED_LENGTH = 300  # characters of an answer that are proposed where no model shortens it
# The marks of questions, the particles that end them in Chinese, and verbs with such a particle in Japanese: a name may
# end with that sign, too.
_ASKS = re.compile(
    "[?\uff1f\u061f][\\W_]*$|[\u5417\u5462][\u3002.!\uff01\\s]*$"
    "|(?:\u3067\u3059|\u307e\u3059|\u3067\u3057\u3087\u3046|\u306e|\u3063\u305f|\u306a\u3044)\u304b[\u3002.!\uff01\\s]*$"
)
_ADDRESS = re.compile(r"\S+://\S+")
_PARTS = re.compile("(?<=[.!?])\\s+|(?<=[\u3002\uff01\uff1f\u061f])\\s*|\n+")
# A word or two that ask for agreement behind a statement: "I'm allergic to peanuts, okay?"
_TAG = re.compile("[,;\u2013\u2014-]\\s*(?:[^\\s,;]+\\s*){1,3}[?\uff1f\u061f][\\W_]*$")
_EMPTY_WORDS = re.compile(
    r"[\W_]*(?:ok(?:ay|e)?|yes|no|sure|thanks?(?: you)?|great|fine|done)?[\W_]*", re.IGNORECASE
)
_MARKS = re.compile(r"^#+\s.*$|^\s*(?:[>*+-]+|\d+[.)])\s+|[*_`]+", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!\u3002\uff01])\s+|\n\s*\n|(?<=[\u3002\uff01])")


@dataclass(frozen=True)
class Proposal:
    """``synthesized``: a model wrote it."""

    content: str
    synthesized: bool = False


def is_question(message: Message) -> bool:
    """Whether the message only asks: no part of it states anything."""
    return message.role == MessageRole.USER and not statement_in(message.content)


def statement_in(text: str) -> str:
    """The part of a text that states something, as it stands there; empty where all of it asks.

    A tag that asks for agreement ("…, okay?") goes, and questions at the end go.
    """
    parts = [part for part in _PARTS.split(text.strip()) if part.strip()]
    while parts and _ASKS.search(_ADDRESS.sub("", parts[-1]).strip()):
        tagged = _TAG.search(parts[-1])
        if tagged and len(parts[-1][: tagged.start()].split()) > 2:
            parts[-1] = parts[-1][: tagged.start()].strip()
            break
        parts.pop()
    if not parts:
        return ""
    start = text.index(parts[0].strip())
    end = text.rindex(parts[-1].strip()) + len(parts[-1].strip())
    return text[start:end]


def says_nothing(text: str) -> bool:
    """Whether there is nothing to remember in a text: "OK.", or signs alone."""
    return bool(_EMPTY_WORDS.fullmatch(text))


def proposal_for(message: Message, *, by: User, by_model: bool = True) -> Proposal:
    """What of a message is worth remembering, to be edited. May wait for the model of the person's turns here.

    Where none is able enough, or without ``by_model``: what a question says of who asks, else how its answer begins.
    """
    question, answer = _turn(message, by)
    said = [(each.role, each.content) for each in (question, answer) if each is not None and each.content]
    complete = None
    if by_model:
        stays_here = any(each is not None and each.stays_here for each in (question, answer))
        place = message.chat.workspace
        complete = completer(chosen_for_chat(message.chat, by), place, by, stays_here=stays_here)
    if complete is not None:
        try:
            if statement := propose(complete, said):
                return Proposal(cut_at_word(statement), synthesized=True)
        except ModelError as error:
            logger.warning("No statement was proposed: %s", error.code)
    if message.role == MessageRole.USER:
        if found := extract_with_rules([("user", message.content)], get_reader()):
            return Proposal(found[0].text)
        if statement := statement_in(message.content):
            return Proposal(cut_at_word(statement))
    text = answer.content if answer is not None and answer.content else message.content
    first = _SENTENCE.split(_MARKS.sub("", text).strip() or text.strip(), maxsplit=1)[0]
    return Proposal(cut_at_word(" ".join(first.split()), PROPOSED_LENGTH))


def _turn(message: Message, reader: User) -> tuple[Message | None, Message | None]:
    if message.role == MessageRole.ASSISTANT:
        return message.reply_to, message
    return message, message.answers.readable_by(reader).current().order_by("pk").last()
