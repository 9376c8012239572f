"""What a run will cost, in tokens and in money, guessed from those that were done in the workspace."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count

from chat.agents.plan import TaskPlan
from chat.models.runs import Run, RunMode, RunQuerySet, RunStatus
from memoryhub.llm.metering import Price, Usage, cost_of
from workspaces.connections import chosen_for
from workspaces.models import User
from workspaces.spending.bill import rate_of

LOOKED_AT = 20  # of the newest runs that were done
# Where none was done here yet: three replies, each with what tools returned.
A_STEP = Usage(5_500, tokens_out=500)
STEPS = {RunMode.LOOP: 1, RunMode.PLAN: 5, RunMode.TEAM: 5, RunMode.RESEARCH: 5}  # and the one that plans
ITEMS = 4  # of a list that nobody knows yet


@dataclass(frozen=True)
class Expected:
    """To two figures. ``cost``: in the installation's currency; None where nobody set a price, which is not 0."""

    tokens: int
    cost: Decimal | None = None


def expect(run: Run, plan: TaskPlan | None = None) -> None:
    """Note with the run, which the caller saves, what it will cost at the price of the model that it has now."""
    price = rate_of(chosen_for(run.workspace, run.user, first=run.connection)).price
    found = expected(run.workspace_id, run.user, run.mode, plan, price=price)
    run.expected_tokens, run.expected_cost = found.tokens, found.cost


def expected(
    workspace_id: int, user: User, mode: str, plan: TaskPlan | None = None, *, price: Price | None = None
) -> Expected:
    """In all. From runs that ``user`` may see: of this mode, else of any. Two queries at most."""
    done = Run.objects.visible_to(user).filter(workspace=workspace_id, status=RunStatus.DONE)
    seen = _seen(done.filter(mode=mode)) or _seen(done)
    taken = sum((usage for usage, _steps in seen), Usage()) if seen else A_STEP
    steps = sum(steps for _usage, steps in seen) if seen else 1
    if plan is not None:
        number = sum(ITEMS if step.over else 1 for task in plan.tasks for step in task.steps)
    else:
        number = round(steps / len(seen)) if seen else STEPS[RunMode(mode)]
    read, written = (number * each // max(1, steps) for each in (taken.tokens_in, taken.tokens_out))
    cost = cost_of(Usage(read, tokens_out=written), price)
    tokens = number * taken.tokens // max(1, steps)
    return Expected(int(float(f"{tokens:.2g}")), None if cost is None else Decimal(f"{cost:.2g}"))


def _seen(runs: RunQuerySet) -> list[tuple[Usage, int]]:
    """What each took, and in how many steps."""
    newest = runs.annotate(number=Count("steps")).order_by("-pk")[:LOOKED_AT]
    return [
        (Usage(run.tokens_in, tokens_out=run.tokens_out), run.number)
        for run in newest.defer("plan", "board", "states")
    ]
