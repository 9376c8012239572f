"""Deep thinking: plan, answer, and comparison with memory. If the plan or the comparison fails, the answer stays."""

import asyncio
import html
import json
import logging
import re
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone
from django.utils.translation import gettext_lazy as later

from chat.answer_steps import begin_step, end_step
from chat.chats.personal_memories import personal_allowed
from chat.live_answers import BROKEN, LiveAnswer, in_thread
from chat.models import Message, MessageStatus, ToolCall
from chat.models.answer_steps import Mode, Step, StepKind, StepOutcome
from chat.prompting.context import prompt_token_limit
from chat.prompting.prompt_text import (
    BYTES_PER_TOKEN,
    category_label,
    cut_to,
    escape,
    imported_label,
    prompt_text,
    text_of,
    tokens,
)
from chat.prompting.provenance import AnswerFlags, mark_answer
from chat.tools.loop import AnswerMode, Plan, replied, write
from memories.access import count_live
from memories.judging.extraction.with_language_model import render_conversation
from memories.models import Memory, ReceiptItem, SourceType
from memories.recalling.ranking import injection_threshold
from memories.recalling.recall import recall
from memories.writing.drafts import UNSTORABLE
from memoryhub.llm.base import Capabilities, ChatModel, Speaker, Tool
from memoryhub.llm.base import Message as PromptMessage
from memoryhub.llm.errors import ModelError
from memoryhub.llm.output_parsing import MOST_REPAIRED, repaired_object
from memoryhub.stored_messages import kept
from workspaces.data_policy import DataPolicy
from workspaces.models import User

MOST_MEMORIES = 12
PORTIONS = 6  # parts of the answer that are recalled separately
PORTION_LENGTH = 120  # minimum characters of each
MOST_FINDINGS = 8
LONGEST_CORRECTION = 1000  # characters
_STARTS = 50
_MARKS = re.compile(r"[*_`#>~|]+")


@dataclass(frozen=True)
class Verdict:
    """The result of a check."""

    findings: list[dict[str, object]]  # each with the keys quote, memory_id and agrees
    correction: str  # text to add to the answer, empty if all findings agree

    @property
    def differs(self) -> bool:
        return any(not finding["agrees"] for finding in self.findings)


def memories_beside(
    answer: Message, text: str, user: User, *, policy: DataPolicy, now: datetime
) -> list[Memory]:
    """Return the memories to compare an answer with: those in its prompt, of its tools, and recalled for its ``text``.

    For example, an answer that recommends a steakhouse recalls that the user is vegetarian. ``policy``: data policy of
    the model that compares them.
    """
    receipt_items = ReceiptItem.objects.filter(receipt__message_id=answer.public_id, used=True)
    ids = list(receipt_items.order_by("position").values_list("memory__public_id", flat=True))
    for memory_ids in ToolCall.objects.filter(message=answer).values_list("memory_ids", flat=True):
        ids += memory_ids
    rows = Memory.objects.visible_to(user).live(now).filter(public_id__in=ids)
    if not policy.personal:
        rows = rows.filter(owner=None)
    by_id = {memory.public_id: memory for memory in rows}
    chosen = {memory_id: by_id[memory_id] for memory_id in ids if memory_id in by_id}
    workspace = answer.chat.workspace
    live = count_live(workspace, user, personal=policy.personal, now=now)
    threshold = injection_threshold(settings.RECALL_THRESHOLD, live)
    agent = answer.chat.agent
    recalled = [
        recall(portion, workspace, user, settings.RECALL_LIMIT, agent=agent, policy=policy, now=now)
        for portion in _portions(text)
    ]
    scored = [item for each in recalled for item in each.items if item.score >= threshold]
    for item in sorted(scored, key=lambda item: -item.score):
        chosen.setdefault(item.memory.public_id, item.memory)
    return list(chosen.values())[:MOST_MEMORIES]


def _portions(text: str) -> list[str]:
    """Return the answer's paragraphs and list items, at most six. Short ones are joined."""
    portions: list[str] = []
    longest = max(PORTION_LENGTH, len(text) // PORTIONS)
    for line in filter(None, map(str.strip, text.splitlines())):
        if (portions and len(portions[-1]) + len(line) < longest) or len(portions) == PORTIONS:
            portions[-1] += f"\n{line}"
        else:
            portions.append(line)
    return portions


def build_check(
    question: str, answer: str, memories: Sequence[Memory], capabilities: Capabilities
) -> tuple[list[PromptMessage], int]:
    """Return the prompt of the check, and the number of memories in it: 0 if the answer leaves no space for any."""
    room = prompt_token_limit(capabilities) - tokens(prompt_text("deep_think_check"))
    conversation = render_conversation(
        [("user", cut_to(question, room // 4)), ("assistant", answer)], limit=None
    )
    room -= tokens(conversation)
    lines: list[str] = []
    for number, memory in enumerate(memories, start=1):
        label = [category_label(memory) or "memory", f"{memory.created_at:%Y-%m-%d}", imported_label(memory)]
        line = f"{number}. ({', '.join(filter(None, label))}) {escape(memory.content)}"
        room -= tokens(line)
        if room < 0:
            break
        lines.append(line)
    user_text = "\n".join(["<memories>", *lines, "</memories>", conversation])
    prompt = [
        PromptMessage("system", prompt_text("deep_think_check"), speaker=Speaker.SYSTEM),
        PromptMessage("user", user_text, speaker=Speaker.MEMORY),
    ]
    return prompt, len(lines)


def read_verdict(reply: str, answer: str, memories: Sequence[Memory]) -> Verdict | None:
    """Return the verdict in the model's reply, or None if it is not the requested JSON, even after repair.

    Findings about memories that are not in ``memories`` are dropped, as are quotes that are not in the answer, and a
    correction if all findings agree.
    """
    for value in _objects_in(reply):
        statements, correction = value.get("statements"), value.get("correction", "")
        if isinstance(statements, list) and isinstance(correction, str | None):
            break
    else:
        return None
    read = (_finding(entry, answer, memories) for entry in statements)
    findings = sorted(filter(None, read), key=lambda finding: bool(finding["agrees"]))[:MOST_FINDINGS]
    verdict = Verdict(findings, "")
    text = UNSTORABLE.sub("", correction or "").strip()[:LONGEST_CORRECTION]
    return Verdict(findings, text) if verdict.differs else verdict


def _finding(entry: object, answer: str, memories: Sequence[Memory]) -> dict[str, object] | None:
    if not isinstance(entry, dict):
        return None
    number, agrees, quote = entry.get("memory"), entry.get("agrees"), entry.get("quote", "")
    if not isinstance(agrees, bool) or not isinstance(number, int) or not 1 <= number <= len(memories):
        return None
    quote = " ".join(html.unescape(quote).split()) if isinstance(quote, str) else ""
    stands = bool(_bare(quote)) and _bare(quote) in _bare(answer)
    quote = UNSTORABLE.sub("", quote)[:400] if stands else ""
    return {"quote": quote, "memory_id": memories[number - 1].public_id, "agrees": agrees}


def _bare(text: str) -> str:
    """Return the text without Markdown and line breaks, for comparison."""
    return " ".join(_MARKS.sub("", html.unescape(text)).casefold().split()).strip(" .…\"'“”")


def _objects_in(reply: str) -> Iterator[dict[str, object]]:
    decoder = json.JSONDecoder()
    position = repaired = 0
    for _ in range(_STARTS):
        position = reply.find("{", position)
        if position < 0:
            return
        try:
            value, end = decoder.raw_decode(reply, position)
        except (ValueError, RecursionError):
            repaired += 1
            if repaired > MOST_REPAIRED or not (read := repaired_object(reply, position)):
                position += 1
                continue
            value, end = read
        yield value
        position = end


logger = logging.getLogger(__name__)
PLAN_TOKENS = 400  # tokens kept of a plan; the model may use more for hidden reasoning
MOST_REPLY = 20_000  # characters of a check's reply
PLAN_SECONDS = 45.0
CHECK_SECONDS = 60.0
SEPARATOR = "\n\n---\n\n"  # between the answer and its correction
_TOO_SMALL = kept("The model is too small for it.")
_TOO_LONG = kept("The answer is too long for it.")
_BAD_REPLY = kept("The model's reply could not be read.")


class DeepThink(AnswerMode):
    """The mode that plans an answer, writes it and checks it against memory (docs/decisions/0016)."""

    name = Mode.DEEP_THINK
    about = later(
        "Think: plan the answer first, then check it against memory. Takes two to three times as long."
    )
    why_not = later(
        "Think needs a model that can extract memories, and the one in use cannot. Connect a larger one."
    )
    distilled_as = SourceType.AUTO_DEEP_THINK

    def can(self, capabilities: Capabilities) -> bool:
        return capabilities.can_extract

    def reserve(self) -> int:
        """Return how many tokens the prompt must leave free for the plan and its instructions."""
        prompts = ("deep_think_plan", "deep_think_planned")
        return PLAN_TOKENS + max(tokens(prompt_text(name)) for name in prompts) + 16

    async def answer(self, live: LiveAnswer, plan: Plan, user_pk: int) -> None:
        """Write a plan, the answer and a check. Once ``live.is_whole`` is True, a stop cancels only the check.

        Raises ModelError if writing the answer fails. A failed plan or check raises nothing.
        """
        outline = await _plan(live, plan)
        prompt = with_plan(plan.prompt, outline) if outline else plan.prompt
        await write(live, replace(plan, prompt=prompt), user_pk)
        if live.text.strip() and not live.was_cut:
            live.is_whole = True
            step = await in_thread(_begin_check, live)
            if not step.outcome:
                await _work_on(live, step, CHECK_SECONDS, _compare(live, plan.model, user_pk, step))


def plan_prompt(prompt: Sequence[PromptMessage]) -> list[PromptMessage]:
    """Return the turn's prompt with a request for a plan before the question. Its beginning stays cached."""
    wish = PromptMessage("system", prompt_text("deep_think_plan"), speaker=Speaker.SYSTEM)
    return [*prompt[:-1], wish, prompt[-1]]


def with_plan(prompt: Sequence[PromptMessage], outline: str) -> list[PromptMessage]:
    """Insert the plan right before the question. It is escaped, because it may repeat text of recalled memories."""
    lines = "\n".join(filter(None, map(escape, outline.splitlines())))
    instructions = f"{prompt_text('deep_think_planned')}\n<plan>\n{lines}\n</plan>"
    return [*prompt[:-1], PromptMessage("system", instructions, speaker=Speaker.MODEL), prompt[-1]]


async def _plan(live: LiveAnswer, plan: Plan) -> str:
    """Return the plan, or "" if planning failed. The step then stores the reason."""
    step = await in_thread(begin_step, live, StepKind.PLAN)
    if not plan.model.capabilities.can_extract:  # the model was changed after the message was sent
        await in_thread(end_step, live, step, StepOutcome.ERROR, error=_TOO_SMALL)
        return ""
    await _work_on(live, step, PLAN_SECONDS, _outline(plan, step))
    return step.text


async def _outline(plan: Plan, step: Step) -> tuple[str, str]:
    most = int(PLAN_TOKENS * BYTES_PER_TOKEN)
    reply = await _reply(plan.model, plan_prompt(plan.prompt), most=most, tools=plan.offered)
    step.text = cut_to(reply, PLAN_TOKENS)
    return (StepOutcome.PLANNED, "") if step.text else (StepOutcome.ERROR, _BAD_REPLY)


async def _work_on(live: LiveAnswer, step: Step, seconds: float, work: Awaitable[tuple[str, str]]) -> None:
    """End the step with the (outcome, error message) of ``work``, also if it fails or takes more than ``seconds``."""
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
    await in_thread(end_step, live, step, outcome, error=why)


def _begin_check(live: LiveAnswer) -> Step:
    """Store the complete answer before its check, so that a crash loses only the check."""
    writing = Message.objects.filter(pk=live.pk, attempt=live.attempt, status=MessageStatus.STREAMING)
    try:
        writing.update(content=live.text)
    except DatabaseError:
        logger.warning("The database is away; an answer goes unchecked")
        unchecked = Step(message_id=live.pk, kind=StepKind.CHECK)
        end_step(live, unchecked, StepOutcome.ERROR, error=BROKEN)
        return unchecked
    return begin_step(live, StepKind.CHECK)


async def _compare(live: LiveAnswer, model: ChatModel, user_pk: int, step: Step) -> tuple[str, str]:
    """Compare the answer with memory, append a correction if needed, and return the outcome and an error message."""
    answer, memories = await in_thread(_what_to_compare, live, user_pk)
    if not answer.memory_enabled:
        return StepOutcome.OFF, ""
    if not memories:
        return StepOutcome.NOTHING, ""
    if not model.capabilities.can_extract:
        return StepOutcome.ERROR, _TOO_SMALL
    question = text_of(answer.reply_to) if answer.reply_to else ""
    text = live.text
    prompt, count = build_check(question, text, memories, model.capabilities)
    if not count:
        return StepOutcome.ERROR, _TOO_LONG
    reply = await _reply(model, prompt, most=MOST_REPLY, temperature=0.0)
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
    policy = DataPolicy.to_model(answer.chat.workspace, is_local=live.model_is_local, personal=personal)
    memories = memories_beside(answer, live.text, user, policy=policy, now=timezone.now())
    compared = AnswerFlags()
    compared.add_given(answer.chat.workspace_id, memories)
    mark_answer(answer.pk, compared)
    return answer, memories


async def _reply(
    model: ChatModel,
    messages: Sequence[PromptMessage],
    *,
    most: int,
    temperature: float | None = None,
    tools: Sequence[Tool] = (),
) -> str:
    """Return the model's reply, which is cut off after about ``most`` characters. A stop cancels the request."""
    text = ""
    stream = replied(model, messages, temperature=temperature, tools=tools, may_call=False)
    async with aclosing(stream) as deltas:
        async for delta in deltas:
            text = delta.text if delta.retracts else text + delta.text
            if len(text) > most:
                break
    return text.strip()
