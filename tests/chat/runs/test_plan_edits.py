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


def test_a_plan_that_nobody_changed_stays_as_it_is() -> None:
    sent = rows_in(["a", "b", "c"], ["Find\r\na.", "Sift.", "C"])  # as browsers send it
    assert sent == ROWS and read_plan(edited(PLAN, sent)) == read_plan(PLAN)


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([B, A, C], [("b", []), ("a", []), ("c", ["b", "a"])]),
        ([A, C, B], [("a", []), ("c", []), ("b", ["a", "c"])]),
        ([A, C], [("a", []), ("c", ["a"])]),
        ([A, ("b", " "), C], [("a", []), ("c", ["a"])]),
        ([B, C], [("b", []), ("c", ["b"])]),
        ([C], [("c", [])]),
        ([A, ("added-1", "Ask."), B, C], [("a", []), ("added-1", []), ("b", ["a"]), ("c", ["b", "added-1"])]),
        ([*ROWS, ("added-1", "Sum up.")], [("a", []), ("b", ["a"]), ("c", ["b"]), ("added-1", ["c"])]),
    ],
    ids=[
        "up",
        "down",
        "left out",
        "cleared",
        "the first left out",
        "one alone",
        "added between",
        "added last",
    ],
)
def test_what_is_moved_waits_for_what_stands_above_it_and_the_last_for_all(
    rows: list[tuple[str, str]], wanted: list[tuple[str, list[str]]]
) -> None:
    rows = rows_in(*zip(*rows, strict=True))
    assert needs(rows) == wanted


def test_only_a_task_written_anew_loses_its_steps() -> None:
    plan = edited(PLAN, [A, ("b", "Sift well."), C])
    assert [len(task["steps"]) for task in plan["tasks"]] == [2, 0, 1] and plan["members"][0]["name"] == "zoe"
    assert read_plan(plan).tasks[1].steps[0].instructions == "Sift well."
    added = edited(PLAN, [*ROWS, ("added-1", "Say it in one line\nand no more.")])["tasks"][-1]
    assert added["title"] == "Say it in one line and no more." and added["depends_on"] == ["c"]


@pytest.mark.parametrize(
    ("do", "ids", "focus"),
    [
        ("up:1", "bac", "b"),
        ("down:1", "acb", "b"),
        ("up:0", "abc", "a"),
        ("down:2", "abc", "c"),
        ("drop:1", "ac", "c"),
        ("drop:2", "ab", "b"),
        ("add", "abc+", "added-1"),
        *(
            (do, "abc", "")
            for do in ("", "up", "up:3", "up:-1", "drop:²", "up:99999999999", "add:x:y", "rm:\x00")
        ),
    ],
)
def test_a_row_is_moved_left_out_or_added_and_nonsense_changes_nothing(do: str, ids: str, focus: str) -> None:
    if do == "add:x:y":
        ids, focus = "abc+", "added-1"  # anything after the word is ignored
    rows, seen = changed(ROWS, do)
    assert "".join(name if len(name) == 1 else "+" for name, _text in rows) == ids and seen == focus
    if do == "add":
        assert [task.is_new for task in shown(edited(PLAN, rows), rows)] == [False] * 3 + [True]
        assert changed(rows, "add")[1] == "added-2"


def test_a_form_of_any_length_is_read_as_far_as_a_plan_may_go() -> None:
    many = rows_in([f"t{n}" for n in range(5_000)], ["x"] * 5_000)
    assert len(many) == 51 and changed(many, "add") == (many, "")
    with pytest.raises(ValueError, match="at most 50"):
        read_plan(edited(PLAN, many))
    with pytest.raises(ValueError, match="two tasks"):
        read_plan(edited(PLAN, [A, A]))
