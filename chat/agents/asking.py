"""Asking a model from a thread: one event loop for all steps of this process, so that connections are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as NotYet
from contextlib import aclosing, nullcontext

from chat.agents.step import Ask, Reply
from chat.tools.loop import replied
from memoryhub.llm.base import ChatModel, Message, Tool, ToolCall
from memoryhub.llm.clients import BackgroundLoop
from memoryhub.llm.errors import ModelTimeout
from memoryhub.llm.metering import Meter, metered

REPLY_SECONDS = 300.0  # the longest reply of a model, from its request to its end
BEAT_SECONDS = 2.0
_loop = BackgroundLoop("runs")


def asking(model: ChatModel, beat: Callable[[], None] = lambda: None, meter: Meter | None = None) -> Ask:
    """``beat`` is called every two seconds while the model works; what it raises ends the asking, and the model hears
    that nobody waits any more. ``meter``: hears what each reply takes.
    """

    def ask(messages: Sequence[Message], tools: Sequence[Tool], *, may_call: bool) -> Reply:
        with metered(meter) if meter else nullcontext():
            return wait_for(messages, tools, may_call=may_call)

    def wait_for(messages: Sequence[Message], tools: Sequence[Tool], *, may_call: bool) -> Reply:
        answer = _reply(model, messages, tools, may_call=may_call)
        future = _loop.submit(answer)
        try:
            while True:
                try:
                    return future.result(BEAT_SECONDS)
                except NotYet:
                    if future.done():
                        raise
                    beat()
        finally:
            future.cancel()

    return ask


async def _reply(
    model: ChatModel, messages: Sequence[Message], tools: Sequence[Tool], *, may_call: bool
) -> Reply:
    text, calls = "", tuple[ToolCall, ...]()
    try:
        async with (
            asyncio.timeout(REPLY_SECONDS),
            aclosing(replied(model, messages, tools=tools, may_call=may_call)) as deltas,
        ):
            async for delta in deltas:
                text += delta.text
                calls = delta.tool_calls or calls
    except TimeoutError:
        raise ModelTimeout from None
    return Reply(text, calls)
