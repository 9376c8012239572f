"""The writing of an answer: wait for attached files, prepare the prompt, run the model and its tools, store the answer.

Answers are written in an event loop of their own, so that they continue after the request ends.
"""

import asyncio
import atexit
import logging
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import DatabaseError, transaction
from django.urls import reverse
from django.utils import timezone
from opentelemetry.trace import StatusCode

from chat.answer_steps import begin_step, end_step
from chat.chats.services import notify_done, publish_chat_list
from chat.live_answers import (
    BROKEN,
    CUT,
    CUT_SENTENCE,
    PLAN,
    PLAN_SENTENCE,
    SAVED,
    LiveAnswer,
    all_live,
    as_interrupted,
    being_written,
    close_steps,
    in_thread,
    reason_of,
)
from chat.models import Message, MessageStatus
from chat.models.answer_steps import Step, StepKind, StepOutcome
from chat.modes.registry import get_mode
from chat.prompting.short_term_memory import update_short_term
from chat.rendering.stored_html import set_html
from chat.tools.loop import Plan
from chat.turns.compaction import queue_compaction
from chat.turns.prepare import prepare
from chat.turns.titles import queue_title
from memories.models import SourceType
from memories.writing.extraction_jobs import queue_distillation, queue_extraction
from memoryhub import pubsub
from memoryhub.llm.errors import EMPTY, ModelError
from memoryhub.llm.metering import metered
from memoryhub.monitoring import metrics, tracing
from workspaces.documents.reading_jobs import with_shares
from workspaces.model_choice import store_vision
from workspaces.models import Document, DocumentStatus, User
from workspaces.spending.usage_records import Bill, record

POLL = 0.5  # seconds
INDEXED_WITHIN = 10.0  # seconds to wait for vectors; until then a file is found by word search
UNREAD = (DocumentStatus.WAITING, DocumentStatus.READING)


async def _planned(live: LiveAnswer, user_pk: int) -> Plan:
    """Prepare the turn, after waiting for the files that the question names, at most ``FILE_WAIT_SECONDS``."""
    ready = await in_thread(_begin, live, user_pk)
    if isinstance(ready, Plan):
        return ready
    began = read_at = time.monotonic()
    while not live.stop_requested.is_set():
        now, states = time.monotonic(), {each.status for each in await in_thread(_named, live)}
        if states & set(UNREAD):
            read_at = now
        elif DocumentStatus.INDEXING not in states or now - read_at >= INDEXED_WITHIN:
            break
        if now - began >= settings.FILE_WAIT_SECONDS:
            break
        await asyncio.sleep(POLL)
    return await in_thread(_end, live, ready, user_pk)


def _named(live: LiveAnswer) -> list[Document]:
    question = Message.objects.filter(answers__pk=live.pk).values_list("only_documents", flat=True).first()
    return list(Document.objects.live().filter(public_id__in=question)) if question else []


def _begin(live: LiveAnswer, user_pk: int) -> Step | Plan:
    """Return the turn's plan or, if the question's files are not read yet, the step that shows the wait."""
    if live.attempt > 1:
        Step.objects.filter(message_id=live.pk, kind=StepKind.READING).delete()
    unready = [each for each in _named(live) if each.status in (*UNREAD, DocumentStatus.INDEXING)]
    is_unread = any(each.status in UNREAD for each in unready)
    if not is_unread and (not unready or settings.FILE_WAIT_SECONDS == 0):
        return prepare(live.pk, user_pk)
    Message.objects.filter(pk=live.pk).update(has_thoughts=True)
    return begin_step(live, StepKind.READING, findings=_findings(unready))


def _end(live: LiveAnswer, step: Step, user_pk: int) -> Plan:
    awaited = {finding["document"] for finding in step.findings}
    named = [each for each in _named(live) if each.public_id in awaited]
    step.findings = _findings(named)
    states = {each.status for each in named}
    if states & set(UNREAD):
        outcome = StepOutcome.TIMEOUT
    else:
        outcome = StepOutcome.ERROR if DocumentStatus.FAILED in states else StepOutcome.READ
    end_step(live, step, StepOutcome.STOPPED if live.stop_requested.is_set() else outcome)
    return prepare(live.pk, user_pk)


def _findings(documents: list[Document]) -> list[dict[str, object]]:
    """Return the id and state of each document, without its title, which may be forgotten later."""
    return [
        {"document": each.public_id, "status": each.status, "by_meaning": each.by_meaning}
        for each in with_shares(documents)
    ]


logger = logging.getLogger(__name__)
KEEP_EVERY = 0.3  # seconds between saves of a growing answer, the most that a crash loses
BEAT_EVERY = 0.9  # seconds between heartbeats of a silent model, and between checks for a stop request
FINISH_TRIES = 30  # attempts to store a finished answer, one per second, while the database is unavailable


@dataclass(frozen=True)
class _Outcome:
    status: str
    error_code: str = ""
    error: str = ""
    is_tight: bool = False  # the history is nearly too long, so older messages are to be summarised
    can_title: bool = False  # the model may name the chat


async def write_answer(live: LiveAnswer, user_pk: int) -> None:
    """Write one answer, from recall to storage. A failure is stored as the status of the answer."""
    with being_written(live), tracing.span("memoryhub.turn", {"memoryhub.attempt": live.attempt}) as traced:
        keeper = asyncio.create_task(_save_progress(live))
        try:
            outcome = await _ask_model(live, user_pk)
        finally:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
        await _finish(live, outcome, user_pk)
        traced.set_attributes({"memoryhub.status": outcome.status, "memoryhub.why": outcome.error_code})
        if outcome.status == MessageStatus.FAILED:
            traced.set_status(StatusCode.ERROR)
        logger.debug("Answer %s ended: %s %s", live.public_id, outcome.status, outcome.error_code)


async def _ask_model(live: LiveAnswer, user_pk: int) -> _Outcome:
    try:
        plan = await _planned(live, user_pk)
        live.model_is_local, live.account = plan.model.capabilities.local, plan.account
        tracing.add_attributes({"memoryhub.mode": plan.mode, "memoryhub.tools": len(plan.tools)})
        stopped, mode = asyncio.create_task(_stop_requested(live)), get_mode(plan.mode)
        with metered(live.meter):
            answering = asyncio.create_task(mode.answer(live, plan, user_pk))
        try:
            await asyncio.wait({stopped, answering}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                await answering
                if plan.connection is not None and plan.connection.sees is None:
                    await in_thread(store_vision, plan.connection, plan.model.sees)
            elif not live.is_whole:
                return _Outcome(MessageStatus.STOPPED)
        finally:
            for task in (stopped, answering):
                task.cancel()
            await asyncio.gather(stopped, answering, return_exceptions=True)
        if live.waits:
            return _Outcome(MessageStatus.DONE, PLAN, PLAN_SENTENCE)
        if not live.text.strip():
            return _Outcome(MessageStatus.FAILED, "model_bad_reply", EMPTY)
        # Models too small to extract cannot summarise, and miss the subject of a chat (docs/models.md).
        is_able = plan.model.capabilities.can_extract
        is_tight = is_able and (plan.is_tight or live.was_too_long)
        cut = (CUT, CUT_SENTENCE) if live.was_cut else ("", "")
        return _Outcome(MessageStatus.DONE, *cut, is_tight=is_tight, can_title=is_able)
    except ModelError as error:
        logger.warning("The model failed: %s", error.for_log)
        reason = reason_of(error, has_text=bool(live.text.strip()))
        return _Outcome(MessageStatus.FAILED, error.code, reason)
    except Exception:
        logger.exception("A turn failed")
        return _Outcome(MessageStatus.FAILED, "internal", f"{BROKEN} {SAVED}")


async def _stop_requested(live: LiveAnswer) -> None:
    """Wait until the person requests a stop. ``_save_progress`` notices one that another process received."""
    with live.reader() as woken:
        while not live.stop_requested.is_set():
            await woken.wait()
            woken.clear()


async def _save_progress(live: LiveAnswer) -> None:
    """Save the growing answer periodically, update its heartbeat, and check for a stop request from another process."""
    saved_text, silent = "", 0.0
    while True:
        await asyncio.sleep(KEEP_EVERY)
        silent += KEEP_EVERY
        text = live.text
        if text == saved_text and silent < BEAT_EVERY:
            continue
        try:
            if not await in_thread(_save_so_far, live, text):
                live.request_stop()
        except DatabaseError:
            logger.warning("The database is away; the answer is kept in memory meanwhile")
            continue
        saved_text, silent = text, 0.0


def _save_so_far(live: LiveAnswer, text: str) -> bool:
    """Store the text so far, and a heartbeat. Return False on a stop request, or if another attempt took over."""
    mine = Message.objects.filter(pk=live.pk, attempt=live.attempt, status=MessageStatus.STREAMING)
    with transaction.atomic():
        alive = mine.update(content=text, beat_at=timezone.now())
        pubsub.publish(live.channel, "grown")
    return bool(alive) and not mine.filter(stop_requested=True).exists()


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
        rows = Message.objects.select_related("chat__workspace", "chat__created_by", "reply_to")
        answer = rows.select_for_update(of=("self",)).filter(pk=live.pk).first()
        # The usage is recorded even if the answer was deleted.
        bill = None if live.account is None else record(live.account, live.meter, now=now)
        if answer is None:  # the workspace was deleted while the answer was written
            return
        if bill is not None:
            answer.usage = (Bill.from_json(answer.usage) + bill).as_json()
        if answer.attempt != live.attempt or answer.status != MessageStatus.STREAMING:
            answer.save(update_fields=["usage"])  # another attempt now owns the text
            return
        answer.content, answer.status, answer.finished_at = live.text, outcome.status, now
        answer.error_code, answer.error = outcome.error_code, outcome.error[:500]
        set_html(answer)
        fields = ["content", "html", "html_of", "status", "finished_at", "error_code", "error", "usage"]
        answer.save(update_fields=fields)
        pubsub.publish(live.channel, "finished")
        transaction.on_commit(metrics.TURNS.labels(outcome.status).inc)
        publish_chat_list(answer.chat)
        if answer.has_steps:
            close_steps(answer, now=now)
        user = User.objects.filter(pk=user_pk).first()
        if user is None:  # the account was deleted while the answer was written
            return
        if outcome.status != MessageStatus.STOPPED:
            notify_done(user, "answer", reverse("chat:chat", args=[answer.chat.public_id]), took=live.took)
        if outcome.is_tight:
            queue_compaction(answer, user)
        if outcome.can_title:
            queue_title(answer, user)
        if outcome.status == MessageStatus.DONE and outcome.error_code != PLAN and answer.memory_enabled:
            update_short_term(answer, now=now)
            _queue_mining(answer, user, now=now)


def _queue_mining(answer: Message, user: User, *, now: datetime) -> None:
    """Queue the extraction of memories from this turn and, after deep thinking or research, from the answer alone."""
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
    """Store every unfinished answer as interrupted, with its text so far, when the process exits."""
    for live in all_live():
        try:
            Message.objects.filter(pk=live.pk, attempt=live.attempt, status=MessageStatus.STREAMING).update(
                content=live.text, **as_interrupted(is_whole=live.is_whole, now=timezone.now())
            )
        except DatabaseError:
            logger.warning("An answer could not be closed; it will be found abandoned")


_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_running: set[Future[None]] = set()


def start(answer: Message, user_pk: int) -> None:
    """Start writing an answer in this process. Callable from any thread; returns at once."""
    submit(write_answer(LiveAnswer(answer.public_id, answer.pk, answer.attempt, answer.content), user_pk))


def submit(work: Coroutine[Any, Any, None]) -> Future[None]:
    """Run the coroutine in the event loop for turns, independent of the request."""
    future = asyncio.run_coroutine_threadsafe(work, _ensure_loop())
    with _lock:
        _running.add(future)
    future.add_done_callback(_finished)
    return future


def wait_until_idle(timeout: float) -> bool:
    """Wait for the running turns. Return False if some still run after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while _running and time.monotonic() < deadline:
        time.sleep(0.01)
    return not _running


def _ensure_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="turns", daemon=True).start()
            atexit.register(close_interrupted)
        return _loop


def _finished(future: Future[None]) -> None:
    with _lock:
        _running.discard(future)
    if not future.cancelled() and (error := future.exception()):
        logger.error("A turn ended in an error it did not handle: %s", type(error).__name__, exc_info=error)
