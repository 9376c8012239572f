"""Validation of a plan: refused whole, with all its errors, before anything runs."""

from typing import Any

import pytest

from chat.runs.plan import PLAN_SCHEMA, PlanTrouble, read_plan, troubles_with, why_bad_schema


def task(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "title": name, "depends_on": list(needs), **more}


def step(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "instructions": "Do it.", "depends_on": list(needs), **more}


def test_bad_plan_is_refused_with_the_reason() -> None:
    for plan, why in (
        ({"tasks": [task("a", "b"), task("b", "a")]}, "circle"),
        ({"tasks": [task("a", "a")]}, "circle"),
        ({"tasks": [task("a", "x")]}, "which is not there"),
        ({"tasks": [task("a"), task("a")]}, "two tasks are called “a”"),
        ({"tasks": [task("a", steps=[step("s", "t"), step("t", "s")])]}, "circle"),
        ({"tasks": [task("a", steps=[step("s", "x")])]}, "which is not there"),
        ({"tasks": [task("a", steps=[step("s", over="x")])]}, "which is not there"),
        ({"tasks": [task("a", steps=[step("s")]), task("b", steps=[step("s")])]}, "two steps are called “s”"),
        ({"tasks": [task("a", steps=[step("s")]), task("b", steps=[step("t", "s")])]}, "which is not there"),
        ({"tasks": [task("../a")]}, "is no id"),
        ({"tasks": [task("a", member="nobody")]}, "who is no member"),
        ({"tasks": [task("a", steps=[step("s", schema={"$ref": "http://evil.example"})])]}, "not supported"),
        ({"tasks": []}, "tasks"),
        ({"tasks": [task(f"t{n}") for n in range(51)]}, "tasks"),
        ({"tasks": [task("a", steps=[step(f"s{n}") for n in range(150)]),
                    task("b", steps=[step(f"u{n}") for n in range(150)])]}, "at most 200 steps"),
        ("nonsense", "plan"),
        ({"tasks": [task("a", steps=[{"id": "s", "instructions": "x" * 9_000}])]}, "instructions"),
    ):  # fmt: skip
        with pytest.raises(PlanTrouble, match=why):
            read_plan(plan)


def test_all_errors_of_a_plan_are_reported_together() -> None:
    with pytest.raises(PlanTrouble) as refused:
        read_plan({"tasks": [task("a", "x"), task("a", "y")]})
    assert "depends on" in str(refused.value) and "two tasks" in str(refused.value)


def test_plan_is_read_from_its_own_json() -> None:
    plan = read_plan(
        {
            "tasks": [
                task("a", steps=[step("s"), step("t", over="s", schema={"type": "array", "items": {}})]),
                task("b", "a", member="ada"),
            ],
            "members": [{"name": "ada", "role": "Checks."}],
        }
    )
    assert read_plan(plan.as_json()) == plan
    assert plan.tasks[0].steps[1].depends_on == ("s",) and plan.tasks[1].steps[-1].id == "b"


def test_harmful_schema_is_refused_and_that_of_plans_is_valid() -> None:
    for schema in (
        {"type": "string", "pattern": "(a+)+$"},
        {"properties": {"a": {"anyOf": [{"$ref": "#"}]}}},
        {"type": "nonsense"},
        {"enum": ["x" * 9_000]},
        [],
    ):
        assert why_bad_schema(schema), schema
    assert why_bad_schema(PLAN_SCHEMA) == ""
    assert troubles_with({"tasks": [{"id": 1}]}, PLAN_SCHEMA)
