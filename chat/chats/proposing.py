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
from memoryhub.llm.reader import get_reader
from workspaces.models import User

logger = logging.getLogger(__name__)
PROPOSED_LENGTH = 300  # characters of an answer that are proposed where no model shortens it
_ASKS = re.compile("[?\uff1f\u061f][\\W_]*$|[\u5417\u5462\u304b][\u3002.!\uff01\\s]*$")
_MARKS = re.compile(r"^#+\s.*$|^\s*(?:[>*+-]+|\d+[.)])\s+|[*_`]+", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!\u3002\uff01])\s+|\n\s*\n|(?<=[\u3002\uff01])")


@dataclass(frozen=True)
class Proposal:
    """``synthesized``: a model wrote it."""

    content: str
    synthesized: bool = False


def is_question(message: Message) -> bool:
    """Whether somebody asks with it: stored as it is it would say nothing."""
    return message.role == MessageRole.USER and bool(_ASKS.search(message.content.strip()))


def proposal_for(message: Message, *, by: User) -> Proposal:
    """What of a message is worth remembering, to be edited. May wait for the model of the person's turns here.

    Where none is able enough: what a question says of who asks, else how its answer begins.
    """
    question, answer = _turn(message)
    said = [(each.role, each.content) for each in (question, answer) if each is not None and each.content]
    complete = completer(chosen_for_chat(message.chat, by), message.chat.workspace, by)
    if complete is not None:
        try:
            if statement := propose(complete, said):
                return Proposal(cut_at_word(statement), synthesized=True)
        except ModelError as error:
            logger.warning("No statement was proposed: %s", error.code)
    if message.role == MessageRole.USER:
        if found := extract_with_rules([("user", message.content)], get_reader()):
            return Proposal(found[0].text)
        if not is_question(message):
            return Proposal(cut_at_word(message.content))
    text = answer.content if answer is not None and answer.content else message.content
    first = _SENTENCE.split(_MARKS.sub("", text).strip() or text.strip(), maxsplit=1)[0]
    return Proposal(cut_at_word(" ".join(first.split()), PROPOSED_LENGTH))


def _turn(message: Message) -> tuple[Message | None, Message | None]:
    if message.role == MessageRole.ASSISTANT:
        return message.reply_to, message
    return message, message.answers.filter(superseded_by=None).order_by("pk").last()
