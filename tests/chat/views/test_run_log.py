"""A run's log and memory as people read them: titles and sentences, no ids, keys or event names."""

from __future__ import annotations

from typing import Any

import pytest

from chat.models.runs import RunEntry, RunEvent
from chat.runs.progress import PLANNING
from chat.views.runs import Titles, log_of, name_entries

TASKS = [
    {"id": "t1", "title": "Our offers", "steps": [{"id": "s1"}, {"id": "s2"}]},
    {"id": "t2", "title": "The report", "steps": []},
]


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        ("run", {"status": "waiting"}, "The plan waits for a person"),
        ("run", {"status": "done"}, "The run is done"),
        ("step", {"status": "done"}, "Step done"),
        ("step", {"status": "failed"}, "Step failed"),
        ("reply", {"round": 3, "tokens_in": 12345, "tokens_out": 67},
         "Reply 3 of the model: 12,345 tokens in, 67 out"),
        ("tool", {"name": "web_search", "ok": True}, "Searched the web"),
        ("tool", {"name": "a_new_one", "ok": True}, "Used a_new_one"),
        ("tool", {"name": "web_search", "ok": False}, "web_search did not work"),
        ("memory", {"op": "list", "returned": 1}, "Looked at 1 entry of the run's memory"),
        ("memory", {"op": "read", "keys": ["task:t1", "step:s2", "input:city", "shared:notes", "odd"]},
         "Read: Result of “Our offers”, Step of “Our offers”, Given: city, notes, odd"),
        ("memory", {"op": "write", "keys": [f"shared:{n}" for n in range(7)]}, "Wrote: 0, 1, 2, 3, 4 …"),
    ],
)  # fmt: skip
def test_each_event_is_a_sentence(kind: str, data: dict[str, Any], said: str) -> None:
    [line] = log_of([RunEvent(kind=kind, data=data, step="s1")], Titles.of(TASKS))
    assert (line.about, line.text) == ("Our offers", said)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("tool", {"name": "memory_read", "ok": True}),
        ("run", {"status": "?"}),
        ("run", {}),
        ("later", {}),
        ("memory", {"op": "write"}),
    ],
)
def test_what_is_told_elsewhere_or_unknown_is_no_line(kind: str, data: dict[str, Any]) -> None:
    assert log_of([RunEvent(kind=kind, data=data)], Titles.of(TASKS)) == []


def test_an_entry_is_called_by_its_title_and_a_step_by_its_task() -> None:
    entries = [
        RunEntry(key="task:t2"),
        RunEntry(key="step:x", title="Gone since"),
        RunEntry(key="shared:a:b"),
    ]
    name_entries(entries, Titles.of(TASKS))
    shown = [entry.shown for entry in entries]  # type: ignore[attr-defined]
    assert shown == ["Result of “The report”", "Step of “Gone since”", "a:b"]
    assert Titles.of([]).steps == {PLANNING: "Plan"}
