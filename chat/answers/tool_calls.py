"""Tool calls as pages and the API show them: one line each, with the memories that the reader may see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.models import ToolCall, ToolOutcome, ToolStatus
from chat.models.steps import Step
from chat.prompting.short_term import TOOL_NAME
from chat.prompting.text import one_line
from memories.models import Memory
from memories.recalling.receipts import for_everyone
from workspaces.models import Artifact, User

SAVES = ("x_save_memory", "ltm_remember")
ARTIFACTS = ("write_artifact",)
RECALLS = ("x_recall_memory", "ltm_recall")
SEARCH = "x_workspace_search"
_DONE = (ToolOutcome.SAVED, ToolOutcome.DUPLICATE)
N = TypeVar("N", ToolCall, Step)
QUERY_SHOWN = 120  # characters


@dataclass(frozen=True)
class ShownCall:
    """A tool call with the memories it saved or found that the reader may see and that are not forgotten."""

    call: ToolCall
    memories: tuple[Memory, ...]
    is_over: bool = True  # False while its answer is being written
    artifact: Artifact | None = None  # the artifact it wrote or changed, if the reader may see it

    @property
    def line(self) -> str:
        return line_of(self.call, is_over=self.is_over)

    @property
    def saved(self) -> Memory | None:
        """The memory that the call stored and that can be undone, or None."""
        return self.memories[0] if self.call.outcome == ToolOutcome.SAVED and self.memories else None

    @property
    def may_undo(self) -> bool:
        """Whether the artifact is unchanged since the call."""
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
    """Return the number of results that the reader may know of, without other people's personal memories."""
    return max(0, call.count - len(set(call.memory_ids).difference(call.known)))


def line_of(call: ToolCall, *, is_over: bool = False) -> str:
    """Return one line that says what was done and the result. The line never contains the text of a memory."""
    if call.status == ToolStatus.RUNNING:
        return _unfinished(call) if is_over else _running(call)
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
        found = ngettext("%(count)d found", "%(count)d found", count) % {"count": count}
        return f"{_searched(call)} · {found if count else _('nothing found')}"
    if call.outcome == ToolOutcome.NOTED and call.name in SAVES:
        return _("Proposed for memory: someone has to approve it")
    if call.outcome == ToolOutcome.NOTED and call.name == TOOL_NAME:
        return _("Noted a summary of this chat")
    if call.name in SAVES:
        return _("Not saved to memory")
    said = _("%(tool)s did not work") if call.status == ToolStatus.FAILED else _("Used %(tool)s")
    return said % {"tool": call.name}


def _of_artifact(call: ToolCall) -> str:
    if call.arguments.get("tells"):
        return _("Left an artifact as it was, as others read it and this answer draws on something personal")
    if call.outcome == ToolOutcome.DUPLICATE:
        return _("Left an artifact as it was")
    if call.arguments.get("id"):
        return _("Changed an artifact")
    return _("Kept an artifact for you alone") if call.arguments.get("personal") else _("Kept an artifact")


def is_reading(call: ToolCall) -> bool:
    """Return whether the call read a document or artifact by id, rather than searched."""
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


def _unfinished(call: ToolCall) -> str:
    return _("%(tool)s did not finish") % {"tool": call.name}


def _searched(call: ToolCall) -> str:
    query = one_line(_asked(call))
    query = query if len(query) <= QUERY_SHOWN else query[: QUERY_SHOWN - 1] + "…"
    if call.name in RECALLS:
        return _("Searched memory for “%(query)s”") % {"query": query}
    return _("Searched the workspace for “%(query)s”") % {"query": query}


def event_of(call: ToolCall) -> dict[str, Any]:
    """Return the stream event's data for a tool call: ids and fixed text, without stored text.

    Every reader receives the same event, so personal memories are not counted. One query if memories were found.
    """
    call.known = for_everyone(call.memory_ids)
    return {
        "id": call.public_id,
        "name": call.name,
        "status": call.status,
        "outcome": call.outcome or None,
        "text": line_of(call),
        "count": count_of(call),
    }


def artifacts_of(calls: Iterable[ToolCall], user: User) -> dict[str, Artifact]:
    """Return the artifacts, by id, that these calls wrote or changed and that ``user`` may see. At most one query."""
    wanted = {str(call.arguments["artifact"]) for call in calls if call.arguments.get("artifact")}
    if not wanted:
        return {}
    rows = Artifact.objects.visible_to(user).live().filter(public_id__in=wanted)
    return {each.public_id: each for each in rows.select_related("workspace").defer("content", "gist")}


def calls_of(message_pks: Iterable[int], user: User) -> dict[int, list[tuple[ToolCall, tuple[Memory, ...]]]]:
    """Return the tool calls of these answers by message key, each with its memories that ``user`` may see and that are
    not forgotten. Two queries.
    """
    found = list(ToolCall.objects.filter(message_id__in=list(message_pks)).defer("output"))
    return with_memories(found, user)


def with_memories(found: Iterable[N], user: User) -> dict[int, list[tuple[N, tuple[Memory, ...]]]]:
    """Group tool calls or steps by message key, each with its memories that ``user`` may see and that are not
    forgotten. At most one query.
    """
    found = list(found)
    wanted = {memory_id for each in found for memory_id in each.memory_ids}
    rows = Memory.objects.visible_to(user).select_related("workspace").filter(public_id__in=wanted)
    memories = {memory.public_id: memory for memory in rows} if wanted else {}
    by_message: dict[int, list[tuple[N, tuple[Memory, ...]]]] = defaultdict(list)
    for each in found:
        each.known = {memory_id for memory_id in each.memory_ids if memory_id in memories}
        seen = (memories[memory_id] for memory_id in each.memory_ids if memory_id in each.known)
        by_message[each.message_id].append((each, tuple(memory for memory in seen if memory.is_live)))
    return by_message
