"""Deep thinking: plan, answer, check against memory. What goes wrong in the plan or the check costs no answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from contextlib import aclosing
from dataclasses import replace

from django.db import DatabaseError
from django.utils import timezone
from django.utils.translation import gettext_lazy as later

from chat.answers.live import LiveAnswer
from chat.answers.problems import BROKEN
from chat.answers.threads import in_thread
from chat.chats.personal_memories import personal_allowed
from chat.models import Message, MessageStatus
from chat.models.steps import Mode, Step, StepKind, StepOutcome
from chat.modes.check import build_check, memories_beside, read_verdict
from chat.modes.mode import AnswerMode
from chat.modes.steps import begin, end
from chat.prompting.labels import text_of
from chat.prompting.rests_on import RestsOn, mark
from chat.prompting.text import BYTES_PER_TOKEN, cut_to, escape, prompt_text, tokens
from chat.tools.loop import Plan, replied, write
from memories.models import Memory, SourceType
from memoryhub.kept import kept
from memoryhub.llm.base import Capabilities, ChatModel, Speaker, Tool
from memoryhub.llm.base import Message as PromptMessage
from memoryhub.llm.errors import ModelError
from workspaces.models import User
from workspaces.policy import Reach

logger = logging.getLogger(__name__)
PLAN_TOKENS = 400  # of a plan that are kept; a model may spend more on thoughts that it does not show
MOST_REPLY = 20_000  # characters of a check's reply
PLAN_SECONDS = 45.0
CHECK_SECONDS = 60.0
SEPARATOR = "\n\n---\n\n"  # between the answer and its correction
_TOO_SMALL = kept("The model is too small for it.")
_TOO_LONG = kept("The answer is too long for it.")
_BAD_REPLY = kept("The model's reply could not be read.")


class DeepThink(AnswerMode):
    """A model too small to extract can neither plan nor compare (docs/decisions/0016)."""

    name = Mode.DEEP_THINK
    about = later(
        "Think: plan the answer first, then check it against memory. Takes two to three times as long."
    )
    why_not = later("The model in use is too small to plan and check an answer. Connect a larger one.")
    distilled_as = SourceType.AUTO_DEEP_THINK

    def can(self, capabilities: Capabilities) -> bool:
        return capabilities.can_extract

    def reserve(self) -> int:
        """For the plan and what is said about it."""
        return PLAN_TOKENS + max(tokens(prompt_text("plan")), tokens(prompt_text("planned"))) + 16

    async def answer(self, live: LiveAnswer, plan: Plan, user_pk: int) -> None:
        """A plan before and a check after it. Once ``live.is_whole`` a stop ends only the check.

        Raises what writing the answer raises, and nothing else.
        """
        outline = await _plan(live, plan)
        prompt = with_plan(plan.prompt, outline) if outline else plan.prompt
        await write(live, replace(plan, prompt=prompt), user_pk)
        if live.text.strip() and not live.was_cut:
            live.is_whole = True
            await _check(live, plan.model, user_pk)


def plan_prompt(prompt: Sequence[PromptMessage]) -> list[PromptMessage]:
    """The turn's own prompt, which providers have cached when the answer is asked for, with the wish for a plan."""
    wish = PromptMessage("system", prompt_text("plan"), speaker=Speaker.SYSTEM)
    return [*prompt[:-1], wish, prompt[-1]]


def with_plan(prompt: Sequence[PromptMessage], outline: str) -> list[PromptMessage]:
    """The plan right before the question. It was written with recalled text in view, so it is data as that is."""
    lines = "\n".join(filter(None, map(escape, outline.splitlines())))
    instructions = f"{prompt_text('planned')}\n<plan>\n{lines}\n</plan>"
    return [*prompt[:-1], PromptMessage("system", instructions, speaker=Speaker.MODEL), prompt[-1]]


async def _plan(live: LiveAnswer, plan: Plan) -> str:
    """The plan, or nothing where it failed: then the answer is written without, and the step says why."""
    step = await in_thread(begin, live, StepKind.PLAN)
    if not plan.model.capabilities.can_extract:  # another model was chosen since the message was sent
        await in_thread(end, live, step, StepOutcome.ERROR, error=_TOO_SMALL)
        return ""
    await _work_on(live, step, PLAN_SECONDS, _outline(plan, step))
    return step.text


async def _outline(plan: Plan, step: Step) -> tuple[str, str]:
    tools, most = [tool.tool for tool in plan.tools], int(PLAN_TOKENS * BYTES_PER_TOKEN)
    reply = await _reply(plan.model, plan_prompt(plan.prompt), most=most, tools=tools)
    step.text = cut_to(reply, PLAN_TOKENS)
    return (StepOutcome.PLANNED, "") if step.text else (StepOutcome.ERROR, _BAD_REPLY)


async def _check(live: LiveAnswer, model: ChatModel, user_pk: int) -> None:
    step = await in_thread(_begin_check, live)
    if not step.outcome:
        await _work_on(live, step, CHECK_SECONDS, _compare(live, model, user_pk, step))


async def _work_on(live: LiveAnswer, step: Step, seconds: float, work: Awaitable[tuple[str, str]]) -> None:
    """End the step with the outcome of its work and why it failed; a failure of any kind costs no answer."""
    try:
        async with asyncio.timeout(seconds):
            outcome, why = await work
    except TimeoutError:
        outcome, why = StepOutcome.TIMEOUT, ""
    except ModelError as error:
        logger.warning("A %s failed: %s", step.kind, error.for_log)
        outcome, why = StepOutcome.ERROR, str(error)
    except Exception:
        logger.exception("A %s failed", step.kind)
        outcome, why = StepOutcome.ERROR, BROKEN
    await in_thread(end, live, step, outcome, error=why)


def _begin_check(live: LiveAnswer) -> Step:
    """From here on a crash finds the whole answer stored, and no more than its check is lost."""
    writing = Message.objects.filter(pk=live.pk, attempt=live.attempt, status=MessageStatus.STREAMING)
    try:
        writing.update(content=live.text)
    except DatabaseError:
        logger.warning("The database is away; an answer goes unchecked")
        unchecked = Step(message_id=live.pk, kind=StepKind.CHECK)
        end(live, unchecked, StepOutcome.ERROR, error=BROKEN)
        return unchecked
    return begin(live, StepKind.CHECK)


async def _compare(live: LiveAnswer, model: ChatModel, user_pk: int, step: Step) -> tuple[str, str]:
    """The outcome, and why it failed. A correction is added to the answer."""
    answer, memories = await in_thread(_what_to_compare, live, user_pk)
    if not answer.memory_enabled:
        return StepOutcome.OFF, ""
    if not memories:
        return StepOutcome.NOTHING, ""
    if not model.capabilities.can_extract:
        return StepOutcome.ERROR, _TOO_SMALL
    question = text_of(answer.reply_to) if answer.reply_to else ""
    text = live.text
    asked, count = build_check(question, text, memories, model.capabilities)
    if not count:
        return StepOutcome.ERROR, _TOO_LONG
    reply = await _reply(model, asked, most=MOST_REPLY, temperature=0.0)
    step.memory_ids = [memory.public_id for memory in memories[:count]]
    verdict = read_verdict(reply, text, memories[:count])
    if verdict is None:
        return StepOutcome.ERROR, _BAD_REPLY
    step.findings, step.text = verdict.findings, verdict.correction
    if verdict.correction:
        live.append(SEPARATOR + verdict.correction)
    return (StepOutcome.DIFFERS if verdict.differs else StepOutcome.AGREES), ""


def _what_to_compare(live: LiveAnswer, user_pk: int) -> tuple[Message, list[Memory]]:
    people = ("reply_to__author", "reply_to__imported_by")
    answer = Message.objects.select_related("chat__workspace", "chat__agent", *people).get(pk=live.pk)
    if not answer.memory_enabled:
        return answer, []
    user = User.objects.get(pk=user_pk)
    personal = personal_allowed(answer.chat, user)
    reach = Reach.to_model(answer.chat.workspace, is_local=live.model_is_local, personal=personal)
    memories = memories_beside(answer, live.text, user, reach=reach, now=timezone.now())
    compared = RestsOn()
    compared.add_given(answer.chat.workspace_id, memories)
    mark(answer.pk, compared)
    return answer, memories


async def _reply(
    model: ChatModel,
    messages: Sequence[PromptMessage],
    *,
    most: int,
    temperature: float | None = None,
    tools: Sequence[Tool] = (),
) -> str:
    """A whole reply that nobody reads as it comes, its first ``most`` characters. Being stopped hangs up."""
    text = ""
    stream = replied(model, messages, temperature=temperature, tools=tools, may_call=False)
    async with aclosing(stream) as deltas:
        async for delta in deltas:
            text = delta.text if delta.retracts else text + delta.text
            if len(text) > most:
                break
    return text.strip()
