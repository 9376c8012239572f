"""Doing what the model asked for: the calls of one round side by side, each stored, bounded in time, never fatal."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from django.db import DatabaseError, transaction
from django.utils import timezone

from chat.access import get_chat
from chat.answers.answer_state import message_channel
from chat.answers.live import LiveAnswer
from chat.answers.threads import in_tool_thread
from chat.chats.personal_memories import personal_allowed
from chat.models import Message, ToolCall, ToolOutcome, ToolStatus
from chat.prompting.provenance import provenance_until
from chat.prompting.rests_on import note_tool_call
from chat.tools.base import Arguments, ChatTool, InChat, Result, ToolCaller, ToolTrouble, read_arguments
from chat.tools.shown_calls import event_of
from memories.models import SourceType
from memories.writing.drafts import UNSTORABLE, is_delicate
from memories.writing.extracting import queue_distillation
from memoryhub import events
from memoryhub.errors import DomainError
from memoryhub.llm.base import ToolCall as RequestedCall
from memoryhub.llm.errors import ModelNotLocal
from memoryhub.monitoring import tracing
from workspaces.models import User
from workspaces.policy import Reach

logger = logging.getLogger(__name__)
CALL_SECONDS = 15.0
MOST_AT_ONCE = 8  # calls of one round
_FAILURES = (ToolOutcome.REFUSED, ToolOutcome.DENIED, ToolOutcome.TIMEOUT, ToolOutcome.ERROR)


async def run_calls(
    live: LiveAnswer, user_pk: int, asked: Sequence[RequestedCall], tools: Mapping[str, ChatTool]
) -> list[str]:
    """What each call came to, in the order they were asked for. A failure is a sentence the model can act on."""
    made = asked[:MOST_AT_ONCE]
    try:
        rows = await in_tool_thread(_begin, live, made, tools)
    except DatabaseError:
        logger.exception("Tool calls could not be noted, so they were not made")
        return ["Error: the call could not be made. Answer without it."] * len(asked)
    pairs = zip(rows, made, strict=True)
    done = await asyncio.gather(*(_run(live, user_pk, row, call, tools) for row, call in pairs))
    too_many = f"Error: at most {MOST_AT_ONCE} calls at once; this one was not made."
    return [*done, *[too_many] * len(asked[MOST_AT_ONCE:])]


async def _run(
    live: LiveAnswer, user_pk: int, row: ToolCall, call: RequestedCall, tools: Mapping[str, ChatTool]
) -> str:
    try:
        return await asyncio.wait_for(in_tool_thread(_call, live, user_pk, row, call, tools), CALL_SECONDS)
    except TimeoutError:
        logger.warning("A tool call took longer than %s s", CALL_SECONDS)
        return f"Error: {row.name} took longer than {CALL_SECONDS:.0f} seconds. Answer without it."


@tracing.span("memoryhub.tool")
def _call(
    live: LiveAnswer, user_pk: int, row: ToolCall, call: RequestedCall, tools: Mapping[str, ChatTool]
) -> str:
    """One call to its stored end. Blocks; runs on to its end even if nobody waits for it any more."""
    try:
        tool = tools.get(call.name)
        if tool is None:
            raise ToolTrouble(f"there is no tool of this name; there are {', '.join(tools)}")
        arguments = read_arguments(tool.takes, call.arguments)
        row.arguments = _kept(tool, arguments)
        _publish(live, row)
        caller = _caller(live, user_pk)
        result = tool.act(caller, arguments)
        _distil_later(row, caller, result)
    except ToolTrouble as trouble:
        result = _failure(str(trouble), trouble.outcome)
    except DomainError as error:
        result = _failure(error.message, ToolOutcome.DENIED)
    except ModelNotLocal as error:  # switched on since the turn began
        result = _failure(str(error), ToolOutcome.DENIED)
    except Exception:
        logger.exception("The tool %s failed", call.name[:64])
        result = _failure("the tool failed. Answer without it", ToolOutcome.ERROR)
    _end(live, row, result)
    name = row.name if call.name in tools else "none of ours"
    tracing.note(
        {"gen_ai.tool.name": name, "memoryhub.outcome": result.outcome, "memoryhub.count": result.count or 0}
    )
    return result.text


def _distil_later(row: ToolCall, caller: ToolCaller, result: Result) -> None:
    """Mine the output in the background. What memory itself said has none: it would only be stored again."""
    row.output = result.output
    if result.output and caller.turn is not None:
        row.save(update_fields=["output"])
        queue_distillation(
            workspace=caller.workspace,
            user=caller.person,
            chat_id=caller.turn.chat.public_id,
            message_id=row.public_id,
            source_type=SourceType.MODEL,
            text=result.output,
            now=caller.now,
        )


def _failure(why: str, outcome: str) -> Result:
    return Result(why if outcome == ToolOutcome.REFUSED else f"Error: {why.rstrip('.')}.", outcome)


def _caller(live: LiveAnswer, user_pk: int) -> ToolCaller:
    """Loaded as things stand now. Raises NotFound where the person may no longer see the chat."""
    answer = Message.objects.select_related("reply_to", "chat").get(pk=live.pk)
    user = User.objects.get(pk=user_pk)
    chat = get_chat(user, answer.chat.public_id)
    assert answer.reply_to is not None, "an answer replies to a message"
    answer.chat = answer.reply_to.chat = chat
    return ToolCaller(
        person=user,
        workspace=chat.workspace,
        role=chat.role,
        reach=Reach.to_model(
            chat.workspace, is_local=live.model_is_local, personal=personal_allowed(chat, user)
        ),
        now=timezone.now(),
        agent=chat.agent,
        turn=InChat(chat, answer.reply_to, answer),
        provenance=lambda: provenance_until(answer, user),
    )


def _kept(tool: ChatTool, arguments: Arguments) -> dict[str, object]:
    """The arguments that stay with the chat, none of them a credential or a number of somebody's own."""
    kept = arguments.model_dump(include=set(tool.kept), exclude_unset=True)
    return {
        name: value for name, value in kept.items() if not (isinstance(value, str) and is_delicate(value))
    }


def _begin(live: LiveAnswer, asked: Sequence[RequestedCall], tools: Mapping[str, ChatTool]) -> list[ToolCall]:
    now = timezone.now()
    names = [call.name if call.name in tools else UNSTORABLE.sub("", call.name)[:64] or "?" for call in asked]
    with transaction.atomic():
        rows = ToolCall.objects.bulk_create(
            ToolCall(message_id=live.pk, name=name, started_at=now) for name in names
        )
        events.publish(message_channel(live.public_id), "grown")
    for row in rows:
        _publish(live, row)
    return rows


def _end(live: LiveAnswer, row: ToolCall, result: Result) -> None:
    row.outcome, row.count = result.outcome, result.count
    row.memory_ids = list(result.memory_ids)
    row.arguments |= result.noted
    row.held_personal = result.personal
    row.shown = [each.as_json() for each in result.shown]
    row.status = ToolStatus.FAILED if result.outcome in _FAILURES else ToolStatus.DONE
    row.finished_at = timezone.now()
    try:
        with transaction.atomic():
            row.save(force_update=True)
            note_tool_call(row, stays_here=result.stays_here)
            events.publish(message_channel(live.public_id), "grown")
    except DatabaseError:  # its chat was deleted meanwhile
        logger.warning("A finished tool call could not be stored")
    _publish(live, row)


def _publish(live: LiveAnswer, row: ToolCall) -> None:
    live.set_event("tool", row.public_id, event_of(row))
