"""What a run will cost, guessed from those that were done in the workspace."""

from __future__ import annotations

from django.db.models import Count

from chat.agents.plan import TaskPlan
from chat.models.runs import Run, RunMode, RunQuerySet, RunStatus
from workspaces.models import User

LOOKED_AT = 20  # of the newest runs that were done
A_STEP = 6_000  # tokens, where none was done here yet: three replies, each with what tools returned
STEPS = {RunMode.LOOP: 1, RunMode.PLAN: 5, RunMode.TEAM: 5, RunMode.RESEARCH: 5}  # and the one that plans
ITEMS = 4  # of a list that nobody knows yet


def expected_tokens(workspace_id: int, user: User, mode: str, plan: TaskPlan | None = None) -> int:
    """In all, to two figures. From runs that ``user`` may see: of this mode, else of any. Two queries at most."""
    done = Run.objects.visible_to(user).filter(workspace=workspace_id, status=RunStatus.DONE)
    seen = _seen(done.filter(mode=mode)) or _seen(done)
    tokens, steps = (sum(each) for each in zip(*seen, strict=True)) if seen else (A_STEP, 1)
    if plan is not None:
        number = sum(ITEMS if step.over else 1 for task in plan.tasks for step in task.steps)
    else:
        number = round(steps / len(seen)) if seen else STEPS[RunMode(mode)]
    return _rounded(number * tokens // max(1, steps))


def _seen(runs: RunQuerySet) -> list[tuple[int, int]]:
    """Tokens and steps of each."""
    newest = runs.annotate(number=Count("steps")).order_by("-pk")[:LOOKED_AT]
    return [(run.tokens_in + run.tokens_out, run.number) for run in newest.defer("plan", "board", "states")]


def _rounded(number: int) -> int:
    return int(float(f"{number:.2g}"))
