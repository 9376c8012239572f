"""The loop of an answer: the model writes or calls tools, receives their results, and continues."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from django.db import DatabaseError, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.functional import Promise

from chat.access import get_chat
from chat.answer_steps import Thinking, call_event
from chat.chats.personal_memories import personal_allowed
from chat.live_answers import LiveAnswer, in_thread, in_tool_thread
from chat.models import Message as StoredMessage
from chat.models import ToolCall as StoredCall
from chat.models import ToolOutcome, ToolStatus
from chat.models.answer_steps import Mode
from chat.prompting.context import answer_tokens, parts_of, prompt_token_limit
from chat.prompting.prompt_text import BYTES_PER_TOKEN, cut_to, loop_length, tokens
from chat.prompting.provenance import mark_tool_call, provenance_until
from chat.tools.base import (
    MOST_ARGUMENTS,
    Arguments,
    ChatTool,
    InChat,
    Result,
    ToolCaller,
    ToolTrouble,
    read_arguments,
)
from memories.models import SourceType
from memories.writing.drafts import UNSTORABLE, is_sensitive
from memories.writing.extraction_jobs import queue_distillation
from memoryhub import pubsub
from memoryhub.errors import DomainError
from memoryhub.llm.base import Capabilities, ChatModel, Delta, Message, Speaker, Tool, ToolCall
from memoryhub.llm.errors import ModelBadReply, ModelContextOverflow, ModelNotLocal
from memoryhub.llm.metering import Parts, report_parts
from memoryhub.monitoring import metrics, tracing
from workspaces.data_policy import DataPolicy
from workspaces.models import Connection, User
from workspaces.spending.usage_records import Account

logger = logging.getLogger(__name__)
CALL_SECONDS = 15.0
MOST_AT_ONCE = 8  # calls per round
_FAILURES = (ToolOutcome.REFUSED, ToolOutcome.DENIED, ToolOutcome.TIMEOUT, ToolOutcome.ERROR)


async def run_calls(
    live: LiveAnswer, user_pk: int, calls: Sequence[ToolCall], tools: Mapping[str, ChatTool[Any]]
) -> list[str]:
    """Return the result of each call, in the same order. The result of a failed call tells the model what to do."""
    batch = calls[:MOST_AT_ONCE]
    try:
        rows = await in_tool_thread(_begin, live, batch, tools)
    except DatabaseError:
        logger.exception("Tool calls could not be noted, so they were not made")
        return ["Error: the call could not be made. Answer without it."] * len(calls)
    pairs = zip(rows, batch, strict=True)
    done = await asyncio.gather(*(_run(live, user_pk, row, call, tools) for row, call in pairs))
    too_many = f"Error: at most {MOST_AT_ONCE} calls at once; this one was not made."
    return [*done, *[too_many] * len(calls[MOST_AT_ONCE:])]


async def _run(
    live: LiveAnswer, user_pk: int, row: StoredCall, call: ToolCall, tools: Mapping[str, ChatTool[Any]]
) -> str:
    try:
        return await asyncio.wait_for(in_tool_thread(_call, live, user_pk, row, call, tools), CALL_SECONDS)
    except TimeoutError:
        logger.warning("A tool call took longer than %s s", CALL_SECONDS)
        return f"Error: {row.name} took longer than {CALL_SECONDS:.0f} seconds. Answer without it."


@tracing.span("memoryhub.tool")
def _call(
    live: LiveAnswer, user_pk: int, row: StoredCall, call: ToolCall, tools: Mapping[str, ChatTool[Any]]
) -> str:
    """Run a call and store its result. Blocks, and runs to its end even after a timeout."""
    try:
        tool = tools.get(call.name)
        if tool is None:
            raise ToolTrouble(f"there is no tool of this name; there are {', '.join(tools)}")
        arguments = read_arguments(tool.takes, call.arguments)
        row.arguments = _storable_arguments(tool, arguments)
        _publish(live, row)
        caller = _caller(live, user_pk)
        result = tool.act(caller, arguments)
        _distil_later(row, caller, result)
    except ToolTrouble as trouble:
        result = _failure(str(trouble), trouble.outcome)
    except (DomainError, ModelNotLocal) as error:  # local-only may have been enabled after the turn began
        result = _failure(str(error), ToolOutcome.DENIED)
    except Exception:
        logger.exception("The tool %s failed", call.name[:64])
        result = _failure("the tool failed. Answer without it", ToolOutcome.ERROR)
    _end(live, row, result)
    name = row.name if call.name in tools else "none of ours"
    tracing.add_attributes(
        {"gen_ai.tool.name": name, "memoryhub.outcome": result.outcome, "memoryhub.count": result.count}
    )
    return result.text


def _distil_later(row: StoredCall, caller: ToolCaller, result: Result) -> None:
    """Store the output of a call, if it has one, and queue the extraction of memories from it."""
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
    """Return the caller with current permissions. Raises NotFound if the person may no longer see the chat."""
    answer = StoredMessage.objects.select_related("reply_to", "chat").get(pk=live.pk)
    user = User.objects.get(pk=user_pk)
    chat = get_chat(user, answer.chat.public_id)
    assert answer.reply_to is not None, "an answer replies to a message"
    answer.chat = answer.reply_to.chat = chat
    personal = personal_allowed(chat, user)
    return ToolCaller(
        person=user,
        workspace=chat.workspace,
        role=chat.role,
        policy=DataPolicy.to_model(chat.workspace, is_local=live.model_is_local, personal=personal),
        now=timezone.now(),
        agent=chat.agent,
        turn=InChat(chat, answer.reply_to, answer),
        provenance=lambda: provenance_until(answer, user),
    )


def _storable_arguments(tool: ChatTool[Any], arguments: Arguments) -> dict[str, object]:
    """Return the arguments to store, without credentials and personal numbers."""
    values = arguments.model_dump(include=set(tool.kept), exclude_unset=True).items()
    return {name: value for name, value in values if not (isinstance(value, str) and is_sensitive(value))}


def _begin(
    live: LiveAnswer, calls: Sequence[ToolCall], tools: Mapping[str, ChatTool[Any]]
) -> list[StoredCall]:
    now = timezone.now()
    names = [call.name if call.name in tools else UNSTORABLE.sub("", call.name)[:64] or "?" for call in calls]
    with transaction.atomic():
        rows = StoredCall.objects.bulk_create(
            StoredCall(message_id=live.pk, name=name, started_at=now) for name in names
        )
        pubsub.publish(live.channel, "grown")
    for row in rows:
        _publish(live, row)
    return rows


def _end(live: LiveAnswer, row: StoredCall, result: Result) -> None:
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
            mark_tool_call(row, stays_here=result.stays_here)
            pubsub.publish(live.channel, "grown")
    except DatabaseError:  # the chat was deleted
        logger.warning("A finished tool call could not be stored")
    _publish(live, row)


def _publish(live: LiveAnswer, row: StoredCall) -> None:
    live.set_event("tool", row.public_id, call_event(row))


ROUNDS = 6  # rounds with tool calls; then the model must answer
LEAST_RESULT = 200  # tokens of a result that are always kept
NO_MORE = "Error: no more tool calls in this answer. Answer now with what you have."


@dataclass(frozen=True)
class Plan:
    """All inputs for writing an answer. ``is_tight``: the history nearly fills its budget, to be summarised."""

    model: ChatModel
    prompt: Sequence[Message]
    tools: Sequence[ChatTool[Any]] = ()
    is_tight: bool = False
    mode: str = Mode.CHAT
    history: tuple[int, ...] = ()  # keys of the earlier messages, from index ``begins`` of the prompt on
    begins: int = 0
    connection: Connection | None = None  # None: the server's default model
    account: Account | None = None  # charged for the usage
    opening: str = ""  # the memory with which a small model's answer begins
    is_answered: bool = False  # the opening is the whole answer; the model is not called

    @cached_property
    def offered(self) -> list[Tool]:
        return [tool.tool for tool in self.tools]

    @cached_property
    def parts(self) -> Parts:
        """The estimated tokens of the prompt and the tools, counted once."""
        return parts_of(self.prompt, self.offered)


async def write(live: LiveAnswer, plan: Plan, user_pk: int) -> None:
    """Write the answer to its end. Raises ModelError if the model fails; earlier text and calls are kept.

    If the model writes no text after tool calls, it is called once more without tools. If the prompt exceeds its
    context window, it is called once more with a shorter conversation.
    """
    if plan.opening and not live.text:
        live.append(plan.opening)
        if plan.is_answered:
            return
        live.append("\n\n")
        live.goes_on = True
    by_name = {tool.name: tool for tool in plan.tools}
    messages, parts = list(plan.prompt), plan.parts
    room = prompt_token_limit(plan.model.capabilities) - parts.whole
    room -= sum(picture.tokens for message in messages for picture in message.pictures)
    rounds = ROUNDS if plan.tools else -1
    while True:
        # After the last round tools are still listed once, as some endpoints require, but may not be called.
        may_call, named = rounds > 0, rounds >= 0
        try:
            text, calls = await _one_reply(live, plan, messages, plan.offered if named else (), may_call)
        except ModelContextOverflow:
            shorter = with_less_history(plan.prompt, plan.history, plan.begins)
            if live.was_too_long or shorter is None or len(messages) > len(plan.prompt):
                raise
            live.was_too_long = True
            messages, seen_from = shorter
            plan = replace(plan, prompt=list(messages), history=())
            await in_thread(_store_seen_from, live.pk, seen_from)
            continue
        except ModelBadReply:
            if not may_call or len(messages) == len(plan.prompt):
                raise
            rounds = 0
            continue
        if not calls or not named:
            return
        results = await run_calls(live, user_pk, calls, by_name) if may_call else [NO_MORE] * len(calls)
        if text.strip() and all(call.name in by_name and by_name[call.name].is_aside for call in calls):
            return  # the answer is complete; the calls only stored something
        tool_calls = tuple(ToolCall(call.id, call.name, _readable(call.arguments)) for call in calls)
        messages.append(Message("assistant", text, tool_calls=tool_calls, speaker=Speaker.MODEL))
        room -= tokens(text, *(call.arguments for call in tool_calls))
        for call, result in zip(tool_calls, results, strict=True):
            shown = cut_to(result, max(LEAST_RESULT, room))
            room -= tokens(shown)
            speaker = by_name[call.name].speaker if call.name in by_name else Speaker.SYSTEM
            messages.append(Message("tool", shown, tool_call_id=call.id, speaker=speaker))
        rounds = min(rounds - 1, 0) if room <= LEAST_RESULT else rounds - 1


async def _one_reply(
    live: LiveAnswer, plan: Plan, messages: Sequence[Message], tools: Sequence[Tool], may_call: bool
) -> tuple[str, tuple[ToolCall, ...]]:
    text, calls, thinking = "", tuple[ToolCall, ...](), Thinking(live)
    live.was_cut = False
    parts = plan.parts if len(messages) == len(plan.prompt) else None
    stream = replied(plan.model, messages, tools=tools, may_call=may_call, parts=parts)
    async with aclosing(stream) as deltas:
        async for delta in deltas:
            if delta.retracts:
                live.retract(len(text))
                text = ""
            if delta.thought:
                await thinking.add(delta.thought)
            if delta.text:
                if thinking.step:
                    await thinking.close()
                if not text and live.text.strip() and not live.goes_on:
                    live.append("\n\n")  # separate from the text before a tool call
                live.goes_on = False
                live.append(delta.text)
                text += delta.text
                if plan.model.capabilities.needs_help and (looped := loop_length(text)):
                    live.retract(looped)
                    text = text[:-looped]
                    break
            calls = delta.tool_calls or calls
            live.was_cut = delta.finish_reason == "length" or live.was_cut
    await thinking.close()
    return text, calls


async def replied(
    model: ChatModel,
    messages: Sequence[Message],
    *,
    tools: Sequence[Tool],
    may_call: bool,
    temperature: float | None = None,
    parts: Parts | None = None,
) -> AsyncGenerator[Delta, None]:
    """Call the model, record its usage, and yield its output without unstorable signs. ``parts``: counted tokens."""
    parts = parts or parts_of(messages, tools)
    metrics.TOKENS.labels("in").inc(parts.whole)
    report_parts(parts)
    stream = model.stream(
        messages,
        max_tokens=answer_tokens(model.capabilities),
        temperature=temperature,
        tools=tools,
        tool_choice="auto" if may_call else "none",
    )
    async with aclosing(stream) as deltas:
        async for delta in deltas:
            text, thought = UNSTORABLE.sub("", delta.text), UNSTORABLE.sub("", delta.thought)
            written = len((text + thought).encode(errors="replace"))
            metrics.TOKENS.labels("out").inc(written / BYTES_PER_TOKEN)
            yield replace(delta, text=text, thought=thought)


def with_less_history(
    prompt: Sequence[Message], history: Sequence[int], begins: int
) -> tuple[list[Message], int | None] | None:
    """Return the prompt with the newest quarter of its history, and the key of the first message left, if any.

    Return None if there is no history to remove. ``history``: keys of the messages from the index ``begins`` on.
    """
    if not history:
        return None
    ends = begins + len(history)
    most = sum(message.tokens for message in prompt[begins:ends]) // 4
    first, spent = ends, 0
    for at in range(ends - 1, begins, -1):  # the oldest message is always removed
        spent += prompt[at].tokens
        if spent > most:
            break
        if prompt[at].role == "user":
            first = at
    shorter = [*prompt[:begins], *prompt[first:]]
    return shorter, history[first - begins] if first < ends else None


def _store_seen_from(answer_pk: int, seen_from: int | None) -> None:
    """Store the key of the first message that the prompt contained in full. None stands for the question alone."""
    answer = StoredMessage.objects.filter(pk=answer_pk)
    answer.update(seen_from=F("reply_to") if seen_from is None else seen_from)


def _readable(arguments: str) -> str:
    """Return the arguments of a call for the next prompt: "{}" unless they are a JSON object of allowed length."""
    try:
        fits = len(arguments) <= MOST_ARGUMENTS and isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        fits = False
    return arguments if fits else "{}"


class AnswerMode:
    """The plain chat mode, and the base class of the other modes. Stateless, so one instance serves all answers."""

    name: ClassVar[Mode] = Mode.CHAT
    about: ClassVar[str | Promise] = ""  # describes the mode and its duration to people who choose one
    why_not: ClassVar[str | Promise] = ""  # shown if the model does not support the mode
    distilled_as: ClassVar[str | None] = None  # source_type for distilling the whole answer
    may_wait: ClassVar[bool] = False  # the answer may end with a plan that waits for review

    def can(self, capabilities: Capabilities) -> bool:
        return True

    def reserve(self) -> int:
        """Return how many tokens the prompt must leave free for text that the mode adds."""
        return 0

    async def answer(self, live: LiveAnswer, plan: Plan, user_pk: int) -> None:
        """Write the answer to its end. Raises ModelError if the model fails; text written before that is kept."""
        await write(live, plan, user_pk)
