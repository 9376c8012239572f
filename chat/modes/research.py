"""Research: a background run searches the workspace and writes a report with sources, which becomes the answer."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later

from chat.answer_steps import begin_step, end_step, store_step
from chat.live_answers import LiveAnswer, in_thread
from chat.models import Message, PersonalUse
from chat.models.answer_steps import Mode, Step, StepKind, StepOutcome
from chat.models.runs import STUCK, Run, RunMode, RunStatus
from chat.prompting.provenance import AnswerFlags, mark_answer
from chat.runs.events import run_channel
from chat.runs.run_display import result_text, tasks_of, with_sources
from chat.runs.run_entries import MemoryKind
from chat.runs.run_memory_tools import LONGEST_KEY, LONGEST_VALUE
from chat.runs.services import MOST_INPUTS, RunRequest, resume_run, start_run, stop_run
from chat.tools.loop import AnswerMode, Plan
from memories.models import SourceType
from memoryhub import pubsub
from memoryhub.errors import Conflict, DomainError
from memoryhub.llm.base import Capabilities
from memoryhub.llm.errors import ModelError
from workspaces.access import get_workspace
from workspaces.models import User

POLL = 2.0  # seconds between queries without a notification
MARKS = {"done": "✓", "failed": "✗", "skipped": "-", "running": "…"}


class Research(AnswerMode):
    name = Mode.RESEARCH
    about = later("Research: search the workspace in several steps and report with sources. Takes minutes.")
    why_not = later(
        "Research needs a model that can call tools, and the one in use cannot. Connect a larger one."
    )
    distilled_as = SourceType.AUTO_RESEARCH
    may_wait = True

    def can(self, capabilities: Capabilities) -> bool:
        return capabilities.has_tools and capabilities.can_extract

    async def answer(self, live: LiveAnswer, plan: Plan, user_pk: int) -> None:
        """Start a run, show its progress, and answer with its report. Stopping the answer stops the run.

        If the run's plan waits for review, the answer ends, and continues after approval. Raises ModelError if the run
        cannot be started or fails.
        """
        step = await in_thread(begin_step, live, StepKind.RESEARCH)
        try:
            run = await in_thread(_start, live.pk, user_pk)
        except DomainError as error:
            await in_thread(end_step, live, step, StepOutcome.ERROR, error=error.for_all)
            raise ModelError(error.for_all) from None
        try:
            run = await _until_over(live, run, step)
        except asyncio.CancelledError:
            await asyncio.shield(in_thread(_stop, run, user_pk))
            raise
        if run.status == RunStatus.WAITING:
            await in_thread(step.delete)
            live.waits = True
            return
        if run.status == RunStatus.RUNNING:
            await in_thread(_stop, run, user_pk)
        if run.status != RunStatus.DONE:
            idle = _("The run was stopped: no background worker went on with it for ten minutes.")
            why = run.error or (idle if run.status == RunStatus.RUNNING else _("The run was stopped."))
            await in_thread(end_step, live, step, StepOutcome.ERROR, error=why)
            raise ModelError(why)
        live.append(await in_thread(_report, run, user_pk))
        await in_thread(end_step, live, step, StepOutcome.PLANNED)


def _start(answer_pk: int, user_pk: int) -> Run:
    """Start the run. Raises DomainError if research is not possible in this chat or the run cannot be started."""
    answer = Message.objects.select_related("chat__workspace", "reply_to").get(pk=answer_pk)
    assert answer.reply_to is not None, "an answer replies to a message"
    chat, user = answer.chat, User.objects.get(pk=user_pk)
    if chat.is_temporary:
        raise Conflict(
            _("A temporary chat keeps nothing, and research keeps what it finds. Start it elsewhere.")
        )
    if not answer.memory_enabled:
        raise Conflict(_("Research searches memory, which is off in this chat. Turn it on and retry."))
    workspace = get_workspace(user, chat.workspace.public_id)
    if run := _begun(answer, user):
        return run
    # Local-only text is left out, whichever model the new run uses.
    told = chat.messages.filter(stays_here=False)
    if not chat.is_private:  # others read the new run, so personal results are left out
        told = told.filter(personal=PersonalUse.NONE)
    last = Run.objects.filter(answer__in=told, status=RunStatus.DONE).order_by("-pk").first()
    wanted = RunRequest(
        answer.reply_to.content,
        RunMode.RESEARCH,
        inputs=_earlier(last) if last else {},
        reviews_plan=True,
        answer=answer,
        web_urls=last.web_urls if last else (),
        held_personal=last is not None and last.held_personal,
    )
    run = start_run(workspace, wanted, by=user, now=timezone.now())
    if run.held_personal:
        mark_answer(answer.pk, AnswerFlags(personal=PersonalUse.HELD))
    return run


def _begun(answer: Message, user: User) -> Run | None:
    """Return the run that an earlier attempt at this answer started, if it can be used again, else None.

    A run that the user stopped is resumed. A run whose plan waits for review is stopped, so that a new one is started.
    """
    run = answer.runs.first()
    if run is not None and run.status == RunStatus.WAITING:
        _stop(run, user.pk)
    elif run is not None and run.status in (RunStatus.RUNNING, RunStatus.DONE):
        return run
    elif run is not None and run.status == RunStatus.STOPPED and run.plan and not run.error:
        with suppress(DomainError):
            return resume_run(run, by=user, now=timezone.now())
    return None


def _earlier(last: Run) -> dict[str, Any]:
    """Return the question, results and notes of the previous research in this chat as inputs for the next one."""
    entries = last.entries.filter(
        kind__in=[MemoryKind.TASK_RESULT, MemoryKind.SHARED], size__lte=LONGEST_VALUE
    )
    newest = reversed(entries.order_by("-created_at", "-pk")[: MOST_INPUTS - 1])
    rows = {f"earlier.{row.key.partition(':')[2]}"[:LONGEST_KEY].replace("[", "("): row for row in newest}
    return {"earlier.question": last.objective} | {name: json.loads(row.json) for name, row in rows.items()}


async def _until_over(live: LiveAnswer, run: Run, step: Step) -> Run:
    """Wait until the run has ended, or makes no progress because no worker is active, and return it."""
    async with pubsub.subscription(run_channel(run.public_id)) as listening:
        while True:
            run, text = await in_thread(_state, run.pk)
            if text != step.text:
                step.text = text
                await in_thread(store_step, live, step)
            if run.status != RunStatus.RUNNING or run.progressed_at < timezone.now() - STUCK:
                return run
            await listening.get(POLL)


def _state(run_pk: int) -> tuple[Run, str]:
    run = Run.objects.get(pk=run_pk)
    lines = [f"{MARKS.get(task['status'], '·')} {task['title']}" for task in tasks_of(run)]
    return run, "\n".join(lines)


def _stop(run: Run, user_pk: int) -> None:
    with suppress(DomainError):
        stop_run(run, by=User.objects.get(pk=user_pk), now=timezone.now())


def _report(run: Run, user_pk: int) -> str:
    run.refresh_from_db()
    return with_sources(run, result_text(run), User.objects.get(pk=user_pk))
