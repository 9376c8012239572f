"""Plans of runs (tasks and their steps), their form for people, and the JSON Schema that results may use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import jsonschema
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chat.chats.services import title_from
from chat.runs.run_entries import as_json_text

LONGEST_SCHEMA = 8_000  # characters
MOST_TROUBLES = 5
# References could load any URL, and patterns could take forever, so neither is allowed.
_PLAIN = {
    "type", "title", "description", "enum", "const", "required", "minimum", "maximum", "minLength", "maxLength",
    "minItems", "maxItems", "additionalProperties",
}  # fmt: skip


def why_bad_schema(schema: object) -> str:
    """Return the error of a schema, for its author; empty if the schema is valid."""
    try:
        if len(as_json_text(schema)) > LONGEST_SCHEMA:
            return f"may have at most {LONGEST_SCHEMA:,} characters"
        if why := _why(schema):
            return why
        jsonschema.Draft202012Validator.check_schema(schema)
    except (ValueError, TypeError, RecursionError):
        return "is not valid JSON"
    except jsonschema.SchemaError as error:
        return f"is not a JSON schema: {error.message[:200]}"
    return ""


def _why(schema: object) -> str:
    if isinstance(schema, bool):
        return ""
    if not isinstance(schema, Mapping):
        return "must be an object"
    for name, value in schema.items():
        parts: list[object] = []
        if name == "items" or (name == "additionalProperties" and isinstance(value, Mapping)):
            parts = [value]
        elif name == "properties":
            parts = list(value.values()) if isinstance(value, Mapping) else [value]
        elif name == "anyOf":
            parts = list(value) if isinstance(value, list) else [value]
        elif name not in _PLAIN:
            return f"has “{str(name)[:40]}”, which is not supported here"
        for part in parts:
            if why := _why(part):
                return why
    return ""


def fitted(value: Any, schema: Any) -> Any:
    """Return the value with common mistakes of models corrected to match the schema.

    If the schema expects a list, an object becomes a list of one and null an empty list. If it expects an object with
    one list, a list becomes that list. If it expects a string, a number becomes text. A string does not become a list,
    since it may be a word like "none".
    """
    if not isinstance(schema, Mapping):
        return value
    kind, inner = schema.get("type"), schema.get("properties") or {}
    if kind == "array":
        many = [value] if isinstance(value, dict) else [] if value is None else value
        return [fitted(each, schema.get("items")) for each in many] if isinstance(many, list) else value
    if kind == "object" and isinstance(value, list):
        lists = [name for name, of in inner.items() if isinstance(of, Mapping) and of.get("type") == "array"]
        value = {lists[0]: value} if len(lists) == 1 else value
    if kind == "object" and isinstance(value, dict):
        return {name: fitted(each, inner.get(name)) for name, each in value.items()}
    if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


def troubles_with(value: object, schema: Mapping[str, Any]) -> str:
    """Return the schema errors of a value as one line for the model; empty if there are none."""
    errors = sorted(jsonschema.Draft202012Validator(schema).iter_errors(value), key=lambda e: e.json_path)
    return "; ".join(f"{error.json_path}: {error.message[:200]}" for error in errors[:MOST_TROUBLES])


MOST_TASKS, MOST_STEPS, MOST_MEMBERS = 50, 200, 10
LONGEST_TEXT = 8_000  # characters of any text in a plan
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")


class PlanTrouble(ValueError):
    """Error for an invalid plan, with a message for the plan's author."""


@dataclass(frozen=True)
class PlannedStep:
    """A step of a plan. With ``over``, it runs once for each item of the list that the step of this id returns."""

    id: str
    instructions: str
    depends_on: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    over: str = ""


@dataclass(frozen=True)
class PlannedTask:
    """A task of a plan. Its result is that of its last step."""

    id: str
    title: str
    description: str = ""
    depends_on: tuple[str, ...] = ()
    steps: tuple[PlannedStep, ...] = ()
    member: str = ""


@dataclass(frozen=True)
class Teammate:
    name: str
    role: str = ""


@dataclass(frozen=True)
class TaskPlan:
    tasks: tuple[PlannedTask, ...]
    members: tuple[Teammate, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the plan in the format that ``read_plan`` reads."""
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


def read_plan(raw_plan: object) -> TaskPlan:
    """Parse a plan from JSON data. A task without steps gets a single one.

    Raises PlanTrouble if the plan is malformed, too large or cyclic, has duplicate names, or refers to unknown ones.
    """
    try:
        read = _Plan.model_validate(_storable(raw_plan))
    except (ValidationError, RecursionError) as error:
        wrong = error.errors() if isinstance(error, ValidationError) else []
        troubles = [f"{'.'.join(map(str, each['loc'])) or 'plan'}: {each['msg']}" for each in wrong]
        raise PlanTrouble("; ".join(troubles[:10]) or "the plan is nested too deeply") from None
    plan = TaskPlan(
        tuple(map(_task, read.tasks)),
        tuple(Teammate(member.name, member.role) for member in read.members),
    )
    if troubles := list(_troubles(plan)):
        raise PlanTrouble("; ".join(troubles[:10]))
    return plan


def _storable(value: Any) -> Any:
    """Return the JSON without characters that Postgres cannot store, at any depth."""
    if isinstance(value, str):
        return value.replace("\x00", "").encode(errors="replace").decode()
    if isinstance(value, list):
        return [_storable(each) for each in value]
    if isinstance(value, dict):
        return {_storable(name): _storable(each) for name, each in value.items()}
    return value


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
        yield from (f"two {what} are called “{name}”" for name in sorted(set(named)) if named.count(name) > 1)
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


# The schema for plans of the model; ``read_plan`` checks the rest and reports errors to the model.
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


Row = tuple[str, str]  # a task's id and text


@dataclass(frozen=True)
class ShownTask:
    """A task in the form that edits a plan. ``after``: titles of its dependencies. ``is_new``: not stored yet."""

    id: str
    title: str
    text: str
    after: Sequence[str] = ()
    is_new: bool = False


def rows_of(plan: Mapping[str, Any]) -> list[Row]:
    return [(task["id"], _wording(task)) for task in plan["tasks"]]


def rows_in(ids: Sequence[str], texts: Sequence[str]) -> list[Row]:
    """Return the rows of a submitted form, cut to one more than a plan may have, so that it is still refused."""
    lines = (text.replace("\r\n", "\n").strip() for text in texts)
    return list(zip(ids, lines, strict=False))[: MOST_TASKS + 1]


def changed(rows: Sequence[Row], do: str) -> tuple[list[Row], str]:
    """Return the rows after ``do`` (``up:N``, ``down:N``, ``drop:N`` or ``add``), and the id of the row to focus."""
    verb, _colon, number = do.partition(":")
    rows, at = list(rows), int(number) if number.isascii() and number.isdigit() and len(number) < 4 else -1
    if verb == "add" and len(rows) < MOST_TASKS:
        names = {name for name, _text in rows}
        fresh = next(name for n in range(1, len(rows) + 2) if (name := f"added-{n}") not in names)
        return [*rows, (fresh, "")], fresh
    if not 0 <= at < len(rows):
        return rows, ""
    row = rows.pop(at)
    if verb == "drop":
        return rows, rows[min(at, len(rows) - 1)][0] if rows else ""
    to = {"up": at - 1, "down": at + 1}.get(verb, at)
    rows.insert(max(0, min(to, len(rows))), row)
    return rows, row[0]


def edited(plan: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """Return the plan with the tasks of ``rows``, in their order. Rows without text are omitted, and a row with an
    unknown id becomes a new task.

    If tasks were added, removed or moved, dependencies change too. A task that depended on a removed task depends on
    that task's dependencies instead. A task depends only on tasks above it. The last task, whose result is the run's,
    also depends on all tasks that no other task depends on.
    """
    known = {task["id"]: task for task in plan["tasks"]}
    rows = [row for row in rows if row[1]]
    order = [name for name, _text in rows]
    tasks = [_edited_task(known.get(name), name, text) for name, text in rows]
    if order != list(known):
        for number, task in enumerate(tasks):
            needs = _needs(task["id"], known, set(order))
            task["depends_on"] = [name for name in dict.fromkeys(needs) if name in order[:number]]
        waited_for = {name for task in tasks[:-1] for name in task["depends_on"]}
        for task in tasks[-1:]:
            loose = [name for name in order[:-1] if name not in waited_for]
            task["depends_on"] = list(dict.fromkeys([*task["depends_on"], *loose]))
    return {"tasks": tasks, "members": plan.get("members", [])}


def shown(plan: Mapping[str, Any], rows: Sequence[Row]) -> list[ShownTask]:
    """Return the rows as tasks for the form, with titles and dependencies from ``plan``."""
    by_id = {task["id"]: task for task in plan["tasks"]}
    return [
        ShownTask(
            name,
            by_id[name]["title"] if name in by_id else "",
            text,
            [by_id[need]["title"] for need in by_id.get(name, {}).get("depends_on", ())],
            is_new=name not in by_id,
        )
        for name, text in rows
    ]


def _edited_task(known: Mapping[str, Any] | None, name: str, text: str) -> dict[str, Any]:
    if known is None:
        return {"id": name, "title": title_from(text), "description": text, "depends_on": []}
    if text == _wording(known):
        return dict(known)
    return dict(known) | {"description": text, "steps": []}


def _needs(name: str, known: Mapping[str, Any], kept_names: set[str]) -> Iterator[str]:
    for need in known[name]["depends_on"] if name in known else ():
        if need in kept_names:
            yield need
        else:
            yield from _needs(need, known, kept_names)


def _wording(task: Mapping[str, Any]) -> str:
    return str(task["description"] or task["title"]).replace("\r\n", "\n").strip()
