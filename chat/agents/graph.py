"""The tasks of a run as a drawing: each below what it depends on, with lines between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 150, 44  # of a task, in the drawing's units
GAP, DOWN = 14, 40  # beside each other, and between two levels
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
    lines: list[str]  # as SVG writes a path
    width: int
    height: int
    node_width: int = WIDTH
    node_height: int = HEIGHT


def graph_of(tasks: Sequence[dict[str, Any]]) -> Graph | None:
    """None where there is nothing to see: a single task."""
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
    """How long the longest way is that leads to each. Plans have no circles; in one nothing would go on for ever."""
    levels = dict.fromkeys(needs, 0)
    for _ in needs:
        levels = {name: max((levels[n] + 1 for n in needs[name] if n in levels), default=0) for name in needs}
    return levels


def _line(above: Node, below: Node) -> str:
    x1, y1, x2, y2 = above.x + WIDTH // 2, above.y + HEIGHT, below.x + WIDTH // 2, below.y
    return f"M{x1} {y1} C{x1} {y1 + DOWN // 2} {x2} {y2 - DOWN // 2} {x2} {y2}"
