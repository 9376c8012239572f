"""Limits, usage and estimated cost of a run."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from decimal import Decimal

from django.db.models import Count

from chat.models.runs import Run, RunMode, RunQuerySet, RunStatus
from chat.runs.plan import TaskPlan
from memoryhub.kept import kept
from memoryhub.llm.metering import Price, Usage, cost_of
from workspaces.connections import chosen_for
from workspaces.models import User
from workspaces.spending.bill import rate_of

CONCLUDE_AT = 0.9  # share of the tokens after which a step may only finish
SPENT = {
    "tokens": kept("The run has used up its tokens."),
    "rounds": kept("The run has used up its replies of the model."),
    "minutes": kept("The run has used up its time."),
}


@dataclass(frozen=True)
class Limits:
    """Limits of a run. ``rounds`` are model replies of the whole run, ``step_rounds`` those of one step."""

    rounds: int = 200
    tokens: int = 400_000
    minutes: int = 60
    step_rounds: int = 16


@dataclass(frozen=True)
class Used:
    rounds: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def more(self, tokens_in: int, tokens_out: int) -> Used:
        """Return the usage including one more model reply."""
        return Used(self.rounds + 1, self.tokens_in + tokens_in, self.tokens_out + tokens_out)


@dataclass
class Budget:
    """The limits and usage of a run, shared by its steps. ``is_over_time``: the minutes are used up."""

    limits: Limits = Limits()
    used: Used = Used()
    is_over_time: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def spend(self, tokens_in: int, tokens_out: int) -> None:
        """Count one model reply."""
        with self._lock:
            self.used = self.used.more(tokens_in, tokens_out)

    @property
    def is_nearly_spent(self) -> bool:
        return self.used.tokens > CONCLUDE_AT * self.limits.tokens

    @property
    def what_is_spent(self) -> str:
        """The name of the limit that is used up, else an empty string."""
        if self.used.tokens >= self.limits.tokens:
            return "tokens"
        if self.used.rounds >= self.limits.rounds:
            return "rounds"
        return "minutes" if self.is_over_time else ""


LOOKED_AT = 20  # newest completed runs that the estimate is based on
# The default without completed runs: three replies, each with tool results.
A_STEP = Usage(5_500, tokens_out=500)
STEPS = {RunMode.LOOP: 1, RunMode.PLAN: 5, RunMode.TEAM: 5, RunMode.RESEARCH: 5}  # without the planning step
ITEMS = 4  # assumed length of a list before it is known


@dataclass(frozen=True)
class Expected:
    """An estimate to two significant digits. ``cost`` is in the installation's currency; None if the model has no
    price.
    """

    tokens: int
    cost: Decimal | None = None


def estimate(run: Run, plan: TaskPlan | None = None) -> None:
    """Set the run's estimated tokens and cost, for the current model's price. The caller saves the run."""
    price = rate_of(chosen_for(run.workspace, run.user, first=run.connection)).price
    found = estimated_for(run.workspace_id, run.user, run.mode, plan, price=price)
    run.expected_tokens, run.expected_cost = found.tokens, found.cost


def estimated_for(
    workspace_id: int, user: User, mode: str, plan: TaskPlan | None = None, *, price: Price | None = None
) -> Expected:
    """Return the estimate, based on completed runs of this mode that ``user`` may see, else of any mode. At most two
    queries.
    """
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
    """Return the usage and number of steps of the newest runs."""
    newest = runs.annotate(number=Count("steps")).order_by("-pk")[:LOOKED_AT]
    return [
        (Usage(tokens_in, tokens_out=tokens_out), number)
        for tokens_in, tokens_out, number in newest.values_list("tokens_in", "tokens_out", "number")
    ]
