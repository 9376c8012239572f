"""A step in a process's hands. Everything that is written of it is written only as long as that is so."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from chat.agents.step import Transcript
from chat.agents.stored_run import Lost, Stopped, StoredBudget, StoredMemory, note_all
from chat.models.runs import Run, RunEvent, RunStatus, RunStep, RunStepStatus
from memoryhub.llm.metering import Meter, Metered
from workspaces.spending.bill import Account, Bill, put


class ClaimedStep:
    """What it spends and writes and what happens in it is kept with its next sign of life, or with its end, in one
    transaction.
    """

    def __init__(self, step: RunStep) -> None:
        self.step, self.run = step, step.run
        self.budget = StoredBudget.of(self.run, timezone.now)
        self.memory = StoredMemory(run_pk=self.run.pk, waits=True)
        self.log = Transcript.from_json(dict(step.transcript))
        self.log.save = self.save
        self.happened = list[RunEvent]()
        self.meter = Meter()  # of its replies, and on whom they are put once that is known
        self.account: Account | None = None
        self._mine = RunStep.objects.filter(pk=step.pk, lease=step.lease, status=RunStepStatus.RUNNING)

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        event = RunEvent(run_id=self.run.pk, step=self.step.ref, kind=kind, data=data, at=timezone.now())
        self.happened.append(event)

    def save(self) -> None:
        """How far it is, with what it took."""
        self.beat(transcript=self.log.as_json(), rounds=self.log.rounds, attempts=0)

    def beat(self, **values: Any) -> None:
        """A sign of life. Raises Lost where somebody else has the step, Stopped where the run is."""
        with transaction.atomic():
            # First: whoever settles a step locks the run's row before the step's, too. The ledger's comes last.
            status = self.budget.keep(self.bill() if values else None)
            self._change(beat_at=timezone.now(), **values)
            self.memory.keep()
            note_all(self.run, self.happened)
            written = self.count() if values else None  # else a reply is on its way
        self.happened.clear()
        self.forget(written)
        if status != RunStatus.RUNNING:
            raise Stopped

    def bill(self) -> Bill | None:
        """What the replies took and cost that are not written down yet."""
        total = self.meter.total()
        return Bill.of(total, self.account.rate) if self.account and total.usage.calls else None

    def count(self) -> Metered | None:
        """Write it down. Last in a transaction: others of this person wait for that row."""
        if self.account is None:
            return None
        total = self.meter.total()
        put(self.account, total, timezone.now())
        return total

    def forget(self, written: Metered | None) -> None:
        """What is committed is not counted again."""
        if written is not None:
            self.meter.forget(written)

    def end(self, run: Run, **values: Any) -> None:
        """Its last change, under the lock of the run's row, which the caller saves; what happened is told by them, and
        counted.
        """
        # What tools had found is needed no more.
        self._change(**values, rounds=self.log.rounds, transcript={})
        self.budget.count_in(run, self.bill())

    def put_back(self, *, now: datetime, **values: Any) -> None:
        self._mine.update(status=RunStepStatus.READY, beat_at=None, **{"not_before": now} | values)

    def _change(self, **values: Any) -> None:
        if not self._mine.update(**values):
            raise Lost
