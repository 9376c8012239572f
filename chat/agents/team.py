"""A team: each teammate takes up what the board has for them, until all is done or nobody can go on."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from chat.agents.board import BoardEvent, TaskBoard, TaskState
from chat.agents.plan import PlannedStep, PlanTrouble, TaskPlan, Teammate
from chat.agents.run_memory import AgentMemory, MemoryKind, memory_keys
from chat.agents.step import Outcome, Released, StepContext
from chat.agents.step_tools import KEPT, StepTool, Word, step_tool
from chat.agents.task import seed_inputs
from chat.agents.units import Unit
from chat.tools.base import Arguments, ToolTrouble, at_most

Opened = Callable[[], AbstractContextManager[TaskBoard]]
RESULT_SCHEMA: dict[str, Any] = {"description": "The whole result of the task: text, or any JSON."}
MEMBERS = (
    Teammate("ada", "You work carefully and check what others found."),
    Teammate("ben", "You find out facts, with their sources."),
    Teammate("cleo", "You write clearly, for people."),
)


class TeamExecutor:
    """``opened`` gives the board for one look or change, alone. What is completed on it is mirrored into the memory;
    what fails is not.
    """

    def __init__(
        self,
        plan: TaskPlan,
        memory: AgentMemory,
        *,
        board: TaskBoard | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        self.plan, self.memory = plan, memory
        self.members = plan.members or MEMBERS
        self.board = board or TaskBoard.of(plan)
        self._lock = threading.RLock()
        seed_inputs(memory, inputs or {})
        self.board.on_event(self._mirror)

    @contextmanager
    def opened(self) -> Iterator[TaskBoard]:
        with self._lock:
            yield self.board

    def ready(self) -> list[Unit]:
        """One task for each teammate who has none, none of them twice."""
        with self._lock:
            busy = {task.member for task in self.board.tasks.values() if task.state == TaskState.WORKING}
            found, taken = list[Unit](), set[str]()
            for member in self.members:
                free = [task for task in self.board.claimable(member.name) if task.id not in taken]
                # What only they may do comes first: the rest somebody else can take.
                free.sort(key=lambda task: not task.only)
                if member.name not in busy and free:
                    taken.add(free[0].id)
                    found.append(self._unit(free[0].id, member.name))
            return found

    def begin(self, unit: Unit) -> None:
        with self._lock:
            assert self.board.claim(unit.task_id, unit.member), "ready units can be claimed"

    def finish(self, unit: Unit, outcome: Outcome) -> None:
        with self._lock:
            if outcome.released:
                self.board.release(unit.task_id)
            elif outcome.ok:
                self.board.complete(unit.task_id, outcome.value)
            else:
                self.board.fail(unit.task_id)

    @property
    def is_over(self) -> bool:
        """All is done, or nobody works and nobody can take up what is left."""
        with self._lock:
            working = any(task.state == TaskState.WORKING for task in self.board.tasks.values())
            return not working and not self.ready()

    @property
    def ok(self) -> bool:
        return all(task.state == TaskState.DONE for task in self.board.tasks.values())

    def final_result(self) -> Any:
        """Of the task that was put up last."""
        return self.memory.get_value(memory_keys.task(next(reversed(self.board.tasks))))

    def _unit(self, task_id: str, member: str) -> Unit:
        task = self.board.tasks[task_id]
        tries = len(task.refused_by)
        name = f"{task.id}.{tries + 1}" if tries else task.id
        step = PlannedStep(name, task.description or task.title, schema=RESULT_SCHEMA)
        upstream = tuple(map(memory_keys.task, task.depends_on))
        return Unit(step, task.id, task.title, upstream, member=member)

    def _mirror(self, event: BoardEvent) -> None:
        if event.type != "task_completed":
            return
        task = self.board.tasks[event.task_id]
        self.memory.set(
            memory_keys.task(task.id),
            MemoryKind.TASK_RESULT,
            event.result,
            source=task.id,
            title=task.title,
            description=task.description or None,
        )


def context_of_member(
    member: Teammate, context: StepContext, members: Sequence[Teammate], opened: Opened
) -> StepContext:
    names = ", ".join(other.name for other in members if other.name != member.name)
    said = f"You are {member.name}. {member.role} Your teammates: {names}.".replace("  ", " ")
    preamble = "\n\n".join(filter(None, [context.preamble, said]))
    tools = (*context.tools, *team_tools(member.name, [other.name for other in members], opened))
    return replace(context, preamble=preamble, tools=tools, in_team=True)


class Nothing(Arguments):
    """A call that takes nothing."""


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
    """Who calls is told apart by the tool, not by what the model says of itself."""

    def show(asked: Nothing, key: str) -> str:
        with opened() as board:
            shown = [
                {"id": t.id, "title": t.title, "state": t.state, "member": t.member or None}
                for t in board.tasks.values()
            ]
        return json.dumps({"tasks": shown, "members": list(names)}, ensure_ascii=False)

    def send(asked: ToSend, key: str) -> str:
        if asked.to and asked.to not in names:
            raise ToolTrouble(f"there is no teammate of this name; there are {', '.join(names)}")
        with opened() as board:
            _as_tool_trouble(lambda: board.send(me, asked.to or "", asked.text, made_by=key))
        return json.dumps({"ok": True})

    def read(asked: Nothing, key: str) -> str:
        with opened() as board:
            said = [{"from": message.sender, "text": message.text} for message in board.read(me)]
        return json.dumps({"messages": said}, ensure_ascii=False)

    def add(asked: ToAdd, key: str) -> str:
        with opened() as board:
            task = _as_tool_trouble(
                lambda: board.add(asked.title, asked.description, asked.depends_on or [], by=me, made_by=key)
            )
        return json.dumps({"ok": True, "id": task.id})

    def release(asked: ToRelease, key: str) -> str:
        raise Released(asked.reason)

    return (
        step_tool("team_board", "See the tasks, their states and who has them.", Nothing, show),
        step_tool("send_message", "Tell a teammate, or all, something.", ToSend, send),
        step_tool("read_messages", "Read what you were told.", Nothing, read),
        step_tool("add_task", "Put up a task that is missing.", ToAdd, add),
        step_tool("release_task", "Give your task back, with the reason.", ToRelease, release),
    )


def _as_tool_trouble(change: Callable[[], Any]) -> Any:
    try:
        return change()
    except PlanTrouble as trouble:
        raise ToolTrouble(str(trouble)) from None
