"""The workspace's tools as a run's steps may use them: as the person who started it, with the rights they have now."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from django.db import DataError
from django.utils import timezone

from chat.agents import web_tools
from chat.agents.board import TaskBoard
from chat.agents.run_progress import alone
from chat.agents.step_tools import StepTool
from chat.models import ToolOutcome
from chat.models.runs import Run
from chat.prompting.provenance import MOST_SHOWN, Shown, provenance_of_run
from chat.prompting.rests_on import RestsOn, mark
from chat.tools.base import ChatTool, Result, ToolCaller, ToolTrouble, read_arguments
from chat.tools.documents import READ_DOCUMENT
from chat.tools.memory import X_RECALL_MEMORY, X_SAVE_MEMORY, X_WORKSPACE_SEARCH
from memories.judging.extraction.provenance import Provenance
from memories.models import Memory
from memoryhub.llm.base import Speaker
from workspaces.access import get_workspace
from workspaces.models import Document, DocumentQuerySet, Role, Workspace
from workspaces.policy import Reach, in_reach

OFFERED: dict[str, ChatTool] = {
    tool.name: tool for tool in (X_RECALL_MEMORY, X_WORKSPACE_SEARCH, READ_DOCUMENT, X_SAVE_MEMORY)
}


def usual(workspace: Workspace) -> tuple[str, ...]:
    """What looks up. What saves is given by who starts the run."""
    found = (X_RECALL_MEMORY.name, X_WORKSPACE_SEARCH.name, READ_DOCUMENT.name)
    return found + (web_tools.NAMES if web_tools.may_use(workspace) else ())


def offered(workspace: Workspace) -> tuple[str, ...]:
    return (*usual(workspace), X_SAVE_MEMORY.name)


def tools_of_run(run: Run, *, is_local: bool) -> tuple[StepTool, ...]:
    names = [name for name in run.tools if name in OFFERED]
    if READ_DOCUMENT.name in names and not _documents_of(run, is_local=is_local).exists():
        names.remove(READ_DOCUMENT.name)
    own = tuple(_step_tool(run, OFFERED[name], is_local=is_local) for name in names)
    return own + web_tools.web_tools(run)


def _documents_of(run: Run, *, is_local: bool) -> DocumentQuerySet:
    reach = Reach.to_model(run.workspace, is_local=is_local, personal=run.is_own)
    return in_reach(Document.objects.live(), run.workspace, run.user, reach)


def _step_tool(run: Run, tool: ChatTool, *, is_local: bool) -> StepTool:
    def call(arguments: str, key: str) -> str:
        caller = replace(caller_of(run, is_local=is_local), call=f"{run.public_id}:{key}")
        try:
            result = tool.act(caller, read_arguments(tool.takes, arguments))
        except DataError:
            raise ToolTrouble(
                "something in the arguments can be kept nowhere, such as a NUL character"
            ) from None
        if result.outcome == ToolOutcome.SAVED:
            note_saved(run, result.memory_ids)
        note_shown(run, result)
        note_told(run, result)
        return result.text

    # What a call has stored is known by its name when it comes again.
    return StepTool(tool.tool, call, tool.speaker, is_repeatable=True)


def caller_of(run: Run, *, is_local: bool) -> ToolCaller:
    """Loaded as things stand now. Raises NotFound or Forbidden where the person may no longer run anything here.

    A run is read by every member of its workspace, so nobody's personal memories are in it, but in one that they alone
    read.
    """
    workspace = get_workspace(run.user, run.workspace.public_id, need=Role.EDITOR)
    run.refresh_from_db(fields=["is_private", "held_personal", "chat"])
    reach = Reach.to_model(workspace, is_local=is_local, personal=run.is_own)

    def provenance() -> Provenance:
        run.refresh_from_db(fields=["plan", "board", "web_urls", "shown"])
        return provenance_of_run(run)

    return ToolCaller(
        run.user,
        workspace,
        workspace.role,
        reach,
        timezone.now(),
        provenance=provenance,
        alone=run.is_private,
        stays_here=run.held_personal and not reach.leaves and _has_local_only(run),
    )


def _has_local_only(run: Run) -> bool:
    """Whether what a run was told of its person's own may never leave this machine."""
    elsewhere = Workspace.objects.visible_to(run.user).exclude(pk=run.workspace_id)
    return elsewhere.filter(local_only=True).exists()


def note_told(run: Run, result: Result) -> None:
    """Mark a run, and the answer it is made for, by what one of its calls was told."""
    told = RestsOn()
    told.add(held=result.personal, stays_here=result.stays_here)
    told.add_given(run.workspace_id, list(Memory.objects.filter(public_id__in=result.memory_ids)))
    if told.personal:  # also where its chat is being opened
        Run.objects.filter(pk=run.pk).update(held_personal=True, is_private=True)
    if run.answer_id is not None:
        mark(run.answer_id, told)


def note_saved(run: Run, memory_ids: Sequence[str]) -> None:
    """What the run has put into long-term memory is listed with it, and can be undone there."""
    with alone(run.pk) as locked:
        locked.memory_ids = list(dict.fromkeys([*locked.memory_ids, *memory_ids]))
        locked.save(update_fields=["memory_ids"])


def note_shown(run: Run, result: Result) -> None:
    """What a look-up has quoted is noted with the run, so that what it saves later can name its source."""
    found = [Shown(Speaker.MEMORY, each) for each in result.memory_ids]
    quoted = [each.as_json() for each in (*found, *result.shown)]
    if result.outcome != ToolOutcome.FOUND or not quoted:
        return
    with alone(run.pk) as locked:
        locked.shown = [*(each for each in locked.shown if each not in quoted), *quoted][-MOST_SHOWN:]
        locked.save(update_fields=["shown"])


def board_of(run: Run) -> Callable[[], AbstractContextManager[TaskBoard]]:
    """The team's board for one look or change, with what others have done to it."""

    @contextmanager
    def opened() -> Iterator[TaskBoard]:
        with alone(run.pk) as locked:
            board = TaskBoard.from_json(locked.board)
            yield board
            changed = json.loads(json.dumps(board.as_json()))
            if changed != locked.board:
                locked.board = changed
                locked.save(update_fields=["board"])

    return opened
