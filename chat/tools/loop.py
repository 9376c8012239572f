"""The rounds of one answer: the model writes or asks for tools, gets what came of them, and goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from django.db.models import F

from chat.answers.live import LiveAnswer
from chat.answers.threads import in_thread
from chat.models import Message as StoredMessage
from chat.models.steps import Mode
from chat.modes.thinking import Thinking
from chat.prompting.context import answer_tokens, room_beside_answer, tokens_of, tokens_of_tools
from chat.prompting.prompt_parts import parts_of
from chat.prompting.text import BYTES_PER_TOKEN, cut_to, loop_length, tokens
from chat.tools.base import MOST_ARGUMENTS, ChatTool
from chat.tools.running import run_calls
from memories.writing.drafts import UNSTORABLE
from memoryhub.llm.base import ChatModel, Delta, Message, Speaker, Tool, ToolCall
from memoryhub.llm.errors import ModelBadReply, ModelContextOverflow
from memoryhub.llm.metering import report_parts
from memoryhub.monitoring import metrics
from workspaces.models import Connection
from workspaces.spending.bill import Account

ROUNDS = 6  # in which tools may be called; then the model is asked to answer with what it has
LEAST_RESULT = 200  # tokens of a result that are passed on however little room there is
NO_MORE = "Error: no more tool calls in this answer. Answer now with what you have."


@dataclass(frozen=True)
class Plan:
    """All that an answer is written with. ``is_tight``: the history fills its room."""

    model: ChatModel
    prompt: Sequence[Message]
    tools: Sequence[ChatTool] = ()
    is_tight: bool = False
    mode: str = Mode.CHAT
    history: tuple[
        int, ...
    ] = ()  # keys of the earlier messages in the prompt, which stand in it from ``begins`` on
    begins: int = 0
    connection: Connection | None = None  # None: the model that the settings name
    account: Account | None = None  # on whom it is put
    opening: str = ""  # what the answer of a small model begins with: the memory that answers the question
    is_answered: bool = False  # by the opening alone: the model is not called


async def write(live: LiveAnswer, plan: Plan, user_pk: int) -> None:
    """Grow the answer to its end. Raises a ModelError; what was written and done before it stays.

    A model that has nothing to say after its tools is asked once more, for words alone; one whose context the
    prompt does not fit in, once more with less of the conversation.
    """
    if plan.opening and not live.text:
        live.append(plan.opening)
        if plan.is_answered:
            return
        live.append("\n\n")
        live.goes_on = True
    by_name = {tool.name: tool for tool in plan.tools}
    offered = [tool.tool for tool in plan.tools]
    messages = list(plan.prompt)
    room = room_beside_answer(plan.model.capabilities) - tokens_of_tools(offered)
    room -= tokens_of(messages)
    rounds = ROUNDS if offered else -1
    while True:
        # After the last round tools are still named, as some endpoints want, and then not even that.
        may_call, named = rounds > 0, rounds >= 0
        try:
            text, calls = await _one_reply(live, plan.model, messages, offered if named else (), may_call)
        except ModelContextOverflow:
            shorter = with_less_history(plan.prompt, plan.history, plan.begins)
            if live.was_too_long or shorter is None or len(messages) > len(plan.prompt):
                raise
            live.was_too_long = True
            messages, seen_from = shorter
            plan = replace(plan, prompt=list(messages), history=())
            await in_thread(_note_what_is_seen, live.pk, seen_from)
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
            return  # it was said, and noted: nothing is left to say
        asked = tuple(ToolCall(call.id, call.name, _readable(call.arguments)) for call in calls)
        messages.append(Message("assistant", text, tool_calls=asked, speaker=Speaker.MODEL))
        room -= tokens(text) + sum(tokens(call.arguments) for call in asked)
        for call, result in zip(asked, results, strict=True):
            shown = cut_to(result, max(LEAST_RESULT, room))
            room -= tokens(shown)
            speaker = by_name[call.name].speaker if call.name in by_name else Speaker.SYSTEM
            messages.append(Message("tool", shown, tool_call_id=call.id, speaker=speaker))
        rounds = min(rounds - 1, 0) if room <= LEAST_RESULT else rounds - 1


async def _one_reply(
    live: LiveAnswer, model: ChatModel, messages: Sequence[Message], tools: Sequence[Tool], may_call: bool
) -> tuple[str, tuple[ToolCall, ...]]:
    text, calls, thinking = "", tuple[ToolCall, ...](), Thinking(live)
    live.was_cut = False
    async with aclosing(replied(model, messages, tools=tools, may_call=may_call)) as deltas:
        async for delta in deltas:
            if delta.retracts:
                live.retract(len(text))
                text = ""
            if delta.thought:
                await thinking.add(delta.thought)
            if delta.text:
                await thinking.close()
                if not text and live.text.strip() and not live.goes_on:
                    live.append("\n\n")  # what an earlier reply said before it called a tool
                live.goes_on = False
                live.append(delta.text)
                text += delta.text
                if model.capabilities.needs_help and (looped := loop_length(text)):
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
) -> AsyncGenerator[Delta, None]:
    """What the model says, counted, without what cannot be stored."""
    metrics.TOKENS.labels("in").inc(sum(tokens(message.content) for message in messages))
    report_parts(parts_of(messages, tools))
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
    """The prompt with the newest quarter of its history, beginning with a person, and the key of the first message in
    that, None where none is left; None instead of both where there is no history to leave out.
    """
    if not history:
        return None
    ends = begins + len(history)
    most = sum(tokens(message.content) for message in prompt[begins:ends]) // 4
    first, spent = ends, 0
    for at in range(ends - 1, begins, -1):  # the oldest one goes in any case
        spent += tokens(prompt[at].content)
        if spent > most:
            break
        if prompt[at].role == "user":
            first = at
    shorter = [*prompt[:begins], *prompt[first:]]
    return shorter, history[first - begins] if first < ends else None


def _note_what_is_seen(answer_pk: int, seen_from: int | None) -> None:
    """Without any history left the question itself is the first that is seen."""
    answer = StoredMessage.objects.filter(pk=answer_pk)
    answer.update(seen_from=F("reply_to") if seen_from is None else seen_from)


def _readable(arguments: str) -> str:
    """Endpoints parse what they are sent back: what was no JSON object, or without end, is shown as an empty one."""
    try:
        fits = len(arguments) <= MOST_ARGUMENTS and isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        fits = False
    return arguments if fits else "{}"
