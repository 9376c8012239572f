"""A plan: tasks that build on one another, each with steps that do. It is checked whole before anything of it runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chat.agents.run_memory import as_json_text
from chat.agents.schemas import why_bad_schema

MOST_TASKS, MOST_STEPS, MOST_MEMBERS = 50, 200, 10
LONGEST_TEXT = 8_000  # characters of instructions
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")


class PlanTrouble(ValueError):
    """A plan that cannot be run: everything that is wrong with it, in words for who wrote it."""

    def __init__(self, troubles: Sequence[str]) -> None:
        self.troubles = list(troubles)
        super().__init__("; ".join(self.troubles[:10]))


@dataclass(frozen=True)
class PlannedStep:
    """``over``: the step whose list this one is done for, item by item ("process mode")."""

    id: str
    instructions: str
    depends_on: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    over: str = ""


@dataclass(frozen=True)
class PlannedTask:
    id: str
    title: str
    description: str = ""
    depends_on: tuple[str, ...] = ()
    steps: tuple[PlannedStep, ...] = ()
    member: str = ""

    @property
    def last(self) -> PlannedStep:
        """The step whose result is the task's."""
        return self.steps[-1]


@dataclass(frozen=True)
class Teammate:
    name: str
    role: str = ""


@dataclass(frozen=True)
class TaskPlan:
    tasks: tuple[PlannedTask, ...]
    members: tuple[Teammate, ...] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """What ``read_plan`` reads."""
        plain: dict[str, Any] = json.loads(as_json_text(asdict(self)))
        return plain


class _Part(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True, str_max_length=LONGEST_TEXT)


class _Step(_Part):
    id: str
    instructions: str = Field(min_length=1)
    depends_on: list[str] = Field(default_factory=list, max_length=MOST_STEPS)
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    over: str | None = None


class _Task(_Part):
    id: str
    title: str = Field("", max_length=200)
    description: str = ""
    depends_on: list[str] = Field(default_factory=list, max_length=MOST_TASKS)
    steps: list[_Step] = Field(default_factory=list, max_length=MOST_STEPS)
    member: str | None = None


class _Member(_Part):
    name: str = Field(min_length=1, max_length=60)
    role: str = Field("", max_length=1000)


class _Plan(_Part):
    tasks: list[_Task] = Field(min_length=1, max_length=MOST_TASKS)
    members: list[_Member] = Field(default_factory=list, max_length=MOST_MEMBERS)


def read_plan(given: object) -> TaskPlan:
    """The plan in this JSON. Raises PlanTrouble for one that is malformed, too large, names what is not there, names
    something twice or goes in a circle. A task without steps is one step of its own.
    """
    try:
        read = _Plan.model_validate(_storable(given))
    except (ValidationError, RecursionError) as error:
        wrong = error.errors() if isinstance(error, ValidationError) else []
        raise PlanTrouble(
            [f"{'.'.join(map(str, found['loc'])) or 'plan'}: {found['msg']}" for found in wrong[:10]]
            or ["the plan is nested too deeply"]
        ) from None
    plan = TaskPlan(
        tuple(map(_task, read.tasks)),
        tuple(Teammate(member.name, member.role) for member in read.members),
    )
    if troubles := list(_troubles(plan)):
        raise PlanTrouble(troubles)
    return plan


def _storable(given: Any) -> Any:
    """Without what no database keeps, however deep it is."""
    if isinstance(given, str):
        return given.replace("\x00", "").encode(errors="replace").decode()
    if isinstance(given, list):
        return [_storable(each) for each in given]
    if isinstance(given, dict):
        return {_storable(name): _storable(each) for name, each in given.items()}
    return given


def _task(read: _Task) -> PlannedTask:
    title = read.title or read.description[:200] or read.id
    steps = tuple(
        PlannedStep(
            step.id,
            step.instructions,
            tuple(dict.fromkeys([*step.depends_on, *filter(None, [step.over])])),
            step.schema_,
            step.over or "",
        )
        for step in read.steps
    )
    steps = steps or (PlannedStep(read.id, read.description or title),)
    return PlannedTask(
        read.id, title, read.description, tuple(dict.fromkeys(read.depends_on)), steps, read.member or ""
    )


def _troubles(plan: TaskPlan) -> Iterable[str]:
    steps = [step for task in plan.tasks for step in task.steps]
    if len(steps) > MOST_STEPS:
        yield f"a plan may have at most {MOST_STEPS} steps"
        return
    ids = [task.id for task in plan.tasks]
    step_ids = [step.id for step in steps]
    names = [member.name for member in plan.members]
    yield from (
        f"“{name[:60]}” is no id: letters, digits, _ . and -"
        for name in [*ids, *step_ids]
        if not _ID.fullmatch(name)
    )
    for what, named in (("tasks", ids), ("steps", step_ids), ("members", names)):
        yield from (f"two {what} are called “{name}”" for name in _twice(named))
    yield from _circle("task", {task.id: task.depends_on for task in plan.tasks})
    for task in plan.tasks:
        yield from _circle("step", {step.id: step.depends_on for step in task.steps})
        if task.member and task.member not in names:
            yield f"task “{task.id}” is for “{task.member}”, who is no member"
    for step in steps:
        if step.schema is not None and (why := why_bad_schema(step.schema)):
            yield f"the schema of step “{step.id}” {why}"


def _circle(what: str, needs: Mapping[str, Sequence[str]]) -> Iterable[str]:
    for name, needed in needs.items():
        yield from (
            f"{what} “{name}” depends on “{other[:60]}”, which is not there"
            for other in needed
            if other not in needs
        )
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as circle:
        yield f"{what}s wait for one another in a circle: {' → '.join(circle.args[1])}"


def _twice(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


# What a model that plans is held to; ``read_plan`` checks the rest and tells it what is wrong.
PLAN_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["tasks"],
    "properties": {
        "tasks": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_TASKS,
            "items": {
                "type": "object",
                "required": ["id", "title", "description"],
                "properties": {
                    "id": {"type": "string"},
                    "title": {"type": "string"},
                    "description": {"type": "string", "description": "What to do, understandable alone."},
                    "depends_on": {"type": "array", "items": {"type": "string"}},
                },
            },
        }
    },
}
