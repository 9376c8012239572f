"""A run done again: a new one of the same objective, which may take over what does not build on one of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from chat.agents.plan import TaskPlan
from chat.agents.run_memory import MemoryEntry
from chat.agents.run_progress import go_on, plan_of
from chat.agents.run_request import RunRequest
from chat.agents.runs import start_run
from chat.agents.stored_run import StoredMemory, entry_of
from chat.models.runs import Run
from memoryhub.errors import Invalid
from workspaces.access import get_workspace
from workspaces.models import Role, User


def rerun(run: Run, *, by: User, now: datetime, from_step: str = "") -> Run:
    """A new run of the same objective, plan and inputs. ``from_step``: what does not build on that step is taken over
    from this one. Raises Invalid for a step that is not in the plan.
    """
    workspace = get_workspace(by, run.workspace.public_id, need=Role.EDITOR)
    # Entries from the request are as old as the run or older; steps and inputs wrote newer ones.
    given = run.entries.filter(created_at__lte=run.created_at, version=1)
    seeded = run.entries.filter(kind="input", created_at__gt=run.created_at).exclude(key__contains="[")
    inputs = [entry_of(row) for row in seeded]
    wanted = RunRequest(
        run.objective,
        run.mode,
        {entry.key.removeprefix("input:"): entry.value for entry in inputs},
        run.tools,
        run.limits,
        run.plan,
        memory=[entry_of(row) for row in given],
        chat_id=run.chat_id,
        web_urls=run.web_urls,
        held_personal=run.held_personal,
    )
    if not from_step:
        return start_run(workspace, wanted, by=by, now=now)
    if run.plan is None or run.board is not None:
        raise Invalid(_("Only a planned run can be done again from a step."))
    redone = _built_on(plan_of(run), from_step)
    with transaction.atomic():
        again = start_run(workspace, wanted, by=by, now=now)
        again.steps.all().delete()
        kept = _kept(run, redone)
        StoredMemory(run_pk=again.pk).restore(kept)
        names = {entry.key.partition(":")[2] for entry in kept}
        again.states = {
            what: {
                name: state
                for name, state in run.states[what].items()
                if state == "done" and name in names and name.partition("[")[0] not in redone[what]
            }
            for what in ("steps", "tasks")
        }
        go_on(again, now=now)
    return again


def _kept(run: Run, redone: Mapping[str, set[str]]) -> list[MemoryEntry]:
    """Return the entries of what is not done again; what a kept step published under ``shared:`` is its own."""
    found = []
    for row in run.entries.all():
        kind, _colon, name = row.key.partition(":")
        of = {"step": "steps", "task": "tasks", "input": "steps", "shared": "steps"}.get(kind)
        name = row.source or "" if kind == "shared" else name
        if of and name.partition("[")[0] not in redone[of]:
            found.append(entry_of(row))
    return found


def _built_on(plan: TaskPlan, step_id: str) -> dict[str, set[str]]:
    """The step and task of that id, and all that build on them."""
    first = next((task for task in plan.tasks if any(step.id == step_id for step in task.steps)), None)
    if first is None:
        raise Invalid(_("There is no such step."), fields={"from_step": _("is not in the plan")})
    tasks, steps = {first.id}, {step_id}
    for _each in plan.tasks:
        tasks |= {task.id for task in plan.tasks if tasks & set(task.depends_on)}
        steps |= {step.id for step in first.steps if steps & set(step.depends_on)}
    steps |= {step.id for task in plan.tasks if task.id in tasks - {first.id} for step in task.steps}
    return {"tasks": tasks, "steps": steps}
