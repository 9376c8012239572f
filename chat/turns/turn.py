"""One turn: recall, prompt, model and its tools, answer. What the person sees of it comes from ``turns.stream``."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import DatabaseError, transaction
from django.utils import timezone

from chat.answers.live import LiveAnswer, all_live, being_written
from chat.answers.problems import reason_of
from chat.answers.state import as_interrupted, message_channel
from chat.answers.threads import in_thread
from chat.chats.actions import announce
from chat.chats.personal import personal_allowed
from chat.models import Message, MessageStatus
from chat.modes.registry import get_mode
from chat.modes.steps import close_unfinished
from chat.prompting.compaction import can_compact, latest_compaction, queue_compaction
from chat.prompting.context import (
    build_prompt,
    leave_out_what_does_not_fit,
    room_beside_answer,
    room_for_recalled,
)
from chat.prompting.short_term import ShortTerm, short_term_for, touch
from chat.prompting.stored import conversation_of
from chat.rendering.rendered import set_html
from chat.tools import tools_for
from chat.tools.loop import Plan
from chat.turns.chosen_model import chosen_for_chat
from memories.models import SourceType
from memories.recalling.ranking import injection_threshold
from memories.recalling.recall import Recall, Recalled, recall
from memories.recalling.receipts import split_recall, store_receipt
from memories.usage import count_live
from memories.writing.extracting import queue_distillation, queue_extraction
from memoryhub import events, metrics
from memoryhub.llm.errors import ModelError
from workspaces.leaving_machine import Reach
from workspaces.models import User

logger = logging.getLogger(__name__)
KEEP_EVERY = 0.3  # seconds between saves of a growing answer: what a crash can lose
BEAT_EVERY = 0.9  # seconds between signs of life while the model is silent, and to hear a stop from elsewhere
FINISH_TRIES = 30  # seconds a finished answer waits for a database that is away
LEFT_OUT = 5  # how many recalled but unused memories a receipt keeps


@dataclass(frozen=True)
class _Outcome:
    status: str
    error_code: str = ""
    error: str = ""
    is_tight: bool = False  # the history filled its room: the older part is to be summarised


async def write_answer(answer_pk: int, attempt: int, user_pk: int) -> None:
    """Write one answer from recall to receipt. Every failure ends in a stored status; the message is never lost."""
    public_id = await in_thread(_public_id, answer_pk)
    if public_id is None:
        return
    live = LiveAnswer(public_id, answer_pk, attempt)
    with being_written(live):
        keeper = asyncio.create_task(_keep(live))
        try:
            outcome = await _ask_model(live, user_pk)
        finally:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
        await _finish(live, outcome, user_pk)


async def _ask_model(live: LiveAnswer, user_pk: int) -> _Outcome:
    try:
        plan = await in_thread(_prepare, live.pk, user_pk)
        live.model_is_local = plan.model.capabilities.local
        stopped = asyncio.create_task(_stop_requested(live))
        answering = asyncio.create_task(get_mode(plan.mode).answer(live, plan, user_pk))
        try:
            await asyncio.wait({stopped, answering}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                await answering
            elif not live.is_whole:
                return _Outcome(MessageStatus.STOPPED)
        finally:
            for task in (stopped, answering):
                task.cancel()
            await asyncio.gather(stopped, answering, return_exceptions=True)
        if not live.text.strip():
            return _Outcome(
                MessageStatus.FAILED, "model_bad_reply", f"{plan.model.name} sent an empty answer."
            )
        is_tight = (plan.is_tight or live.was_too_long) and can_compact(plan.model.capabilities)
        return _Outcome(MessageStatus.DONE, is_tight=is_tight)
    except ModelError as error:
        logger.warning("The model failed: %s", error.for_log)
        reason = reason_of(error, has_text=bool(live.text.strip()))
        return _Outcome(MessageStatus.FAILED, error.code, reason)
    except Exception:
        logger.exception("A turn failed")
        return _Outcome(MessageStatus.FAILED, "internal", "Something went wrong here. Your message is saved.")


async def _stop_requested(live: LiveAnswer) -> None:
    """Returns when the person wants it to stop; hears of it from this process and, through _keep, from others."""
    with live.reader() as woken:
        while not live.stop_requested.is_set():
            await woken.wait()
            woken.clear()


async def _keep(live: LiveAnswer) -> None:
    """Save the growing answer now and then, show that it is alive, and hear a stop from another process."""
    kept, silent = "", 0.0
    while True:
        await asyncio.sleep(KEEP_EVERY)
        silent += KEEP_EVERY
        text = live.text
        if text == kept and silent < BEAT_EVERY:
            continue
        try:
            if not await in_thread(_save_so_far, live, text):
                live.request_stop()
        except DatabaseError:
            logger.warning("The database is away; the answer is kept in memory meanwhile")
            continue
        kept, silent = text, 0.0


def _save_so_far(live: LiveAnswer, text: str) -> bool:
    """False when this process should stop writing: on request, or because the answer was taken from it."""
    mine = Message.objects.filter(pk=live.pk, attempt=live.attempt, status=MessageStatus.STREAMING)
    with transaction.atomic():
        alive = mine.update(content=text, beat_at=timezone.now())
        events.publish(message_channel(live.public_id), "grown")
    return bool(alive) and not mine.filter(stop_requested=True).exists()


def _public_id(answer_pk: int) -> str | None:
    return Message.objects.filter(pk=answer_pk).values_list("public_id", flat=True).first()


def _prepare(answer_pk: int, user_pk: int) -> Plan:
    """What the model will see. Recall, and its receipt, when memory is on; trouble there never costs the turn."""
    chat = ("chat__workspace__connection", "chat__agent", "chat__connection")
    answer = Message.objects.select_related(*chat, "reply_to").get(pk=answer_pk)
    user = User.objects.get(pk=user_pk)
    model = chosen_for_chat(answer.chat, user).ask()
    question = answer.reply_to
    assert question is not None
    question.chat = answer.chat
    now = timezone.now()
    tools = tools_for(answer.chat, model.capabilities, memory_enabled=answer.memory_enabled)
    offered = [tool.tool for tool in tools]
    reserve = get_mode(answer.mode).reserve()
    personal = answer.memory_enabled and personal_allowed(answer.chat, user)
    reach = Reach.to_model(answer.chat.workspace, is_local=model.capabilities.local, personal=personal)
    used: list[Recalled] = []
    if answer.memory_enabled:
        try:
            room = room_for_recalled(answer.chat.agent, model.capabilities, offered, reserve=reserve, now=now)
            used = _recall_for(answer, question, user, room=room, reach=reach)
        except Exception:
            logger.exception("Recall failed; the turn goes on without it, and says so")
            _say_recall_failed(answer, user)
    if answer.attempt > 1:
        answer.tool_calls.all().delete()  # those of the attempt that this one replaces
        answer.steps.all().delete()
    short_term = ShortTerm()
    if answer.memory_enabled:
        room = room_beside_answer(model.capabilities)
        short_term = short_term_for(question, user, can_update=bool(tools), room=room, reach=reach, now=now)
    built = build_prompt(
        conversation_of(question, latest_compaction(answer.chat)),
        used,
        model.capabilities,
        now=now,
        tools=offered,
        short_term=short_term,
        reserve=reserve,
    )
    Message.objects.filter(pk=answer_pk).update(model=model.name[:200], seen_from=built.seen_from)
    return Plan(
        model,
        built.messages,
        tools,
        is_tight=built.is_tight,
        mode=answer.mode,
        history=built.history,
        begins=built.begins,
    )


def _say_recall_failed(answer: Message, user: User) -> None:
    """An empty receipt with the reason: an answer that could not look at memory does not pass for one that did."""
    nothing = Recall(degraded="memory could not be searched")
    with suppress(DatabaseError):
        store_receipt(
            answer.public_id, nothing, [], workspace=answer.chat.workspace, user=user, threshold=0.0
        )


def _recall_for(answer: Message, question: Message, user: User, *, room: int, reach: Reach) -> list[Recalled]:
    workspace, limit = answer.chat.workspace, settings.RECALL_LIMIT
    threshold = injection_threshold(
        settings.RECALL_THRESHOLD, count_live(workspace, user, personal=reach.personal)
    )
    agent = answer.chat.agent
    found = recall(
        question.content,
        workspace,
        user,
        limit=limit + LEFT_OUT,
        agent=agent,
        reach=reach,
        withheld=limit,
    )
    verdicts = split_recall(found, threshold=threshold, limit=limit)
    verdicts = leave_out_what_does_not_fit(found.items, verdicts, room)
    store_receipt(answer.public_id, found, verdicts, workspace=workspace, user=user, threshold=threshold)
    return [item for item, (used, _) in zip(found.items, verdicts, strict=True) if used]


async def _finish(live: LiveAnswer, outcome: _Outcome, user_pk: int) -> None:
    for left in range(FINISH_TRIES, 0, -1):
        try:
            await in_thread(_store_outcome, live, outcome, user_pk)
            return
        except DatabaseError:
            if left == 1:
                raise
            await asyncio.sleep(1)


def _store_outcome(live: LiveAnswer, outcome: _Outcome, user_pk: int) -> None:
    now = timezone.now()
    with transaction.atomic():
        answer = (
            Message.objects.select_for_update(of=("self",))
            .select_related("chat__workspace", "chat__created_by", "reply_to")
            .filter(pk=live.pk)
            .first()
        )
        if answer is None:  # its workspace was deleted while it was written
            return
        if answer.attempt != live.attempt or answer.status != MessageStatus.STREAMING:
            return
        answer.content, answer.status, answer.finished_at = live.text, outcome.status, now
        answer.error_code, answer.error = outcome.error_code, outcome.error[:500]
        set_html(answer)
        kept = ["content", "html", "html_of", "status", "finished_at", "error_code", "error"]
        answer.save(update_fields=kept)
        events.publish(message_channel(live.public_id), "finished")
        transaction.on_commit(metrics.TURNS.labels(outcome.status).inc)
        announce(answer.chat)
        if answer.has_steps:
            close_unfinished(answer)
        user = User.objects.filter(pk=user_pk).first()
        if user is None:  # their account was deleted while it was written
            return
        if outcome.is_tight:
            queue_compaction(answer, user)
        if outcome.status == MessageStatus.DONE and answer.memory_enabled:
            touch(answer, now=now)
            _queue_mining(answer, user, now=now)


def _queue_mining(answer: Message, user: User, *, now: datetime) -> None:
    """What was said in this turn is mined; what was thought through for it as well, as an output."""
    turn: dict[str, Any] = {
        "workspace": answer.chat.workspace,
        "user": user,
        "chat_id": answer.chat.public_id,
        "message_id": answer.public_id,
        "now": now,
    }
    queue_extraction(**turn, source_type=SourceType.AUTO_CHAT)
    if source_type := get_mode(answer.mode).distilled_as:
        queue_distillation(**turn, source_type=source_type, text=answer.content)


def close_interrupted() -> None:
    """For the end of the process: store every growing answer as interrupted, with its text so far."""
    for live in all_live():
        try:
            Message.objects.filter(pk=live.pk, attempt=live.attempt, status=MessageStatus.STREAMING).update(
                content=live.text, **as_interrupted(is_whole=live.is_whole, now=timezone.now())
            )
        except DatabaseError:
            logger.warning("An answer could not be closed; it will be found abandoned")
