"""Log, memory and task diagram of a run, with titles instead of ids and sentences instead of events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from django.utils.translation import ngettext

from chat.models.runs import RunEntry, RunEvent, RunStatus, RunStepStatus
from chat.runs.overview import title_shown
from chat.runs.progress import PLANNING
from memoryhub.languages import grouped, isolated

RUN_IS: dict[str, str | Promise] = {
    RunStatus.RUNNING: later("The run goes on"),
    RunStatus.WAITING: later("The plan waits for a person"),
    RunStatus.STOPPED: later("The run was stopped"),
    RunStatus.DONE: later("The run is done"),
    RunStatus.FAILED: later("The run failed"),
}
USED: dict[str, str | Promise] = {
    "web_search": later("Searched the web"),
    "read_web_page": later("Read a web page"),
    "x_save_memory": later("Saved to memory"),
    "x_recall_memory": later("Searched memory"),
    "x_workspace_search": later("Searched the workspace"),
    "team_board": later("Looked at the team's tasks"),
    "send_message": later("Sent a message to the team"),
    "read_messages": later("Read the team's messages"),
    "add_task": later("Added a task"),
    "release_task": later("Gave the task back"),
}
# These tools are logged by their own memory events.
OWN_MEMORY = ("memory_list", "memory_read", "memory_write")
SHOWN = 5  # limit of memory entries named in one line


@dataclass(frozen=True)
class Line:
    at: datetime
    about: str  # title of the task, or ""
    text: str


@dataclass(frozen=True)
class Titles:
    """The titles of tasks by task id, and of each step's task by step id."""

    tasks: dict[str, str]
    steps: dict[str, str]

    @classmethod
    def of(cls, tasks: Iterable[dict[str, Any]]) -> Titles:
        listed = list(tasks)
        steps = {step["id"]: task["title"] for task in listed for step in task["steps"]}
        return cls({task["id"]: task["title"] for task in listed}, {PLANNING: _("Plan"), **steps})

    def entry(self, key: str, title: str = "") -> str:
        """Return the title under which the log shows an entry of the agent's working memory."""
        kind, _colon, name = key.partition(":")
        if kind == "task":
            return _("Result of “%(name)s”") % {"name": isolated(title or self.tasks.get(name, name))}
        if kind == "step":
            return _("Step of “%(name)s”") % {"name": isolated(title or self.steps.get(name, name))}
        if kind == "input":
            return _("Given: %(name)s") % {"name": isolated(name)}
        return title or name or key


def log_of(events: Iterable[RunEvent], titles: Titles) -> list[Line]:
    """Return the log lines of the events that are shown to users, in the same order."""
    told = [(event, _said(event.kind, event.data, titles)) for event in events]
    return [Line(event.at, titles.steps.get(event.step, ""), text) for event, text in told if text]


def name_entries(entries: Iterable[RunEntry], titles: Titles) -> None:
    for row in entries:
        row.shown = titles.entry(row.key, title_shown(row.title or ""))  # type: ignore[attr-defined]


def _said(kind: str, data: dict[str, Any], titles: Titles) -> str:
    if kind == "run":
        return str(RUN_IS.get(data.get("status", ""), ""))
    if kind == "step":
        return _("Step done") if data.get("status") == RunStepStatus.DONE else _("Step failed")
    if kind == "reply":
        counted = {name: grouped(int(data.get(name, 0))) for name in ("round", "tokens_in", "tokens_out")}
        return _("Reply %(round)s of the model: %(tokens_in)s tokens in, %(tokens_out)s out") % counted
    if kind == "tool":
        name = str(data.get("name", ""))
        if not data.get("ok"):
            return _("%(tool)s did not work") % {"tool": name}
        return "" if name in OWN_MEMORY else str(USED.get(name) or _("Used %(tool)s") % {"tool": name})
    return _of_memory(data, titles) if kind == "memory" else ""


def _of_memory(data: dict[str, Any], titles: Titles) -> str:
    if data.get("op") == "list":
        count = int(data.get("returned", 0))
        said = ngettext(
            "Looked at %(count)d entry of the run's memory",
            "Looked at %(count)d entries of the run's memory",
            count,
        )
        return said % {"count": count}
    keys = [str(key) for key in data.get("keys", ())]
    if not keys:
        return ""
    names = ", ".join(titles.entry(key) for key in keys[:SHOWN]) + (" …" if len(keys) > SHOWN else "")
    return (_("Read: %(names)s") if data.get("op") == "read" else _("Wrote: %(names)s")) % {"names": names}


WIDTH, HEIGHT = 150, 44  # size of a task's box in SVG units
GAP, DOWN = 14, 40  # horizontal gap between boxes, vertical gap between levels
LONGEST_TITLE = 20


@dataclass(frozen=True)
class Node:
    id: str
    title: str
    status: str
    x: int
    y: int

    @property
    def label(self) -> str:
        return self.title if len(self.title) <= LONGEST_TITLE else f"{self.title[: LONGEST_TITLE - 1]}…"

    @property
    def middle(self) -> tuple[int, int]:
        return self.x + WIDTH // 2, self.y + HEIGHT // 2 + 5


@dataclass(frozen=True)
class Graph:
    nodes: list[Node]
    lines: list[str]  # SVG path data
    width: int
    height: int
    node_width: int = WIDTH
    node_height: int = HEIGHT


def graph_of(tasks: Sequence[dict[str, Any]]) -> Graph | None:
    """Return the diagram of the tasks, or None for fewer than two tasks."""
    if len(tasks) < 2:
        return None
    levels = _levels({task["id"]: task["depends_on"] for task in tasks})
    rows: dict[int, list[dict[str, Any]]] = {}
    for task in tasks:
        rows.setdefault(levels[task["id"]], []).append(task)
    width = max(len(row) for row in rows.values()) * (WIDTH + GAP) - GAP
    nodes = {
        task["id"]: Node(
            task["id"], task["title"], task["status"], _left(n, len(row), width), level * (HEIGHT + DOWN)
        )
        for level, row in rows.items()
        for n, task in enumerate(row)
    }
    lines = [
        _line(nodes[name], nodes[task["id"]])
        for task in tasks
        for name in task["depends_on"]
        if name in nodes
    ]
    return Graph(list(nodes.values()), lines, width, len(rows) * (HEIGHT + DOWN) - DOWN)


def _left(number: int, of: int, width: int) -> int:
    return (width - (of * (WIDTH + GAP) - GAP)) // 2 + number * (WIDTH + GAP)


def _levels(needs: dict[str, Sequence[str]]) -> dict[str, int]:
    """Return for each task the length of the longest path to it. Terminates even if there is a cycle."""
    levels = dict.fromkeys(needs, 0)
    for _round in needs:
        levels = {name: max((levels[n] + 1 for n in needs[name] if n in levels), default=0) for name in needs}
    return levels


def _line(above: Node, below: Node) -> str:
    x1, y1, x2, y2 = above.x + WIDTH // 2, above.y + HEIGHT, below.x + WIDTH // 2, below.y
    return f"M{x1} {y1} C{x1} {y1 + DOWN // 2} {x2} {y2 - DOWN // 2} {x2} {y2}"
