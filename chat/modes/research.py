"""Research: a run in the background that searches the workspace and reports with its sources; the answer waits."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.agents.runs import Wanted, start_run, stop_run
from chat.agents.shown import result_text, tasks_of
from chat.agents.stored_run import run_channel
from chat.answers.live import LiveAnswer
from chat.answers.threads import in_thread
from chat.models import Chat, Message
from chat.models.runs import STUCK, Run, RunMode, RunStatus
from chat.models.steps import Mode, Step, StepKind, StepOutcome
from chat.modes.mode import AnswerMode
from chat.modes.steps import begin, end, tell
from chat.tools.loop import Plan
from memories.models import Memory, SourceType
from memoryhub import events
from memoryhub.errors import Conflict, DomainError
from memoryhub.llm.base import Capabilities
from memoryhub.llm.errors import ModelError
from workspaces.access import get_workspace
from workspaces.models import User

POLL = 2.0  # seconds between looks where nothing is heard
SOURCE = re.compile(r"\b(mem|msg)_[A-Za-z0-9]{24}\b")
MARKS = {"done": "✓", "failed": "✗", "skipped": "-", "running": "…"}


class Research(AnswerMode):
    name = Mode.RESEARCH
    why_not = "The model in use cannot call tools, which research needs; a larger one has to be connected."
    distilled_as = SourceType.AUTO_RESEARCH

    def can(self, capabilities: Capabilities) -> bool:
        return capabilities.has_tools and capabilities.can_extract

    async def answer(self, live: LiveAnswer, plan: Plan, user_pk: int) -> None:
        """Start a run, show how far it is, and answer with its report. A stop of the answer stops the run."""
        step = await in_thread(begin, live, StepKind.RESEARCH)
        try:
            run = await in_thread(_start, live.pk, user_pk)
        except DomainError as error:
            await in_thread(end, live, step, StepOutcome.ERROR, error=error.message)
            raise ModelError(error.message) from None
        try:
            run = await _until_over(live, run, step)
        except asyncio.CancelledError:
            await asyncio.shield(in_thread(_stop, run, user_pk))
            raise
        if run.status == RunStatus.RUNNING:
            await in_thread(_stop, run, user_pk)
        if run.status != RunStatus.DONE:
            idle = _("The run was stopped: no background worker went on with it for ten minutes.")
            why = run.error or (idle if run.status == RunStatus.RUNNING else _("The run was stopped."))
            await in_thread(end, live, step, StepOutcome.ERROR, error=why)
            raise ModelError(why)
        live.append(await in_thread(_report, run, user_pk))
        await in_thread(end, live, step, StepOutcome.PLANNED)


def _start(answer_pk: int, user_pk: int) -> Run:
    """Raises a DomainError where nothing may be searched here, or the run cannot be started."""
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
    wanted = Wanted(
        answer.reply_to.content,
        RunMode.RESEARCH,
        inputs=_earlier(chat),
        answer=answer,
        is_private=chat.is_private,
    )
    return start_run(workspace, wanted, by=user, now=timezone.now())


def _earlier(chat: Chat) -> dict[str, str]:
    """A further question goes on from what the last research in this chat has found."""
    last = Run.objects.filter(answer__chat=chat, status=RunStatus.DONE).order_by("-pk").first()
    if last is None:
        return {}
    found = {f"earlier.{task.ref}": _text_of(last, task.ref) for task in last.tasks.all()}
    return {"earlier.question": last.objective} | {name: text for name, text in found.items() if text}


def _text_of(run: Run, task: str) -> str:
    entry = run.entries.filter(key=f"task:{task}").first()
    return entry.json[:8_000] if entry else ""


async def _until_over(live: LiveAnswer, run: Run, step: Step) -> Run:
    """The run when it has ended, or still running where nothing has been done for long: no worker is there."""
    async with events.subscription(run_channel(run.public_id)) as listening:
        while True:
            run, text = await in_thread(_state, run.pk)
            if text != step.text:
                step.text = text
                await in_thread(tell, live, step)
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
    """The report, in which the id of a source that its reader may see is a link to where that was said."""
    user, text = User.objects.get(pk=user_pk), result_text(run)
    ids = {match[0] for match in SOURCE.finditer(text)}
    chats = Chat.objects.visible_to(user).live().filter(workspace=run.workspace)
    places = dict(
        Message.objects.filter(chat__in=chats, public_id__in=ids).values_list("public_id", "chat__public_id")
    )
    links = {message: (chat, message) for message, chat in places.items()}
    memories = Memory.objects.visible_to(user).filter(public_id__in=ids)
    said = memories.values_list("public_id", "source_chat_id", "source_message_id")
    open_to = set(
        chats.filter(public_id__in=[chat for _id, chat, _m in said if chat]).values_list(
            "public_id", flat=True
        )
    )
    links |= {name: (chat, message) for name, chat, message in said if chat and chat in open_to}

    def linked(match: re.Match[str]) -> str:
        place = links.get(match[0])
        if place is None:
            return match[0]
        return f"[{match[0]}]({reverse('chat:chat', args=[place[0]])}#{place[1] or ''})"

    return SOURCE.sub(linked, text)
