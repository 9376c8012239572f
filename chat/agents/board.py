"""What a team shares beside its memory: a board of tasks and messages to one another. Plain data, kept as JSON."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from chat.agents.plan import MOST_TASKS, PlanTrouble, TaskPlan, read_plan

logger = logging.getLogger(__name__)
MOST_MESSAGES = 200


class TaskState(StrEnum):
    OPEN = "open"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class BoardTask:
    """``member`` works on it, or is the only one who may; ``refused_by`` gave it back. ``made_by`` is the call that put
    it up, which may be made twice.
    """

    id: str
    title: str
    description: str = ""
    depends_on: tuple[str, ...] = ()
    only: str = ""
    member: str = ""
    state: TaskState = TaskState.OPEN
    refused_by: tuple[str, ...] = ()
    made_by: str = ""


@dataclass(frozen=True)
class TeamMessage:
    sender: str
    to: str  # empty: everybody
    text: str
    made_by: str = ""


@dataclass(frozen=True)
class BoardEvent:
    """task_claimed, task_completed, task_failed, task_released, task_added, message_sent."""

    type: str
    task_id: str = ""
    result: Any = None


@dataclass
class TaskBoard:
    tasks: dict[str, BoardTask] = field(default_factory=dict)
    messages: list[TeamMessage] = field(default_factory=list)
    _listeners: list[Callable[[BoardEvent], None]] = field(default_factory=list)

    @classmethod
    def of(cls, plan: TaskPlan) -> TaskBoard:
        tasks = [
            BoardTask(task.id, task.title, task.description, task.depends_on, task.member)
            for task in plan.tasks
        ]
        return cls({task.id: task for task in tasks})

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> TaskBoard:
        tasks = [
            BoardTask(
                **task
                | {"state": TaskState(task["state"])}
                | {name: tuple(task[name]) for name in ("depends_on", "refused_by")}
            )
            for task in given["tasks"]
        ]
        return cls({task.id: task for task in tasks}, [TeamMessage(**said) for said in given["messages"]])

    def as_json(self) -> dict[str, Any]:
        return {
            "tasks": [asdict(task) for task in self.tasks.values()],
            "messages": [asdict(said) for said in self.messages],
        }

    def on_event(self, listener: Callable[[BoardEvent], None]) -> None:
        self._listeners.append(listener)

    def claimable(self, member: str) -> list[BoardTask]:
        """What this teammate may take up now, first what was put up first."""
        return [
            task
            for task in self.tasks.values()
            if task.state == TaskState.OPEN
            and task.only in ("", member)
            and member not in task.refused_by
            and all(self._is_done(name) for name in task.depends_on)
        ]

    def claim(self, task_id: str, member: str) -> bool:
        """False where it is another's, done, refused by this teammate, or waits for others."""
        if not any(task.id == task_id for task in self.claimable(member)):
            return False
        self._change(task_id, "task_claimed", state=TaskState.WORKING, member=member)
        return True

    def complete(self, task_id: str, result: Any) -> None:
        self._change(task_id, "task_completed", result, state=TaskState.DONE)

    def fail(self, task_id: str) -> None:
        self._change(task_id, "task_failed", state=TaskState.FAILED)

    def release(self, task_id: str) -> None:
        """Back on the board for the others; who gave it back does not get it again."""
        task = self.tasks[task_id]
        refused = (*task.refused_by, task.member)
        self._change(task_id, "task_released", state=TaskState.OPEN, member="", refused_by=refused)

    def add(
        self, title: str, description: str, depends_on: Sequence[str], *, by: str, made_by: str
    ) -> BoardTask:
        """Another task. Made again by the same call it is there already. Raises PlanTrouble."""
        for task in self.tasks.values():
            if task.made_by == made_by:
                return task
        if len(self.tasks) >= MOST_TASKS:
            raise PlanTrouble([f"the board is full: {MOST_TASKS} tasks are the most"])
        number = len(self.tasks) + 1
        while f"task_{number}" in self.tasks:
            number += 1
        task = BoardTask(
            f"task_{number}", title, description, tuple(dict.fromkeys(depends_on)), made_by=made_by
        )
        known = [
            {"id": t.id, "title": t.title, "depends_on": list(t.depends_on)} for t in self.tasks.values()
        ]
        read_plan({"tasks": [*known, {"id": task.id, "title": title, "depends_on": list(task.depends_on)}]})
        self.tasks[task.id] = task
        self._tell(BoardEvent("task_added", task.id))
        return task

    def send(self, sender: str, to: str, text: str, *, made_by: str) -> None:
        if any(said.made_by == made_by for said in self.messages):
            return
        if len(self.messages) >= MOST_MESSAGES:
            raise PlanTrouble([f"enough was said: {MOST_MESSAGES} messages are the most"])
        self.messages.append(TeamMessage(sender, to, text, made_by))
        self._tell(BoardEvent("message_sent"))

    def read(self, member: str) -> list[TeamMessage]:
        """What was said to this teammate, or to all by another."""
        return [
            said for said in self.messages if said.to == member or (not said.to and said.sender != member)
        ]

    def _is_done(self, task_id: str) -> bool:
        return task_id in self.tasks and self.tasks[task_id].state == TaskState.DONE

    def _change(self, task_id: str, event: str, result: Any = None, **changes: Any) -> None:
        self.tasks[task_id] = replace(self.tasks[task_id], **changes)
        self._tell(BoardEvent(event, task_id, result))

    def _tell(self, event: BoardEvent) -> None:
        for listener in list(self._listeners):
            try:
                listener(event)
            except Exception:
                logger.exception("A listener of a team's board failed")
