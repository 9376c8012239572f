"""Memory for conversations of client programs: recall before the question, and extraction from the turn."""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext_lazy as _

from chat.models import PassingTurn
from chat.programs.openai_api.request import OF_PROGRAM, Asked, Body, own_words, parts_of_body, text_of
from chat.prompting.context import (
    RECALLED_SHARE,
    Found,
    agent_text,
    find_for_prompt,
    prompt_token_limit,
    recalled_block,
)
from chat.turns import client_turns
from chat.turns.client_turns import Shown
from memories.access import memory_on, vetoed
from memories.judging.extraction.speaker import words_to_keep
from memories.recalling.ranked_search import Recalled
from memories.recalling.recall import NO_ROOM, prefetch_query_vector
from memoryhub.database.queries import PreparedQuery
from memoryhub.llm.base import INSERTED
from memoryhub.llm.errors import ModelError
from workspaces.data_policy import Caller
from workspaces.model_choice import Chosen
from workspaces.models import KeyScope, Membership, Role, User
from workspaces.models.language_models import Connection

logger = logging.getLogger(__name__)
FAILED = "memory could not be searched"
# Reasons why an answer used no memory, or why nothing is extracted from a turn.
REASONS = {
    "off_in_request": _("The request turned memory off."),
    "read_in_request": _("The request asked that nothing be noticed."),
    "off_on_server": _("Automatic memory is switched off on this server."),
    "no_consent": _("Automatic memory is off for you. You can turn it on in your account."),
    "no_question": _("The request has no message with a person's own words."),
    "none_stored": _("Nothing is remembered here yet."),
    "none_relevant": _("Nothing that is remembered fits the question."),
    "no_room": _("There is no room left in the model's context for what is remembered."),
    "search_failed": _("Memory could not be searched."),
    "read_only_key": _("This key may only read."),
    "viewer": _("You may only read in this workspace."),
}
_MEMBERS = PreparedQuery(lambda workspace: Membership.objects.filter(workspace_id=workspace), workspace=int)


@dataclass(frozen=True)
class Remembered:
    """The result of recalling memories for a request."""

    messages: list[Body]  # to send to the model
    given: list[Body]  # the same without recalled memories
    said: client_turns.Said | None = None  # the conversation, if memory is on
    used: tuple[str, ...] = ()  # ids of the recalled memories
    degraded: str = ""  # why the search was incomplete
    unused: str = ""  # if no memory is used, the reason, a key of REASONS


@dataclass(frozen=True)
class Noted:
    """The record of a question and its answer in a client program."""

    saved: tuple[str, ...] = ()  # ids of memories saved from this conversation so far
    turn: PassingTurn | None = None  # the turn from which a job extracts memories
    unsaved: str = ""  # if there is no turn, the reason, a key of REASONS


def reason(code: str) -> Body:
    """Return the reason with this code as JSON for the response: its code and its message, from REASONS."""
    return {"code": code, "message": str(REASONS[code])}


def prefetch_recall(api_request: Asked, person: User, *, now: datetime) -> None:
    """Start to embed the question in the background for recall, unless memory is off."""
    if api_request.question is not None and api_request.memory != "off" and memory_on(person, None):
        prefetch_query_vector(own_words(api_request.messages[api_request.question]), now=now)


def remember(api_request: Asked, caller: Caller, chosen: Chosen) -> Remembered:
    """Return the request's messages with the memories that are relevant to its question inserted before the question.

    The instructions of the caller's assistant are inserted even if memory is off. ``Remembered.unused`` says why no
    memory was used. Other errors than a ModelError are logged, and the answer goes on without memories.
    """
    messages, at = api_request.messages, api_request.question
    if caller.agent is not None:
        messages, at = _instructed(messages, at, caller, chosen)
    if unused := _why_off(api_request, caller.person):
        return Remembered(messages, messages, unused=unused)
    assert at is not None
    question, degraded, used, unused, closing = own_words(messages[at]), "", list[Recalled](), "", ""
    try:
        prompt_tokens = parts_of_body({**api_request.body, "messages": messages}).whole
        room = prompt_token_limit(chosen.model.capabilities) - prompt_tokens
        prompt_memories = find_for_prompt(
            question,
            caller.workspace,
            caller.person,
            agent=caller.agent,
            room=int(room * RECALLED_SHARE),
            policy=caller.policy,
            now=caller.now,
        )
        used, degraded = prompt_memories.used, prompt_memories.recall.degraded
        unused = _why_unused(prompt_memories)
        closing = prompt_memories.closing("the Memory page of MemoryHub")
    except ModelError:
        raise
    except Exception:
        logger.exception("Recall failed; the answer goes on without it, and says so")
        degraded, unused = FAILED, "search_failed"
    ids = tuple(item.memory.public_id for item in used)
    block: list[Body] = []
    if used:  # names of authors only if the workspace has other members
        several = len(_MEMBERS.all(limit=2, workspace=caller.workspace.pk)) > 1
        block = [_ours(recalled_block(used, names_people=several, closing=closing))]
    conversation = client_turns.Said(list(_lines(messages[: at + 1])))
    return Remembered([*messages[:at], *block, *messages[at:]], messages, conversation, ids, degraded, unused)


def record_turn(api_request: Asked, caller: Caller, chosen: Chosen, remembered: Remembered) -> Noted:
    """Record the new turn while the model answers. Return it with memories saved from the conversation so far."""
    conversation = remembered.said
    if conversation is None:
        return Noted(unsaved=remembered.unused)
    saved = client_turns.saved_from(
        client_turns.conversation_id(caller, conversation), caller.person, now=caller.now
    )
    turn, unsaved = None, _why_unsaved(api_request, caller)
    if not unsaved:
        shown, used = shown_in(api_request.body, remembered.given), remembered.used
        # Extraction uses the same connection, so that no other model reads the text.
        answers = chosen.connection or Connection.objects.built_in()
        turn = client_turns.begin(caller, conversation, shown, used=used, connection=answers)
    return Noted(tuple(saved), turn, unsaved)


def _why_off(api_request: Asked, person: User) -> str:
    if api_request.memory == "off":
        return "off_in_request"
    if not memory_on(person, None):
        return "off_on_server" if vetoed() else "no_consent"
    return "no_question" if api_request.question is None else ""


def _why_unused(prompt_memories: Found) -> str:
    if prompt_memories.used:
        return ""
    if not prompt_memories.stored:
        return "none_stored"
    return "no_room" if any(why == NO_ROOM for _, why in prompt_memories.verdicts) else "none_relevant"


def _why_unsaved(api_request: Asked, caller: Caller) -> str:
    if api_request.memory == "read":
        return "read_in_request"
    if caller.key is None or caller.key.scope != KeyScope.WRITE:
        return "read_only_key"
    return "" if Role(caller.role).allows(Role.EDITOR) else "viewer"


def _instructed(
    messages: list[Body], at: int | None, caller: Caller, chosen: Chosen
) -> tuple[list[Body], int | None]:
    """Insert the assistant's instructions after the client's system messages. Return the messages and a new ``at``."""
    assert caller.agent is not None
    own = 0
    while own < len(messages) and messages[own]["role"] in {"system", "developer"}:
        own += 1
    text = agent_text(caller.agent, room=prompt_token_limit(chosen.model.capabilities))
    with_it = [*messages[:own], _ours(text), *messages[own:]]
    return with_it, None if at is None else at + 1


def _ours(text: str) -> Body:
    return {"role": "system", "content": text, INSERTED: True}


def _lines(messages: Sequence[Body]) -> Iterator[tuple[str, str]]:
    for message in messages:
        read = own_words if message["role"] == "user" else text_of
        if message["role"] in {"user", "assistant"} and (text := read(message).strip()):
            yield message["role"], text


# Text of a request that the user did not write: no memory is extracted from it without review.

MOST_READ = 400_000  # limit in characters of one request
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")  # escapes as in JSON, which results of tools often contain


def shown_in(body: Body, messages: Sequence[Body]) -> Shown:
    """Return the words of all texts in the request that the user did not write, cut to their first letters.

    Extraction checks against them whether a statement is the user's own. The texts are tools and their results,
    instructions, schemas, passages that a program marked as its own in a user message, and answers of assistants,
    which a program may have made up. At most MOST_READ characters are read. ``Shown.more``: there is more text, or an
    image, a file or audio.
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


def _texts_in(value: object) -> Iterator[str]:
    """Yield all strings in a JSON value, including keys, at any depth."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case list(values):
                waiting += values
            case dict(named):
                waiting += [*named, *named.values()]


def _has_more(content: object) -> bool:
    """Return whether a message contains images, files or audio, whose words cannot be read here."""
    return isinstance(content, list) and any(
        not isinstance(part, dict) or part.get("type") != "text" for part in content
    )


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else " "
