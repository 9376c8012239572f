"""Teams: teammates take tasks from a shared board until all tasks are done or none can be taken."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from itertools import count
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from chat.runs.plan import MOST_TASKS, PlannedStep, PlanTrouble, TaskPlan, Teammate, read_plan
from chat.runs.run_entries import MemoryKind, RunEntries, memory_keys
from chat.runs.run_memory_tools import KEPT, StepTool, Word, step_tool
from chat.runs.step import Outcome, Released, StepContext, Unit
from chat.tools.base import Arguments, ToolTrouble, at_most

MOST_MESSAGES = 200


class TaskState(StrEnum):
    OPEN = "open"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class BoardTask:
    """A task on the board."""

    id: str
    title: str
    description: str = ""
    depends_on: tuple[str, ...] = ()
    only: str = ""  # the one member who may take it
    member: str = ""  # the member who works on it
    state: TaskState = TaskState.OPEN
    refused_by: tuple[str, ...] = ()  # the members who gave it back
    made_by: str = ""  # the key of the tool call that added it, so that a repeated call does not add it twice


@dataclass(frozen=True)
class TeamMessage:
    sender: str
    to: str  # empty: everybody
    text: str
    made_by: str = ""


_TASKS, _MESSAGES = TypeAdapter(list[BoardTask]), TypeAdapter(list[TeamMessage])


@dataclass
class TaskBoard:
    tasks: dict[str, BoardTask] = field(default_factory=dict)
    messages: list[TeamMessage] = field(default_factory=list)

    @classmethod
    def of(cls, plan: TaskPlan) -> TaskBoard:
        tasks = [
            BoardTask(task.id, task.title, task.description, task.depends_on, task.member)
            for task in plan.tasks
        ]
        return cls({task.id: task for task in tasks})

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> TaskBoard:
        tasks = _TASKS.validate_python(fields["tasks"])
        return cls({task.id: task for task in tasks}, _MESSAGES.validate_python(fields["messages"]))

    def as_json(self) -> dict[str, Any]:
        return {
            "tasks": [asdict(task) for task in self.tasks.values()],
            "messages": [asdict(message) for message in self.messages],
        }

    def claimable(self, member: str) -> list[BoardTask]:
        """Return the tasks that this teammate may claim now, oldest first."""
        done = {task.id for task in self.tasks.values() if task.state == TaskState.DONE}
        return [
            task
            for task in self.tasks.values()
            if task.state == TaskState.OPEN
            and task.only in ("", member)
            and member not in task.refused_by
            and done.issuperset(task.depends_on)
        ]

    def claim(self, task_id: str, member: str) -> bool:
        """Claim a task. Return False if the task is not claimable for this teammate."""
        if not any(task.id == task_id for task in self.claimable(member)):
            return False
        self.change(task_id, state=TaskState.WORKING, member=member)
        return True

    def add(self, title: str, description: str, depends_on: Sequence[str], *, made_by: str) -> BoardTask:
        """Add a task and return it, or the one that the tool call ``made_by`` has added before. Raises ToolTrouble."""
        for task in self.tasks.values():
            if task.made_by == made_by:
                return task
        if len(self.tasks) >= MOST_TASKS:
            raise ToolTrouble(f"the board is full: {MOST_TASKS} tasks are the most")
        free = (f"task_{number}" for number in count(len(self.tasks) + 1))
        task_id = next(name for name in free if name not in self.tasks)
        task = BoardTask(task_id, title, description, tuple(dict.fromkeys(depends_on)), made_by=made_by)
        rows = [
            {"id": each.id, "title": each.title, "depends_on": list(each.depends_on)}
            for each in (*self.tasks.values(), task)
        ]
        try:
            read_plan({"tasks": rows})
        except PlanTrouble as trouble:
            raise ToolTrouble(str(trouble)) from None
        self.tasks[task.id] = task
        return task

    def send(self, sender: str, to: str, text: str, *, made_by: str) -> None:
        if any(message.made_by == made_by for message in self.messages):
            return
        if len(self.messages) >= MOST_MESSAGES:
            raise ToolTrouble(f"enough was said: {MOST_MESSAGES} messages are the most")
        self.messages.append(TeamMessage(sender, to, text, made_by))

    def read(self, member: str) -> list[TeamMessage]:
        """Return the messages that were sent to this teammate, or by others to everybody."""
        return [
            message
            for message in self.messages
            if message.to == member or (not message.to and message.sender != member)
        ]

    def change(self, task_id: str, **changes: Any) -> None:
        self.tasks[task_id] = replace(self.tasks[task_id], **changes)


Opened = Callable[[], AbstractContextManager[TaskBoard]]
RESULT_SCHEMA: dict[str, Any] = {"description": "The whole result of the task: text, or any JSON."}
MEMBERS = (
    Teammate("ada", "You work carefully and check what others found."),
    Teammate("ben", "You find out facts, with their sources."),
    Teammate("cleo", "You write clearly, for people."),
)


class TeamExecutor:
    """The executor of a team's tasks. Results of completed tasks are stored in the run's memory; failures are not."""

    def __init__(self, plan: TaskPlan, memory: RunEntries, *, board: TaskBoard | None = None) -> None:
        self.plan, self.memory = plan, memory
        self.members = plan.members or MEMBERS
        self.board = board or TaskBoard.of(plan)

    def ready(self) -> list[Unit]:
        """Return one claimable task for each idle teammate, each task only once."""
        busy = {task.member for task in self.board.tasks.values() if task.state == TaskState.WORKING}
        units, assigned_ids = list[Unit](), set[str]()
        for member in self.members:
            free = [task for task in self.board.claimable(member.name) if task.id not in assigned_ids]
            # Tasks reserved for this member come first, since others can take the rest.
            free.sort(key=lambda task: not task.only)
            if member.name not in busy and free:
                assigned_ids.add(free[0].id)
                units.append(self._unit(free[0], member.name))
        return units

    def begin(self, unit: Unit) -> None:
        claimed = self.board.claim(unit.task_id, unit.member)  # not in the assertion, which -O skips
        assert claimed, "ready units can be claimed"

    def finish(self, unit: Unit, outcome: Outcome) -> None:
        task = self.board.tasks[unit.task_id]
        if outcome.released:
            refused = (*task.refused_by, task.member)
            self.board.change(task.id, state=TaskState.OPEN, member="", refused_by=refused)
            return
        self.board.change(task.id, state=TaskState.DONE if outcome.ok else TaskState.FAILED)
        if outcome.ok:
            about = {"source": task.id, "title": task.title, "description": task.description or None}
            self.memory.set(memory_keys.task(task.id), MemoryKind.TASK_RESULT, outcome.value, **about)

    @property
    def is_over(self) -> bool:
        """Whether no teammate works and none can take a task."""
        working = any(task.state == TaskState.WORKING for task in self.board.tasks.values())
        return not working and not self.ready()

    @property
    def ok(self) -> bool:
        return all(task.state == TaskState.DONE for task in self.board.tasks.values())

    def _unit(self, task: BoardTask, member: str) -> Unit:
        tries = len(task.refused_by)
        name = f"{task.id}.{tries + 1}" if tries else task.id
        step = PlannedStep(name, task.description or task.title, schema=RESULT_SCHEMA)
        upstream = tuple(map(memory_keys.task, task.depends_on))
        return Unit(step, task.id, task.title, upstream, member=member)


def context_of_member(
    member: Teammate, context: StepContext, members: Sequence[Teammate], opened: Opened
) -> StepContext:
    """Return a context for this teammate, with its role in the preamble, and with the team's tools."""
    names = ", ".join(other.name for other in members if other.name != member.name)
    introduction = f"You are {member.name}. {member.role} Your teammates: {names}.".replace("  ", " ")
    preamble = "\n\n".join(filter(None, [context.preamble, introduction]))
    tools = (*context.tools, *team_tools(member.name, [other.name for other in members], opened))
    return replace(context, preamble=preamble, tools=tools, in_team=True)


class Nothing(Arguments):
    """Arguments of a tool that takes none."""


class ToSend(Arguments):
    text: Annotated[str, at_most(4_000), KEPT]
    to: str | None = Field(None, description="A teammate's name; everybody without.")


class ToAdd(Arguments):
    title: Annotated[str, at_most(200), KEPT]
    description: Annotated[str, at_most(4_000), KEPT] = Field(description="Understandable alone.")
    depends_on: list[Word] | None = Field(None, description="Ids of tasks.")


class ToRelease(Arguments):
    reason: Annotated[str, at_most(500), KEPT]


def team_tools(me: str, names: Sequence[str], opened: Opened) -> tuple[StepTool, ...]:
    """Return the tools of the teammate ``me``, the sender of all messages. ``opened`` locks and yields the board."""

    def show(arguments: Nothing, key: str) -> str:
        with opened() as board:
            shown = [
                {"id": t.id, "title": t.title, "state": t.state, "member": t.member or None}
                for t in board.tasks.values()
            ]
        return json.dumps({"tasks": shown, "members": list(names)}, ensure_ascii=False)

    def send(arguments: ToSend, key: str) -> str:
        if arguments.to and arguments.to not in names:
            raise ToolTrouble(f"there is no teammate of this name; there are {', '.join(names)}")
        with opened() as board:
            board.send(me, arguments.to or "", arguments.text, made_by=key)
        return json.dumps({"ok": True})

    def read(arguments: Nothing, key: str) -> str:
        with opened() as board:
            messages = [{"from": message.sender, "text": message.text} for message in board.read(me)]
        return json.dumps({"messages": messages}, ensure_ascii=False)

    def add(arguments: ToAdd, key: str) -> str:
        with opened() as board:
            task = board.add(arguments.title, arguments.description, arguments.depends_on or [], made_by=key)
        return json.dumps({"ok": True, "id": task.id})

    def release(arguments: ToRelease, key: str) -> str:
        raise Released(arguments.reason)

    return (
        step_tool("team_board", "See the tasks, their states and who has them.", Nothing, show),
        step_tool("send_message", "Tell a teammate, or all, something.", ToSend, send),
        step_tool("read_messages", "Read what you were told.", Nothing, read),
        step_tool("add_task", "Put up a task that is missing.", ToAdd, add),
        step_tool("release_task", "Give your task back, with the reason.", ToRelease, release),
    )
