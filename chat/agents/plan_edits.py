"""A plan as a person changes it, a list of what is to be done: written anew, moved, left out, added to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chat.agents.plan import MOST_TASKS
from chat.chats.titles import title_from

Row = tuple[str, str]  # a task's id and what it says


@dataclass(frozen=True)
class ShownTask:
    """``after``: the titles of what it waits for. ``is_new``: a person has put it up and not yet said what it is."""

    id: str
    title: str
    text: str
    after: Sequence[str] = ()
    is_new: bool = False


def rows_of(plan: Mapping[str, Any]) -> list[Row]:
    return [(task["id"], _wording(task)) for task in plan["tasks"]]


def rows_in(ids: Sequence[str], texts: Sequence[str]) -> list[Row]:
    """As a form sends them; one more than a plan may have, so that it is refused rather than cut."""
    lines = (text.replace("\r\n", "\n").strip() for text in texts)
    return list(zip(ids, lines, strict=False))[: MOST_TASKS + 1]


def changed(rows: Sequence[Row], do: str) -> tuple[list[Row], str]:
    """After ``up:``, ``down:`` or ``drop:`` with the number of a row, or ``add``; and the row that is next."""
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
    """The plan with these tasks in this order. A row without words is left out, one of an unknown id is a new task.

    What built on a task left out builds on what that did. What has been moved waits only for what stands above it, and
    the last task, whose result is the run's, for all that nothing else waits for.
    """
    known = {task["id"]: task for task in plan["tasks"]}
    rows = [row for row in rows if row[1]]
    order = [name for name, _text in rows]
    tasks = [_task(known.get(name), name, text) for name, text in rows]
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
    """For the form; ``plan`` is the one that the rows make."""
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


def _task(known: Mapping[str, Any] | None, name: str, text: str) -> dict[str, Any]:
    if known is None:
        return {"id": name, "title": title_from(text), "description": text, "depends_on": []}
    if text == _wording(known):
        return dict(known)
    return dict(known) | {"description": text, "steps": []}


def _needs(name: str, known: Mapping[str, Any], kept: set[str]) -> Iterator[str]:
    for need in known[name]["depends_on"] if name in known else ():
        if need in kept:
            yield need
        else:
            yield from _needs(need, known, kept)


def _wording(task: Mapping[str, Any]) -> str:
    return str(task["description"] or task["title"]).replace("\r\n", "\n").strip()
