"""Steps of an answer (thoughts, plans, checks): storage, and what each reader may see.

A failure to store a step does not fail the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.answers.live import LiveAnswer, in_thread
from chat.answers.state import message_channel
from chat.answers.tool_calls import with_memories
from chat.models import Message
from chat.models.steps import Step, StepKind, StepOutcome
from memories.models import Memory
from memories.recalling.receipts import for_everyone
from memoryhub import events
from memoryhub.languages import translated
from workspaces.models import Document, DocumentQuerySet, DocumentStatus, User


@dataclass(frozen=True)
class Finding:
    """A memory compared with a statement of the answer. ``quote`` is empty if the model did not quote the answer
    exactly.
    """

    quote: str
    memory: Memory
    agrees: bool


@dataclass(frozen=True)
class ShownStep:
    """A step with its memories that the reader may see and that are not forgotten."""

    step: Step
    memories: tuple[Memory, ...]
    is_over: bool = True  # False while its answer is being written

    @property
    def line(self) -> str:
        return line_of(self.step, is_over=self.is_over)

    @property
    def is_check(self) -> bool:
        return self.step.kind == StepKind.CHECK

    @property
    def has_more(self) -> bool:
        """Whether the step has a plan or thought to read, or memories that were compared."""
        return bool(self.memories) and self.step.status == "done" if self.is_check else bool(self.step.text)

    @property
    def findings(self) -> list[Finding]:
        """The findings, contradictions first."""
        by_id = {memory.public_id: memory for memory in self.memories}
        seen = [
            Finding(found["quote"], by_id[found["memory_id"]], found["agrees"])
            for found in self.step.findings
            if found["memory_id"] in by_id
        ]
        return sorted(seen, key=lambda found: found.agrees)

    @property
    def others(self) -> list[Memory]:
        """The compared memories that neither confirm nor contradict the answer."""
        spoke = {found["memory_id"] for found in self.step.findings}
        return [memory for memory in self.memories if memory.public_id not in spoke]

    @property
    def differs(self) -> bool:
        return outcome_of(self.step) == StepOutcome.DIFFERS

    @property
    def icon(self) -> str:
        if self.differs:
            return "triangle-alert"
        if self.step.status == "failed" or self.step.outcome == StepOutcome.OFF:
            return "info"
        return "memory" if self.is_check else "check"


def outcome_of(step: Step) -> str:
    """Return the outcome that the reader may know. Comparisons with other people's personal memories are left out.

    A corrected answer is visible to all readers, so its outcome is always returned.
    """
    if step.outcome not in (StepOutcome.AGREES, StepOutcome.DIFFERS) or step.text:
        return step.outcome
    if not step.known:
        return StepOutcome.NOTHING
    return StepOutcome.DIFFERS if _differing(step) else StepOutcome.AGREES


def _differing(step: Step) -> int:
    return sum(not found["agrees"] and found["memory_id"] in step.known for found in step.findings)


def line_of(step: Step, *, is_over: bool = False) -> str:
    """Return one line that says what was done and the result. The line never contains the text of a memory."""
    if step.kind == StepKind.READING:
        return _awaited(step, is_over=is_over)
    if step.kind == StepKind.RESEARCH:
        return _researched(step, is_over=is_over)
    if step.kind == StepKind.THOUGHT:
        return _("Thinking…") if not step.outcome and not is_over else _("Thought about the answer")
    if not step.outcome and not is_over:
        return _("Checking against memory…") if step.kind == StepKind.CHECK else _("Planning the answer…")
    return _checked(step) if step.kind == StepKind.CHECK else _planned(step)


def _researched(step: Step, *, is_over: bool) -> str:
    if step.outcome == StepOutcome.PLANNED:
        return _("Researched")
    if step.outcome == StepOutcome.ERROR:
        return _("Research was not finished. %(why)s") % {"why": translated(step.error)}
    return _("Research was stopped") if step.outcome or is_over else _("Researching…")


def _awaited(step: Step, *, is_over: bool) -> str:
    """Return the line about files that a message waited for: which are being read, and at the end which were not."""

    def named(*statuses: str) -> str:
        ids = [found["document"] for found in step.findings if not statuses or found["status"] in statuses]
        return ", ".join(step.titles.get(each) or _("a file") for each in ids)

    if not step.outcome and not is_over:
        return _("Reading %(files)s …") % {"files": named()}
    said = []
    if late := named(DocumentStatus.WAITING, DocumentStatus.READING):
        said.append(_("Not read in time, so the answer does without: %(files)s.") % {"files": late})
    if failed := named(DocumentStatus.FAILED):
        said.append(_("Could not be read, so the answer does without: %(files)s.") % {"files": failed})
    if words := named(DocumentStatus.INDEXING):
        shares = [
            found["by_meaning"] for found in step.findings if found["status"] == DocumentStatus.INDEXING
        ]
        said.append(
            _("Read %(files)s. Found by words; by meaning %(percent)s %%.")
            % {"files": words, "percent": int(100 * min(shares))}
        )
    if read := named(DocumentStatus.READY):
        said.append(_("Read %(files)s.") % {"files": read})
    return " ".join(said) or _("The files are gone.")


def _planned(step: Step) -> str:
    if step.outcome == StepOutcome.PLANNED:
        return _("Planned the answer")
    if step.outcome == StepOutcome.TIMEOUT:
        return _("Answered without a plan. It took too long.")
    if step.outcome == StepOutcome.ERROR:
        return _("Answered without a plan. %(why)s") % {"why": translated(step.error)}
    return _("The plan was not finished")


def _checked(step: Step) -> str:
    outcome = outcome_of(step)
    if outcome == StepOutcome.NOTHING:
        return _("Nothing in memory to check the answer against")
    if step.outcome == StepOutcome.OFF:
        return _("Not checked against memory: it is off")
    if step.outcome == StepOutcome.TIMEOUT:
        return _("Not checked against memory. It took too long.")
    if step.outcome == StepOutcome.ERROR:
        return _("Not checked against memory. %(why)s") % {"why": translated(step.error)}
    if step.outcome not in (StepOutcome.AGREES, StepOutcome.DIFFERS):
        return _("Not checked against memory: it was stopped")
    count = len(step.known)
    with_what = ngettext("Checked against %(count)d memory", "Checked against %(count)d memories", count)
    with_what = with_what % {"count": count} if count else _("Checked against memory")
    return f"{with_what} · {_verdict(step)}"


def _verdict(step: Step) -> str:
    differ = _differing(step)
    if not differ:
        return _("corrected") if step.text else _("nothing differs")
    said = ngettext("%(count)d statement differs", "%(count)d statements differ", differ) % {"count": differ}
    return f"{said}, {_('corrected')}" if step.text else said


def event_of(step: Step) -> dict[str, Any]:
    """Return the stream event's data for a step. It has only the number of memories, without personal ones, since every
    reader receives the same event. One query if memories were compared.
    """
    step.known = for_everyone(step.memory_ids)
    if step.kind == StepKind.READING:
        _load_titles([step], _readable_by_all(step))
    return {
        "id": step.public_id,
        "kind": step.kind,
        "status": step.status,
        "outcome": outcome_of(step) or None,
        "text": line_of(step),
        "plan": None if step.kind in (StepKind.CHECK, StepKind.READING) else step.text,
        "count": len(step.known),
    }


def steps_of(messages: Iterable[Message], user: User) -> dict[int, list[tuple[Step, tuple[Memory, ...]]]]:
    """Return the steps of these answers by message key, each with its memories that ``user`` may see and that are not
    forgotten.

    Two queries, one more if files were waited for, and none if there are no steps.
    """
    thought = [message.pk for message in messages if message.has_steps]
    if not thought:
        return {}
    steps = list(Step.objects.filter(message_id__in=thought))
    _load_titles(steps, Document.objects.visible_to(user).live())
    return with_memories(steps, user)


def _readable_by_all(step: Step) -> DocumentQuerySet:
    """Return the documents that all readers of the step's chat may see. A private chat's only reader is its creator."""
    chats = Message.objects.filter(pk=step.message_id, chat__is_private=True)
    return Document.objects.live().filter(Q(owner=None) | Q(owner__in=chats.values("chat__created_by")))


def _load_titles(steps: Iterable[Step], readable: DocumentQuerySet) -> None:
    """Set the ``titles`` of the files that each answer waited for. One query if there are any."""
    waits = [step for step in steps if step.kind == StepKind.READING]
    wanted = {found["document"] for step in waits for found in step.findings}
    titles = dict(readable.filter(public_id__in=wanted).values_list("public_id", "title")) if wanted else {}
    for step in waits:
        step.titles = titles


logger = logging.getLogger(__name__)


def begin_step(live: LiveAnswer, kind: str, **given: Any) -> Step:
    """Store a new running step. Blocks."""
    step = Step(message_id=live.pk, kind=kind, **given)
    _store(live, step)
    return step


def end_step(live: LiveAnswer, step: Step, outcome: str, *, error: str = "") -> None:
    """Store the step's outcome and text. Blocks."""
    step.outcome, step.error = outcome, error[:200]
    step.finished_at = timezone.now()
    _store(live, step)


def store_progress(live: LiveAnswer, step: Step) -> None:
    """Store the step's current text. Blocks."""
    _store(live, step)


def _store(live: LiveAnswer, step: Step) -> None:
    try:
        with transaction.atomic():
            step.save()
            events.publish(message_channel(live.public_id), "grown")
    except DatabaseError:  # the connection is lost, or the chat was deleted
        logger.warning("A step of an answer could not be stored")
    live.set_event("step", step.public_id, event_of(step))


def close_unfinished(answer: Message) -> None:
    """Mark steps that still run as stopped when their answer ends."""
    running = Step.objects.filter(message=answer, outcome="")
    running.update(outcome=StepOutcome.STOPPED, finished_at=timezone.now())


MOST_THOUGHT = 20_000  # characters stored per thought


class Thinking:
    """The model's thought before one reply. Readers receive an event at its start and end only, since it is collapsed
    between.
    """

    def __init__(self, live: LiveAnswer) -> None:
        self._live, self._text = live, ""
        self._step: Step | None = None

    async def add(self, thought: str) -> None:
        if self._step is None and (self._text + thought).strip():
            self._step = await in_thread(_begin, self._live)
        if len(self._text) < MOST_THOUGHT:
            self._text += thought

    async def close(self) -> None:
        """End the thought when the answer or a tool call begins. A second call has no effect."""
        step, self._step = self._step, None
        if step is not None:
            step.text, self._text = self._text.strip()[:MOST_THOUGHT], ""
            await in_thread(end_step, self._live, step, StepOutcome.THOUGHT)


def _begin(live: LiveAnswer) -> Step:
    Message.objects.filter(pk=live.pk).update(has_thoughts=True)
    return begin_step(live, StepKind.THOUGHT)
