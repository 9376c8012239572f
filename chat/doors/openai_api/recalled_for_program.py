"""Memory in a conversation that a program keeps: what is put before its question, and what is noted to be mined."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from chat.doors.openai_api.program_request import Asked, Body, text_of
from chat.doors.openai_api.request_parts import parts_of_body
from chat.doors.openai_api.shown_by_program import shown_in
from chat.models import PassingTurn
from chat.prompting.context import RECALLED_SHARE, agent_text, recalled_block, room_beside_answer
from chat.prompting.injecting import find_for_prompt
from chat.turns import program_turns
from memories.consent import memory_on
from memories.recalling.ranked_search import Recalled
from memories.recalling.recall import expect
from memoryhub.database.ready import Ready
from memoryhub.llm.base import INSERTED
from memoryhub.llm.errors import ModelError
from workspaces.caller import Caller
from workspaces.connections.choice import Chosen
from workspaces.models import KeyScope, Membership, Role, User

logger = logging.getLogger(__name__)
FAILED = "memory could not be searched"
_MEMBERS = Ready(lambda workspace: Membership.objects.filter(workspace_id=workspace), workspace=int)


@dataclass(frozen=True)
class Remembered:
    """``messages`` as the model is to see them, ``given`` without what was recalled. ``said``: None without memory."""

    messages: list[Body]
    given: list[Body]
    said: program_turns.Said | None = None
    used: tuple[str, ...] = ()
    degraded: str = ""


@dataclass(frozen=True)
class Noted:
    """``saved``: from this conversation so far. ``turn``: what is to be mined, if anything is."""

    saved: tuple[str, ...] = ()
    turn: PassingTurn | None = None


def expect_recall(asked: Asked, person: User, *, now: datetime) -> None:
    """Have the question's vectors begun with, beside all that is looked up before they are needed."""
    if asked.question is not None and asked.memory != "off" and memory_on(person, None):
        expect(text_of(asked.messages[asked.question]), now=now)


def remember(asked: Asked, caller: Caller, chosen: Chosen) -> Remembered:
    """Recall for the question, as before a turn of a chat. Only with the consent of the key's person. Trouble with it
    costs no answer.
    """
    messages, at = asked.messages, asked.question
    if caller.agent is not None:
        messages, at = _instructed(messages, at, caller, chosen)
    if at is None or asked.memory == "off" or not memory_on(caller.person, None):
        return Remembered(messages, messages)
    question, degraded, used = text_of(messages[at]), "", list[Recalled]()
    try:
        taken = parts_of_body({**asked.body, "messages": messages}).whole
        room = room_beside_answer(chosen.model.capabilities) - taken
        found = find_for_prompt(
            question,
            caller.workspace,
            caller.person,
            agent=caller.agent,
            room=int(room * RECALLED_SHARE),
            reach=caller.reach,
            now=caller.now,
        )
        used, degraded = found.used, found.recall.degraded
    except ModelError:
        raise
    except Exception:
        logger.exception("Recall failed; the answer goes on without it, and says so")
        degraded = FAILED
    ids = tuple(item.memory.public_id for item in used)
    block: list[Body] = [_ours(recalled_block(used, names_people=_several(caller)))] if used else []
    said = program_turns.Said(list(_lines(messages[: at + 1])))
    return Remembered([*messages[:at], *block, *messages[at:]], messages, said, ids, degraded)


def note_turn(asked: Asked, caller: Caller, chosen: Chosen, remembered: Remembered) -> Noted:
    """What came of the conversation so far, and its new turn, noted. Nothing of it is in the prompt, so its model may
    be at work already. Nothing is mined for a key that only reads, or a person who only may.
    """
    said = remembered.said
    if said is None:
        return Noted()
    saved = program_turns.saved_from(
        program_turns.conversation_id(caller, said), caller.person, now=caller.now
    )
    turn = None
    if _may_mine(asked, caller):
        shown, used = shown_in(asked.body, remembered.given), remembered.used
        turn = program_turns.begin(caller, said, shown, used=used, connection=chosen.connection)
    return Noted(tuple(saved), turn)


def _several(caller: Caller) -> bool:
    """Whether others write here, so that each line must say whose words it is."""
    return len(_MEMBERS.all(limit=2, workspace=caller.workspace.pk)) > 1


def _may_mine(asked: Asked, caller: Caller) -> bool:
    may_write = caller.key is not None and caller.key.scope == KeyScope.WRITE
    return asked.memory == "on" and may_write and Role(caller.role).allows(Role.EDITOR)


def _instructed(
    messages: list[Body], at: int | None, caller: Caller, chosen: Chosen
) -> tuple[list[Body], int | None]:
    """With the assistant's instructions behind the caller's own, which stay first and whole."""
    assert caller.agent is not None
    own = 0
    while own < len(messages) and messages[own]["role"] in {"system", "developer"}:
        own += 1
    text = agent_text(caller.agent, room=room_beside_answer(chosen.model.capabilities))
    with_it = [*messages[:own], _ours(text), *messages[own:]]
    return with_it, None if at is None else at + 1


def _ours(text: str) -> Body:
    return {"role": "system", "content": text, INSERTED: True}


def _lines(messages: Sequence[Body]) -> Iterator[tuple[str, str]]:
    for message in messages:
        if message["role"] in {"user", "assistant"} and (text := text_of(message).strip()):
            yield message["role"], text
