"""What the executors have in common: what can be done next, by whom, and how it stands."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from chat.agents.plan import PlannedStep
from chat.agents.step import Outcome


class State(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


States = MutableMapping[str, State]


@dataclass(frozen=True)
class Unit:
    """What one worker does at one time: a step, one item of a step, a teammate's task. Its id is its step's."""

    step: PlannedStep
    task_id: str
    task_title: str
    upstream: tuple[str, ...] = ()
    finishes_task: bool = False
    of: str = ""  # the step that it is an item of
    member: str = ""

    @property
    def id(self) -> str:
        return self.step.id


class Executor(Protocol):
    """A state machine: whoever drives it asks what is ready, says what is begun, and what came of it. Everything it
    knows lies in the run's memory and in its states, so another process goes on where one was.
    """

    def ready(self) -> list[Unit]:
        """What can begin now, without what is running."""
        ...

    def begin(self, unit: Unit) -> None: ...

    def finish(self, unit: Unit, outcome: Outcome) -> None: ...

    @property
    def is_over(self) -> bool: ...
