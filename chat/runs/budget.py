"""A run's budget in the database, shared by all processes that work on the run, and its estimated cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal

from django.db import connection
from django.db.models import Count

from chat.models.runs import Run, RunMode, RunQuerySet, RunStatus, RunTemplate
from chat.runs.plan import TaskPlan
from memoryhub.llm.metering import Price, Usage, cost_of
from memoryhub.stored_messages import kept
from workspaces.model_choice import Chosen, chosen_for
from workspaces.models import User
from workspaces.spending.usage_records import Bill, rate_of

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
        """Return a copy with one more model reply of this many tokens."""
        return Used(self.rounds + 1, self.tokens_in + tokens_in, self.tokens_out + tokens_out)


@dataclass
class Budget:
    """The limits and usage of a run, shared by its steps. ``is_over_time``: the run's time is used up."""

    limits: Limits = Limits()
    used: Used = Used()
    is_over_time: bool = False

    def spend(self, tokens_in: int, tokens_out: int) -> None:
        """Count one model reply."""
        self.used = self.used.more(tokens_in, tokens_out)

    @property
    def is_nearly_spent(self) -> bool:
        return self.used.tokens > CONCLUDE_AT * self.limits.tokens

    @property
    def what_is_spent(self) -> str:
        """The name of the limit that is used up ("tokens", "rounds" or "minutes"), or "" if none is."""
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
    """Estimated tokens and cost in the installation's currency, to two significant digits."""

    tokens: int
    cost: Decimal | None = None  # None if the model has no price


def estimate(run: Run, plan: TaskPlan | None = None, *, chosen: Chosen | None = None) -> None:
    """Set the estimated tokens and cost of the run, for the ``chosen`` or else the current model, without saving it."""
    price = rate_of(chosen or chosen_for(run.workspace, run.user, first=run.connection)).price
    expected = estimated_for(run.workspace_id, run.user, run.mode, plan, price=price)
    run.expected_tokens, run.expected_cost = expected.tokens, expected.cost


def estimated_for(
    workspace_id: int, user: User, mode: str, plan: TaskPlan | None = None, *, price: Price | None = None
) -> Expected:
    """Return the estimate, from completed runs of this mode, or else of all, that ``user`` may see. 1-2 queries."""
    done = Run.objects.visible_to(user).filter(workspace=workspace_id, status=RunStatus.DONE)
    seen = _usage_of(done.filter(mode=mode)) or _usage_of(done)
    total_usage = sum((usage for usage, _steps in seen), Usage()) if seen else A_STEP
    steps = sum(steps for _usage, steps in seen) if seen else 1
    if plan is not None:
        number = sum(ITEMS if step.over else 1 for task in plan.tasks for step in task.steps)
    else:
        number = round(steps / len(seen)) if seen else STEPS[RunMode(mode)]
    steps = max(1, steps)
    read, written = number * total_usage.tokens_in // steps, number * total_usage.tokens_out // steps
    cost = cost_of(Usage(read, tokens_out=written), price)
    tokens = number * total_usage.tokens // steps
    return Expected(int(float(f"{tokens:.2g}")), None if cost is None else Decimal(f"{cost:.2g}"))


def _usage_of(runs: RunQuerySet) -> list[tuple[Usage, int]]:
    """Return the usage and number of steps of the newest runs."""
    newest = runs.annotate(number=Count("steps")).order_by("-pk")[:LOOKED_AT]
    return [
        (Usage(tokens_in, tokens_out=tokens_out), number)
        for tokens_in, tokens_out, number in newest.values_list("tokens_in", "tokens_out", "number")
    ]


class Lost(Exception):
    """Raised when another worker has claimed the step or the run was deleted: this worker's results are discarded."""


class Stopped(Exception):
    """Raised when a step finds that its run was stopped. The work done so far stays stored."""


_SPEND = """
UPDATE chat_run SET rounds = rounds + %s, tokens_in = tokens_in + %s, tokens_out = tokens_out + %s,
    cost = coalesce(cost + %s, cost, %s) WHERE id = %s
RETURNING status, deadline_at, rounds, tokens_in, tokens_out
"""


@dataclass
class StoredBudget(Budget):
    """A budget in the run's row, shared by all workers of the run. ``keep`` adds this worker's new usage.

    ``bill``: tokens and cost as the provider reports them; without it, tokens are estimated.
    """

    run_pk: int = 0
    now: Callable[[], datetime] = datetime.now
    _not_kept: Used = Used()

    @classmethod
    def of(cls, run: Run, now: Callable[[], datetime]) -> StoredBudget:
        used = Used(run.rounds, run.tokens_in, run.tokens_out)
        return cls(limits_of(run), used, run.deadline_at <= now(), run_pk=run.pk, now=now)

    def spend(self, tokens_in: int, tokens_out: int) -> None:
        super().spend(tokens_in, tokens_out)
        self._not_kept = self._not_kept.more(tokens_in, tokens_out)

    def count_in(self, run: Run, bill: Bill | None) -> None:
        """Add the usage that is not stored yet to ``run``, which the caller has locked and saves."""
        spent, cost = self._taken(bill)
        self._not_kept = Used()
        run.rounds += spent.rounds
        run.tokens_in += spent.tokens_in
        run.tokens_out += spent.tokens_out
        if cost is not None:
            run.cost = (run.cost or 0) + cost

    def _taken(self, bill: Bill | None) -> tuple[Used, Decimal | None]:
        spent = self._not_kept
        if bill is None:
            return spent, None
        return Used(spent.rounds, bill.tokens_in, bill.tokens_out), bill.cost if bill.has_cost else None

    def keep(self, bill: Bill | None) -> str:
        """Add the usage that is not stored yet to the run, and return its status. Raises Lost if it was deleted."""
        spent, cost = self._taken(bill)
        if not spent.rounds:
            status = Run.objects.order_by().filter(pk=self.run_pk).values_list("status", flat=True).first()
            if status is None:
                raise Lost
            return status
        with connection.cursor() as cursor:
            new = [spent.rounds, spent.tokens_in, spent.tokens_out, cost, cost, self.run_pk]
            cursor.execute(_SPEND, new)
            row = cursor.fetchone()
        if row is None:
            raise Lost
        status, deadline, *used = row
        self.used, self.is_over_time = Used(*used), deadline <= self.now()
        self._not_kept = Used()
        return str(status)


def limits_of(run: Run | RunTemplate) -> Limits:
    return Limits(**{name: run.limits[name] for name in asdict(Limits()) if name in run.limits})
