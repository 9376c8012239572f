"""A run as people and programs see it: its tasks with their steps, its result, its memory."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncGenerator
from typing import Any

from django.utils.translation import gettext as _

from chat.agents.run_memory import memory_keys
from chat.agents.run_progress import PLAN, PLANNING, WHOLE
from chat.agents.stored_run import run_channel
from chat.answers.threads import in_thread
from chat.models.runs import Run, RunEvent, RunStatus, RunStep
from memoryhub import events
from memoryhub.errors import NotFound
from workspaces.access import get_workspace
from workspaces.models import User, Workspace

POLL = 2.0  # seconds between looks where nothing is heard
OVERLAP = 100  # events looked at again: two of them may be stored in another order than they were numbered
MOST_AT_ONCE = 500


def tasks_of(run: Run) -> list[dict[str, Any]]:
    """The tasks in the plan's order, each with the steps that have begun. Costs two queries."""
    by_task: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for step in run.steps.defer("transcript"):
        by_task[step.task].append(step_json(step))
    return [
        {
            "id": task.ref,
            "title": task.title,
            "depends_on": task.depends_on,
            "status": task.status,
            "member": task.member or None,
            "steps": by_task[task.ref],
        }
        for task in run.tasks.all()
    ]


def step_json(step: RunStep) -> dict[str, Any]:
    return {
        "id": step.ref,
        "status": step.status,
        "rounds": step.rounds,
        "error": step.error,
        "member": step.unit.get("member") or None,
        "started_at": step.started_at,
        "finished_at": step.finished_at,
    }


def tasks_for_people(run: Run) -> list[dict[str, Any]]:
    """``tasks_of`` as a page says it: titles in place of ids; what a run was at when it was stopped is at nothing."""
    tasks = tasks_of(run)
    titles = {task["id"]: title_shown(task["title"]) for task in tasks}
    for task in tasks:
        task["title"] = titles[task["id"]]
        task["after"] = [titles.get(name, name) for name in task["depends_on"]]
        for each in (task, *task["steps"]) if run.status == RunStatus.STOPPED else ():
            each["status"] = "stopped" if each["status"] in ("running", "working") else each["status"]
    return tasks


def title_shown(title: str) -> str:
    """One that no plan gave, in the language of who looks; any other as it was given."""
    return _(title) if title in (WHOLE, PLAN) else title


def planning_of(run: Run) -> RunStep | None:
    return run.steps.filter(ref=PLANNING).first()


def result_of(run: Run) -> Any:
    """Of its last task; None until that is done."""
    last = run.tasks.last()
    if last is None:
        return None
    entry = run.entries.filter(key=memory_keys.task(last.ref)).first()
    return None if entry is None else json.loads(entry.json)


def result_text(run: Run) -> str:
    """The result for people: text as it is, anything else as JSON."""
    result = result_of(run)
    if result is None or isinstance(result, str):
        return result or ""
    return "```json\n" + json.dumps(result, ensure_ascii=False, indent=2).replace("```", "'''") + "\n```"


async def follow_run(user: User, workspace_id: str, run: Run, *, after: int) -> AsyncGenerator[str, None]:
    """Server-sent events of what happens from the event ``after`` on, until the run is over or may not be seen."""
    sent: set[int] = set()
    async with events.subscription(run_channel(run.public_id)) as listening:
        while True:
            seen_from = max(after, max(sent, default=0) - OVERLAP)
            found, is_over = await in_thread(_news, user.pk, workspace_id, run.pk, seen_from)
            fresh = [event for event in found if event.pk not in sent]
            for event in fresh:
                data = {"step": event.step or None, "at": event.at.isoformat(), **event.data}
                yield f"id: {event.pk}\nevent: {event.kind}\ndata: {json.dumps(data)}\n\n"
                sent.add(event.pk)
            if fresh:
                continue
            if is_over:
                yield "event: done\ndata: {}\n\n"
                return
            await listening.get(POLL)


def _news(user_pk: int, workspace_id: str, run_pk: int, after: int) -> tuple[list[RunEvent], bool]:
    """Raises NotFound where the person may no longer see it."""
    user = User.objects.filter(pk=user_pk, is_active=True).first()
    if user is None:
        raise NotFound
    get_workspace(user, workspace_id)
    run = Run.objects.visible_to(user).filter(pk=run_pk).first()
    if run is None:
        raise NotFound
    return list(run.events.filter(pk__gt=after)[:MOST_AT_ONCE]), run.is_over


def text_for_webhook(workspace: Workspace, public_id: str) -> dict[str, Any] | None:
    run = Run.objects.filter(workspace=workspace, is_private=False, public_id=public_id).first()
    if run is None:
        return None
    return {"objective": run.objective, "result": result_of(run), "error": run.error}
