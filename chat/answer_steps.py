"""Steps (thoughts, plans, checks) and tool calls of an answer: how they are stored, and what each reader may see."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import DatabaseError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.live_answers import LiveAnswer, in_thread
from chat.models import Message, ToolCall, ToolOutcome, ToolStatus
from chat.models.answer_steps import Step, StepKind, StepOutcome
from chat.prompting.prompt_text import one_line
from chat.prompting.short_term_memory import TOOL_NAME
from memories.models import Memory
from memories.recalling.recall import for_everyone
from memoryhub import pubsub
from memoryhub.localization import translated
from workspaces.models import Artifact, Document, DocumentQuerySet, DocumentStatus, User

SAVES = ("x_save_memory", "ltm_remember")
ARTIFACTS = ("write_artifact",)
RECALLS = ("x_recall_memory", "ltm_recall")
SEARCH = "x_workspace_search"
_DONE = (ToolOutcome.SAVED, ToolOutcome.DUPLICATE)
N = TypeVar("N", ToolCall, Step)
QUERY_SHOWN = 120  # characters


@dataclass(frozen=True)
class ShownCall:
    call: ToolCall
    is_over: bool  # False while its answer is being written
    artifact: Artifact | None  # the artifact it wrote or changed, if the reader may see it

    @property
    def line(self) -> str:
        return call_line(self.call, is_over=self.is_over)

    @property
    def saved(self) -> Memory | None:
        """The memory that the call stored and that can be undone, or None."""
        return next(iter(self.call.memories), None) if self.call.outcome == ToolOutcome.SAVED else None

    @property
    def may_undo(self) -> bool:
        """Whether the artifact can be restored to before the call: it still has the version that the call wrote."""
        return self.artifact is not None and self.artifact.version == self.call.arguments.get("version")

    @property
    def icon(self) -> str:
        if self.call.status == ToolStatus.FAILED:
            return "info"
        if self.call.outcome == ToolOutcome.NOTED:
            return "clock"
        if self.call.name in ARTIFACTS or is_reading(self.call):
            return "file-text"
        return "memory" if self.call.name in SAVES else "search"


def count_of(call: ToolCall) -> int:
    """Return the number of results of a tool call, without memories that the reader may not see."""
    return max(0, call.count - len(set(call.memory_ids).difference(call.known)))


def call_line(call: ToolCall, *, is_over: bool = False) -> str:
    """Return one line about a tool call and its result, without memory texts. ``is_over``: the answer is finished."""
    if call.status == ToolStatus.RUNNING:
        return (_("%(tool)s did not finish") % {"tool": call.name}) if is_over else _running(call)
    if call.name in ARTIFACTS and (call.outcome in _DONE or call.arguments.get("tells")):
        return _of_artifact(call)
    if call.outcome == ToolOutcome.FOUND and is_reading(call):
        return _("Read an artifact") if _asked(call).startswith("art_") else _("Read a document")
    if call.outcome == ToolOutcome.SAVED:
        return _("Saved to memory")
    if call.outcome == ToolOutcome.DUPLICATE:
        return _("Already in memory")
    if call.outcome == ToolOutcome.FOUND and call.name in (*RECALLS, SEARCH):
        count = count_of(call)
        count_text = ngettext("%(count)d found", "%(count)d found", count) % {"count": count}
        return f"{_searched(call)} · {count_text if count else _('nothing found')}"
    if call.outcome == ToolOutcome.NOTED and call.name in SAVES:
        return _("Proposed for memory: someone has to approve it")
    if call.outcome == ToolOutcome.NOTED and call.name == TOOL_NAME:
        return _("Noted a summary of this chat")
    if call.name in SAVES:
        return _("Not saved to memory")
    template = _("%(tool)s did not work") if call.status == ToolStatus.FAILED else _("Used %(tool)s")
    return template % {"tool": call.name}


def _of_artifact(call: ToolCall) -> str:
    if call.arguments.get("tells"):
        return _("Left an artifact as it was, as others read it and this answer draws on something personal")
    if call.outcome == ToolOutcome.DUPLICATE:
        return _("Left an artifact as it was")
    if call.arguments.get("id"):
        return _("Changed an artifact")
    return _("Saved an artifact, only for you") if call.arguments.get("personal") else _("Saved an artifact")


def is_reading(call: ToolCall) -> bool:
    """Return whether the call opened a document or artifact by its id, instead of searching."""
    return call.name == SEARCH and _asked(call).startswith(("doc_", "art_"))


def _asked(call: ToolCall) -> str:
    return str(call.arguments.get("query", ""))


def _running(call: ToolCall) -> str:
    if call.name in SAVES:
        return _("Saving to memory…")
    if call.name in RECALLS:
        return _("Searching memory…")
    if call.name == SEARCH:
        return _("Searching the workspace…")
    if call.name in ARTIFACTS:
        return _("Writing an artifact…")
    if call.name == TOOL_NAME:
        return _("Noting a summary…")
    return _("Using %(tool)s…") % {"tool": call.name}


def _searched(call: ToolCall) -> str:
    query = one_line(_asked(call))
    query = query if len(query) <= QUERY_SHOWN else query[: QUERY_SHOWN - 1] + "…"
    if call.name in RECALLS:
        return _("Searched memory for “%(query)s”") % {"query": query}
    return _("Searched the workspace for “%(query)s”") % {"query": query}


def call_event(call: ToolCall) -> dict[str, Any]:
    """Return the data of the stream event for a tool call. At most one query.

    All readers of the chat receive it, so its text counts only memories that everyone in the workspace may see.
    """
    call.known = for_everyone(call.memory_ids)
    return {
        "id": call.public_id,
        "name": call.name,
        "status": call.status,
        "outcome": call.outcome or None,
        "text": call_line(call),
        "count": count_of(call),
    }


def artifacts_of(calls: Iterable[ToolCall], user: User) -> dict[str, Artifact]:
    """Return the artifacts that these calls created or changed, by id, if ``user`` may see them. At most one query."""
    wanted = {str(call.arguments["artifact"]) for call in calls if call.arguments.get("artifact")}
    rows = Artifact.objects.visible_to(user).live().filter(public_id__in=wanted)
    return {each.public_id: each for each in rows.select_related("workspace").defer("content", "gist")}


def calls_of(message_pks: Sequence[int], user: User) -> dict[int, list[ToolCall]]:
    """Return the tool calls of these answers by the message's primary key, each with its ``memories``. Two queries."""
    return _with_memories(ToolCall.objects.filter(message_id__in=message_pks), user)


def _with_memories(entries: Iterable[N], user: User) -> dict[int, list[N]]:
    """Group entries by the message's key, with their unforgotten memories that ``user`` may see. At most one query."""
    entries = list(entries)
    wanted = {memory_id for each in entries for memory_id in each.memory_ids}
    rows = Memory.objects.visible_to(user).select_related("workspace").filter(public_id__in=wanted)
    memories = {memory.public_id: memory for memory in rows}
    by_message: dict[int, list[N]] = defaultdict(list)
    for each in entries:
        each.known = [memory_id for memory_id in each.memory_ids if memory_id in memories]
        each.memories = [memories[memory_id] for memory_id in each.known if memories[memory_id].is_live]
        by_message[each.message_id].append(each)
    return by_message


@dataclass(frozen=True)
class Finding:
    """A memory that confirms or contradicts the answer. ``quote``: the statement, "" if not quoted exactly."""

    quote: str
    memory: Memory
    agrees: bool


@dataclass(frozen=True)
class ShownStep:
    step: Step
    is_over: bool  # False while its answer is being written

    @property
    def line(self) -> str:
        return step_line(self.step, is_over=self.is_over)

    @property
    def is_check(self) -> bool:
        return self.step.kind == StepKind.CHECK

    @property
    def has_more(self) -> bool:
        """Whether the step can be expanded: a check if it compared memories, any other step if it has a text."""
        if self.is_check:
            return bool(self.step.memories) and self.step.status == "done"
        return bool(self.step.text)

    @property
    def findings(self) -> list[Finding]:
        """The findings, contradictions first."""
        by_id = {memory.public_id: memory for memory in self.step.memories}
        seen = [
            Finding(finding["quote"], by_id[finding["memory_id"]], finding["agrees"])
            for finding in self.step.findings
            if finding["memory_id"] in by_id
        ]
        return sorted(seen, key=lambda finding: finding.agrees)

    @property
    def others(self) -> list[Memory]:
        """The compared memories that neither confirm nor contradict the answer."""
        spoke = {finding["memory_id"] for finding in self.step.findings}
        return [memory for memory in self.step.memories if memory.public_id not in spoke]

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
    """Return a step's outcome for the reader: its real outcome if it corrected the answer, which all readers see, else
    one judged only by the memories that the reader may see.
    """
    if step.outcome not in (StepOutcome.AGREES, StepOutcome.DIFFERS) or step.text:
        return step.outcome
    if not step.known:
        return StepOutcome.NOTHING
    return StepOutcome.DIFFERS if _differing(step) else StepOutcome.AGREES


def _differing(step: Step) -> int:
    return sum(not finding["agrees"] and finding["memory_id"] in step.known for finding in step.findings)


def step_line(step: Step, *, is_over: bool = False) -> str:
    """Return one line about a step and its outcome, without any memory's text. ``is_over``: the answer is finished."""
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
    """Return the line of a step that waits for attached files: which files, and later which were read and which not."""

    def named(*statuses: str) -> str:
        ids = [finding["document"] for finding in step.findings if finding["status"] in statuses]
        return ", ".join(step.titles.get(each) or _("a file") for each in ids)

    if not step.outcome and not is_over:
        return _("Reading %(files)s …") % {"files": named(*DocumentStatus.values)}
    sentences = []
    if late := named(DocumentStatus.WAITING, DocumentStatus.READING):
        sentences.append(_("Not read in time, so the answer does without: %(files)s.") % {"files": late})
    if failed := named(DocumentStatus.FAILED):
        sentences.append(_("Could not be read, so the answer does without: %(files)s.") % {"files": failed})
    if words := named(DocumentStatus.INDEXING):
        indexing = (finding for finding in step.findings if finding["status"] == DocumentStatus.INDEXING)
        share = min(finding["by_meaning"] for finding in indexing)
        sentences.append(
            _("Read %(files)s. So far %(percent)s %% of it can be found by meaning, all of it by words.")
            % {"files": words, "percent": int(100 * share)}
        )
    if read := named(DocumentStatus.READY):
        sentences.append(_("Read %(files)s.") % {"files": read})
    return " ".join(sentences) or _("The files are gone.")


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
    text = ngettext("%(count)d statement differs", "%(count)d statements differ", differ)
    verdict = text % {"count": differ}
    return f"{verdict}, {_('corrected')}" if step.text else verdict


def step_event(step: Step) -> dict[str, Any]:
    """Return the data of the stream event for a step, without personal memories, as all readers see it. At most one
    query.
    """
    step.known = for_everyone(step.memory_ids)
    if step.kind == StepKind.READING:
        _load_titles([step], _readable_by_all(step))
    return {
        "id": step.public_id,
        "kind": step.kind,
        "status": step.status,
        "outcome": outcome_of(step) or None,
        "text": step_line(step),
        "plan": None if step.kind in (StepKind.CHECK, StepKind.READING) else step.text,
        "count": len(step.known),
    }


def steps_of(messages: Iterable[Message], user: User) -> dict[int, list[Step]]:
    """Return the steps of these answers, grouped by the message's primary key. At most three queries.

    Each step gets ``memories``, its unforgotten memories that the user may see, and a step that waited for attached
    files gets ``titles``, the titles of those that the user may read. Answers without steps are left out.
    """
    steps = list(Step.objects.filter(message_id__in=[each.pk for each in messages if each.has_steps]))
    _load_titles(steps, Document.objects.visible_to(user).live())
    return _with_memories(steps, user)


def _readable_by_all(step: Step) -> DocumentQuerySet:
    """Return the documents that all readers of the step's chat may see. A private chat's only reader is its creator."""
    chats = Message.objects.filter(pk=step.message_id, chat__is_private=True)
    return Document.objects.live().filter(Q(owner=None) | Q(owner__in=chats.values("chat__created_by")))


def _load_titles(steps: Iterable[Step], readable: DocumentQuerySet) -> None:
    """Set ``titles`` on each step that waited for attached files: the titles of the readable ones, by id. At most one
    query.
    """
    waits = [step for step in steps if step.kind == StepKind.READING]
    wanted = {finding["document"] for step in waits for finding in step.findings}
    titles = dict(readable.filter(public_id__in=wanted).values_list("public_id", "title"))
    for step in waits:
        step.titles = titles


logger = logging.getLogger(__name__)


def begin_step(live: LiveAnswer, kind: str, **fields: Any) -> Step:
    """Store a new running step. ``fields``: more fields of the step. Blocking: call it in a thread."""
    step = Step(message_id=live.pk, kind=kind, **fields)
    store_step(live, step)
    return step


def end_step(live: LiveAnswer, step: Step, outcome: str, *, error: str = "") -> None:
    """Store the step's outcome and text. Blocking: call it in a thread."""
    step.outcome, step.error = outcome, error[:200]
    step.finished_at = timezone.now()
    store_step(live, step)


def store_step(live: LiveAnswer, step: Step) -> None:
    """Store the step as it is now. Blocking: call it in a thread."""
    try:
        with transaction.atomic():
            step.save()
            pubsub.publish(live.channel, "grown")
    except DatabaseError:  # the connection is lost, or the chat was deleted
        logger.warning("A step of an answer could not be stored")
    live.set_event("step", step.public_id, step_event(step))


MOST_THOUGHT = 20_000  # characters stored per thought


class Thinking:
    """Recorder of a reasoning model's thought before one reply, stored as a step of the answer.

    Readers receive one event at its start and one at its end, because the page shows it collapsed.
    """

    def __init__(self, live: LiveAnswer) -> None:
        self._live, self._text = live, ""
        self.step: Step | None = None  # while the model thinks

    async def add(self, thought: str) -> None:
        if self.step is None and (self._text + thought).strip():
            self.step = await in_thread(_begin, self._live)
        if len(self._text) < MOST_THOUGHT:
            self._text += thought

    async def close(self) -> None:
        """End the thought, because the answer or a tool call begins. Idempotent."""
        step, self.step = self.step, None
        if step is not None:
            step.text, self._text = self._text.strip()[:MOST_THOUGHT], ""
            await in_thread(end_step, self._live, step, StepOutcome.THOUGHT)


def _begin(live: LiveAnswer) -> Step:
    Message.objects.filter(pk=live.pk).update(has_thoughts=True)
    return begin_step(live, StepKind.THOUGHT)
