"""A plan as a person edits it in a list."""

from typing import Any

import pytest

from chat.runs.plan import changed, edited, read_plan, rows_in, rows_of, shown

STEPS = [{"id": "s1", "instructions": "One."}, {"id": "s2", "instructions": "Two.", "depends_on": ["s1"]}]
PLAN: dict[str, Any] = read_plan(
    {
        "tasks": [
            {"id": "a", "title": "A", "description": "Find\na.", "steps": STEPS},
            {"id": "b", "title": "B", "description": "Sift.", "depends_on": ["a"]},
            {"id": "c", "title": "C", "depends_on": ["b"]},
        ],
        "members": [{"name": "zoe"}],
    }
).as_json()
ROWS = rows_of(PLAN)
A, B, C = ROWS


def needs(rows: list[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Apply the edits and return each task with its dependencies."""
    plan = edited(PLAN, rows)
    read_plan(plan)
    return [(task["id"], task["depends_on"]) for task in plan["tasks"]]


def test_unchanged_plan_stays_as_it_is() -> None:
    sent = rows_in(["a", "b", "c"], ["Find\r\na.", "Sift.", "C"])  # as browsers send it
    assert sent == ROWS and read_plan(edited(PLAN, sent)) == read_plan(PLAN)


def test_moved_task_depends_on_those_above_it_and_the_last_on_all() -> None:
    cases: dict[str, tuple[list[tuple[str, str]], list[tuple[str, list[str]]]]] = {
        "up": ([B, A, C], [("b", []), ("a", []), ("c", ["b", "a"])]),
        "down": ([A, C, B], [("a", []), ("c", []), ("b", ["a", "c"])]),
        "left out": ([A, C], [("a", []), ("c", ["a"])]),
        "cleared": ([A, ("b", " "), C], [("a", []), ("c", ["a"])]),
        "the first left out": ([B, C], [("b", []), ("c", ["b"])]),
        "one alone": ([C], [("c", [])]),
        "added between": (
            [A, ("added-1", "Ask."), B, C],
            [("a", []), ("added-1", []), ("b", ["a"]), ("c", ["b", "added-1"])],
        ),
        "added last": (
            [*ROWS, ("added-1", "Sum up.")],
            [("a", []), ("b", ["a"]), ("c", ["b"]), ("added-1", ["c"])],
        ),
    }
    for name, (rows, wanted) in cases.items():
        assert needs(rows_in(*zip(*rows, strict=True))) == wanted, name


def test_only_a_task_with_a_new_text_loses_its_steps() -> None:
    plan = edited(PLAN, [A, ("b", "Sift well."), C])
    assert [len(task["steps"]) for task in plan["tasks"]] == [2, 0, 1] and plan["members"][0]["name"] == "zoe"
    assert read_plan(plan).tasks[1].steps[0].instructions == "Sift well."
    added = edited(PLAN, [*ROWS, ("added-1", "Say it in one line\nand no more.")])["tasks"][-1]
    assert added["title"] == "Say it in one line and no more." and added["depends_on"] == ["c"]


def test_row_is_moved_removed_or_added_and_invalid_commands_change_nothing() -> None:
    for do, ids, focus in (
        ("up:1", "bac", "b"),
        ("down:1", "acb", "b"),
        ("up:0", "abc", "a"),
        ("down:2", "abc", "c"),
        ("drop:1", "ac", "c"),
        ("drop:2", "ab", "b"),
        ("add", "abc+", "added-1"),
        ("add:x:y", "abc+", "added-1"),  # anything after the word is ignored
        *((do, "abc", "") for do in ("", "up", "up:3", "up:-1", "drop:²", "up:99999999999", "rm:\x00")),
    ):
        rows, seen = changed(ROWS, do)
        assert "".join(name if len(name) == 1 else "+" for name, _text in rows) == ids, do
        assert seen == focus, do
    rows, _focus = changed(ROWS, "add")
    assert [task.is_new for task in shown(edited(PLAN, rows), rows)] == [False] * 3 + [True]
    assert changed(rows, "add")[1] == "added-2"


def test_long_form_is_read_up_to_the_limit_of_a_plan() -> None:
    many = rows_in([f"t{n}" for n in range(5_000)], ["x"] * 5_000)
    assert len(many) == 51 and changed(many, "add") == (many, "")
    with pytest.raises(ValueError, match="at most 50"):
        read_plan(edited(PLAN, many))
    with pytest.raises(ValueError, match="two tasks"):
        read_plan(edited(PLAN, [A, A]))
