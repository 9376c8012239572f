""" "Remember this": a memory from a message, or from a statement proposed for a question or an answer."""

import logging
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from chat.chats.personal_memories import workspace_for_saving
from chat.models import Chat, Message, MessageRole
from chat.modes.registry import chosen_for_chat
from chat.prompting.prompt_text import excerpt_around
from memories.judging.extraction.with_classifier import extract_with_rules
from memories.judging.extraction.with_language_model import Complete, propose, statement_of
from memories.models import Scope
from memories.writing.drafts import cut_at_word
from memories.writing.drafts_from_turns import completer
from memories.writing.extraction_jobs import rerun
from memories.writing.gate import Draft, Saved, save_memory
from memoryhub.errors import Invalid
from memoryhub.llm.errors import ModelError
from memoryhub.llm.registry import get_reader
from workspaces.access import role_in
from workspaces.models import User

logger = logging.getLogger(__name__)
PROPOSED_LENGTH = 300  # characters proposed from an answer if no model can shorten it
# Question marks, Chinese question particles, and Japanese verbs with a question particle. The verb is required, because
# a name may end with the same character.
_ASKS = re.compile(
    "[?\uff1f\u061f][\\W_]*$|[\u5417\u5462][\u3002.!\uff01\\s]*$"
    "|(?:\u3067\u3059|\u307e\u3059|\u3067\u3057\u3087\u3046|\u306e|\u3063\u305f|\u306a\u3044)\u304b[\u3002.!\uff01\\s]*$"
)
_ADDRESS = re.compile(r"\S+://\S+")
_PARTS = re.compile("(?<=[.!?])\\s+|(?<=[\u3002\uff01\uff1f\u061f])\\s*|\n+")
# A question tag of up to three words after a statement: "I'm allergic to peanuts, okay?"
_TAG = re.compile("[,;\u2013\u2014-]\\s*(?:[^\\s,;]+\\s*){1,3}[?\uff1f\u061f][\\W_]*$")
_EMPTY_WORDS = re.compile(
    r"[\W_]*(?:ok(?:ay|e)?|yes|no|sure|thanks?(?: you)?|great|fine|done)?[\W_]*", re.IGNORECASE
)
_MARKS = re.compile(r"^#+\s.*$|^\s*(?:[>*+-]+|\d+[.)])\s+|[*_`]+", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!\u3002\uff01])\s+|\n\s*\n|(?<=[\u3002\uff01])")


@dataclass(frozen=True)
class Proposal:
    """A statement proposed as a memory. ``synthesized`` is True if a model wrote it."""

    content: str
    synthesized: bool = False


def is_question(message: Message) -> bool:
    """Return whether the message consists of questions only and states nothing."""
    return message.role == MessageRole.USER and not statement_in(message.content)


def statement_in(text: str) -> str:
    """Return the part of a text that states something, verbatim, without questions at the end ("…, okay?"); else ""."""
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
    """Return whether a text has nothing to remember: only an acknowledgement such as "OK.", or punctuation."""
    return bool(_EMPTY_WORDS.fullmatch(text))


def proposal_for(message: Message, *, by: User, by_model: bool = True) -> Proposal:
    """Return a statement that the user may edit and save as a memory of this message.

    A model writes it, and the call blocks until then. If no model can, or ``by_model`` is False, it is taken from a
    person's message. If that states nothing, it is the first sentence of the answer.
    """
    question, answer = _turn(message, by)
    messages = [(each.role, each.content) for each in (question, answer) if each is not None and each.content]
    complete = _completer(message.chat, by, question, answer) if by_model else None
    if complete is not None:
        try:
            if statement := propose(complete, messages):
                return Proposal(cut_at_word(statement), synthesized=True)
        except ModelError as error:
            logger.warning("No statement was proposed: %s", error.code)
    if message.role == MessageRole.USER:
        if candidates := extract_with_rules([("user", message.content)], get_reader()):
            return Proposal(candidates[0].text)
        if statement := statement_in(message.content):
            return Proposal(cut_at_word(statement))
    text = answer.content if answer is not None and answer.content else message.content
    first = _SENTENCE.split(_MARKS.sub("", text).strip() or text.strip(), maxsplit=1)[0]
    return Proposal(cut_at_word(" ".join(first.split()), PROPOSED_LENGTH))


def _turn(message: Message, reader: User) -> tuple[Message | None, Message | None]:
    if message.role == MessageRole.ASSISTANT:
        return message.reply_to, message
    return message, message.answers.readable_by(reader).current().order_by("pk").last()


def remember_message(
    message: Message,
    *,
    by: User,
    now: datetime,
    category: str | None = None,
    content: str | None = None,
    synthesize: bool = False,
    confirmed: bool = False,
) -> Saved:
    """Create a memory from a message, or from ``content``, a text that the user derived from it.

    With ``synthesize`` a model first rewrites the text as one statement. If that fails, the text is stored as it is,
    and a job tries again. ``confirmed``: the user confirmed that a personal number may be stored. Raises Invalid if the
    message says nothing to remember ("OK.").
    """
    text = content
    if text is None:
        is_users = message.role == MessageRole.USER
        text = (statement_in(message.content) if is_users else "") or message.content
        if says_nothing(text):
            raise Invalid(
                _("There is nothing to remember in this message."),
                fields={"content": _("is required, as the message says nothing by itself")},
            )
    original = cut_at_word(text) if content is None else content
    written = statement_of(text, _completer(message.chat, by, message)) if synthesize else None
    draft = Draft(
        content=original if written is None else cut_at_word(written),
        **_kept_for(message.chat, by, rests_on=_rests_on(message, content, by)),
        **_written_by(message, content, by=by, now=now),
        category=category,
        source_chat_id=message.chat.public_id,
        source_message_id=message.public_id,
        source_excerpt=excerpt_around(message),
        source_details=_how_written(synthesize, written),
        confirmed=confirmed,
    )
    saved = save_memory(draft, by=by, now=now)
    if synthesize and written is None and saved.created:
        rerun(saved.memory, by=by, now=now)
    return saved


def remember_text(
    chat: Chat,
    content: str,
    *,
    by: User,
    now: datetime,
    category: str | None = None,
    synthesize: bool = False,
    confirmed: bool = False,
) -> Saved:
    """Create a memory from text that a person types in a chat. ``synthesize``: see ``remember_message``."""
    written = statement_of(content, _completer(chat, by)) if synthesize else None
    draft = Draft(
        content=content if written is None else cut_at_word(written),
        **_kept_for(chat, by),
        author=by,
        category=category,
        source_chat_id=chat.public_id,
        source_details=_how_written(synthesize, written),
        confirmed=confirmed,
    )
    return save_memory(draft, by=by, now=now)


def _rests_on(message: Message, content: str | None, by: User) -> Message | None:
    """Return the answer on whose personal or local-only data a memory of ``message`` may be based, or None.

    For an answer, this is ``message`` itself, even if it used no such data. For a question, it is the last current
    answer that used such data and that ``by`` may read, but None if ``content`` is None or quoted from the question.
    """
    if message.role != MessageRole.USER:
        return message
    if _is_quoted(message, content):
        return None
    return message.answers.readable_by(by).current().marked().order_by("pk").last()


def _is_quoted(message: Message, content: str | None) -> bool:
    """Return whether ``content`` is None or is part of the message."""
    return content is None or " ".join(content.split()) in " ".join(message.content.split())


def _kept_for(chat: Chat, by: User, *, rests_on: Message | None = None) -> dict[str, Any]:
    workspace, personal = workspace_for_saving(chat, by, answer=rests_on)
    return {
        "workspace": workspace,
        "scope": Scope.USER if personal else Scope.WORKSPACE,
        "owned_by": by if personal else None,
    }


def _written_by(message: Message, content: str | None, *, by: User, now: datetime) -> dict[str, Any]:
    """Return the fields of a memory of this message that name its author, editor and importer.

    The author is the message's, None if no longer a member, or ``by`` for an answer. ``by`` is the editor of another
    person's message unless ``content`` is quoted from it.
    """
    if message.role != MessageRole.USER or message.author_id == by.pk:
        return {"author": by}
    author = message.author
    if author is not None and role_in(author, message.chat.workspace) is None:
        author = None
    if not _is_quoted(message, content):
        return {"author": author, "edited_by": by, "edited_at": now}
    return {"author": author, "imported_by": message.imported_by, "imported_at": message.imported_at}


def _completer(chat: Chat, by: User, *messages: Message | None) -> Complete | None:
    """Return the function that has the chat's model rewrite a text, or None if it is too small or may not read one."""
    stays_here = any(each is not None and each.stays_here for each in messages)
    return completer(chosen_for_chat(chat, by), chat.workspace, by, stays_here=stays_here)


def _how_written(synthesize: bool, written: str | None) -> dict[str, bool]:
    """Return the memory's ``source_details``: whether a rewrite by a model was requested, and whether it succeeded."""
    return {"synthesize": True, "synthesized": written is not None} if synthesize else {}
