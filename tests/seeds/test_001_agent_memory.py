"""Seed 001: the memory that the tasks, steps, teammates and tools of one run share."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.test import Client

from chat.models.runs import RunEvent
from tests.api import Api
from tests.fakes.openai_server import Answer, Call, Received
from tests.seeds.conftest import Hub
from tests.seeds.shown_elsewhere import without_a_test

pytestmark = pytest.mark.django_db
OF_MEMORY, OF_TABLES = "tests/chat/runs/test_run_entries.py::", "tests/chat/runs/test_contract_tables.py::"
OF_EXECUTORS = "tests/chat/runs/test_executors.py::"
SHOWN = {
    "the helpers of keys": OF_MEMORY + "test_key_namespaces",
    "set returns the entry and an overwrite keeps created_at": OF_MEMORY
    + "test_set_returns_the_entry_and_keeps_created_at_when_overwritten",
    "get get_value has and snapshot": OF_MEMORY + "test_get_get_value_has_snapshot",
    "list by kind keys prefix and sources": OF_MEMORY + "test_listing_and_filtering",
    "subscribe and unsubscribe": OF_MEMORY
    + "test_subscribe_until_unsubscribed_though_another_listener_fails",
    "clear all or by kind and prefix": OF_MEMORY + "test_clear_by_kind_and_prefix",
    "a copy shares nothing and a snapshot restores": OF_MEMORY
    + "test_a_restored_snapshot_fills_another_memory_and_a_copy_shares_nothing",
    "the newest 200 are listed": OF_MEMORY + "test_memory_list_shows_the_newest_200_of_201",
    "a list says which filters": OF_MEMORY + "test_memory_list_filters",
    "write cannot stand in for results": OF_MEMORY + "test_memory_write_cannot_stand_in_for_results",
    "who writes step": OF_TABLES + "test_namespace_step_is_written_by_step_executor_and_process_mode",
    "who writes task": OF_TABLES + "test_namespace_task_is_written_by_finishing_steps_plans_and_teams",
    "who writes input": OF_TABLES + "test_namespace_input_is_written_by_tasks_plans_and_agent_steps",
    "who writes shared": OF_TABLES + "test_namespace_shared_is_written_by_memory_write_alone",
    "a step leaves an error when its rounds are spent": OF_TABLES
    + "test_step_writes_an_error_where_its_rounds_are_exhausted",
    "upstream keys are handed on as they are": OF_TABLES
    + "test_task_forwards_the_keys_of_its_plan_to_every_step_as_they_are",
    "a plan falls back to the last step": OF_TABLES
    + "test_plan_falls_back_to_the_last_step_where_a_task_has_no_result",
    "a task result is written only if absent": OF_TABLES
    + "test_plan_writes_a_task_result_only_where_none_is_present",
    "a plan's final result": OF_TABLES + "test_plan_reads_its_final_result_all_results_and_that_of_one_task",
    "a plan's results": OF_TABLES + "test_plan_reads_its_final_result_all_results_and_that_of_one_task",
    "one task's result": OF_TABLES + "test_plan_reads_its_final_result_all_results_and_that_of_one_task",
    "a caller's prompt stands before the contract": OF_EXECUTORS
    + "test_a_callers_prompt_stands_before_the_contract",
    "beyond nine tenths only finish_step is left": OF_EXECUTORS
    + "test_beyond_nine_tenths_of_the_tokens_only_finish_step_is_left",
    "an agent step brings its edges as inputs": OF_EXECUTORS
    + "test_an_agent_step_brings_its_edges_as_inputs",
    "a failed task is not mirrored": OF_EXECUTORS + "test_a_team_ends_when_nobody_can_go_on",
    "a run begins with entries": "tests/chat/runs/test_prefilled.py"
    "::test_a_run_begins_with_the_entries_of_its_request",
    "its first list shows them": "tests/chat/runs/test_prefilled.py::test_the_first_step_lists_them",
    "memory_read gives whole values and names what is missing": OF_MEMORY
    + "test_memory_read_gives_whole_values_and_names_what_is_missing",
    "memory_list shows entries without their values": OF_MEMORY
    + "test_memory_list_shows_metadata_and_no_values",
    "memory_write answers with the key under shared": OF_MEMORY + "test_memory_write_publishes_under_shared",
    "a published value has a size": OF_MEMORY + "test_memory_write_refuses_in_a_sentence",
    "an answer of a tool has a size": OF_MEMORY
    + "test_memory_list_drops_the_oldest_until_the_whole_answer_fits",
    "a large value is read in pages": OF_MEMORY + "test_memory_read_pages_a_value_that_is_too_large",
    "inputs are seeded under their names": OF_TABLES + "test_plan_startup_seeds_each_input",
    "a step is told which steps it builds on": OF_TABLES
    + "test_task_forwards_the_keys_of_its_plan_to_every_step_as_they_are",
    "a step writes its result and the last one the task's": OF_TABLES
    + "test_step_writes_the_task_result_where_it_is_the_last_of_its_task",
    "a task waits for what it builds on": OF_EXECUTORS
    + "test_results_propagate_from_research_to_summary_to_report",
    "a result is put into nobody's prompt": OF_EXECUTORS
    + "test_results_propagate_from_research_to_summary_to_report",
    "a program starts a run and reads its memory": "tests/chat/runs/test_views.py"
    "::test_a_program_starts_a_run_and_reads_what_came_of_it",
    "a run is followed live": "tests/chat/runs/test_views.py::test_a_run_is_followed_from_where_a_reader_was",
}
Says = Mapping[str, Callable[[Received], Answer]]
TEXT = {"type": "string"}


def test_promises_shown_elsewhere_have_their_tests() -> None:
    assert without_a_test(SHOWN) == []


def task(name: str, *depends_on: str, **fields: Any) -> dict[str, Any]:
    """Return a task of one step without a schema."""
    return {
        "id": name,
        "title": name.title(),
        "description": f"{name} it.",
        "depends_on": list(depends_on),
    } | fields


def calls(name: str, **arguments: Any) -> Answer:
    return Answer(calls=[Call(name, arguments)])


def go(hub: Hub, *tasks: dict[str, Any], says: Says | None = None, **fields: Any) -> dict[str, Any]:
    """Run these tasks. ``says``: the model's answer to a step, by the first word of its instructions."""

    def respond(request: Received) -> Answer:
        word = asked(request).split()[0]
        return says[word](request) if says and word in says else end(request, f"{word} done.")

    hub.model.respond = respond
    run = hub.run(plan={"tasks": list(tasks), **fields.pop("plan", {})}, **fields)
    assert run["status"] == "done", run
    return run


def end(request: Received, result: str) -> Answer:
    """Return the end of a step: a call in a team and with a schema, else text."""
    return calls("finish_step", result=result) if "finish_step" in request.tool_names else Answer(result)


def once(call: Answer) -> Callable[[Received], Answer]:
    """Return a responder that makes a call first, and ends the step once it has the result."""
    return lambda request: end(request, "Done.") if request.tool_results else call


def asked(request: Received) -> str:
    return next(str(said["content"]) for said in request.messages if said["role"] == "user")


def request_of(hub: Hub, word: str) -> Received:
    """Return the last request of the step whose instructions begin with this word."""
    return next(each for each in reversed(hub.model.chat_requests) if asked(each).split()[0] == word)


def result_of(hub: Hub, word: str) -> Any:
    return json.loads(request_of(hub, word).tool_results[0])


# --- One store, one interface


def test_what_one_step_wrote_another_reads(hub: Hub) -> None:
    go(hub, task("find"), task("tell", "find"), says={"tell": once(calls("memory_read", keys=["task:find"]))})
    assert result_of(hub, "tell")["entries"]["task:find"]["value"] == "find done."


def test_what_a_task_builds_on_is_named_with_its_title(hub: Hub) -> None:
    go(hub, task("find"), task("tell", "find"))
    assert "- task:find — Find" in asked(request_of(hub, "tell"))
    assert "task:" not in asked(request_of(hub, "find"))


def test_every_step_has_the_three_tools(hub: Hub) -> None:
    go(hub, task("find"), task("tell", steps=[{"id": "say", "instructions": "say it.", "schema": TEXT}]), says={
        "say": lambda request: calls("finish_step", result="It.")
    })  # fmt: skip
    for word in ("find", "say"):
        assert {"memory_list", "memory_read", "memory_write"} <= set(request_of(hub, word).tool_names)
    assert "finish_step" in request_of(hub, "say").tool_names
    assert "finish_step" not in request_of(hub, "find").tool_names


# --- Namespaces and entries


def test_the_four_namespaces_with_their_kinds(hub: Hub) -> None:
    run = go(
        hub,
        task("find"),
        inputs={"city": "Bern"},
        says={"find": once(calls("memory_write", key="x", value=1))},
    )
    kinds = {key: entry["kind"] for key, entry in hub.entries(run["id"]).items()}
    assert kinds.pop("shared:x") == "shared" and kinds.pop("input:city") == "input"
    assert kinds.pop("task:find") == "task_result"
    [(key, kind)] = kinds.items()
    assert key.startswith("step:") and kind == "step_result"


def test_an_entry_has_its_fields(hub: Hub) -> None:
    written = calls("memory_write", key="x", value=[1, {"a": None}], title="It", description="About it")
    run = go(hub, task("find"), says={"find": once(written)})
    entry = hub.entries(run["id"])["shared:x"]
    assert (entry["value"], entry["title"], entry["description"]) == ([1, {"a": None}], "It", "About it")
    assert (
        entry["source"]
        and entry["created_at"].endswith("Z")
        and entry["value_bytes"] == len('[1,{"a":null}]')
    )


# --- The tools


# --- A step


@pytest.mark.parametrize("schema", [None, TEXT], ids=["plain", "with a schema"])
def test_the_prompt_explains_the_tools_before_anything_else(hub: Hub, schema: Any) -> None:
    steps = [{"id": "find", "instructions": "find it.", **({"schema": schema} if schema else {})}]
    finish = calls("finish_step", result="It.") if schema else Answer("It.")
    go(hub, task("find", steps=steps), says={"find": lambda request: finish})
    system = str(request_of(hub, "find").messages[0]["content"])
    for tool in (
        "memory_list {kind?, key_prefix?, sources?}",
        "memory_read {keys,",
        "memory_write {key, value,",
    ):
        assert tool in system
    assert system.index("## Memory tools") < system.index("finish_step" if schema else "plain text")


# --- A task


def test_a_list_is_worked_on_item_by_item_and_comes_back_in_order(hub: Hub) -> None:
    steps = [
        {"id": "list", "instructions": "list them.", "schema": {"type": "array", "items": TEXT}},
        {"id": "each", "instructions": "each of them.", "over": "list"},
    ]
    numbers = iter(range(1, 4))
    says = {
        "list": lambda request: calls("finish_step", result=["a", "b", "c"]),
        "each": lambda request: Answer(f"Part {next(numbers)}"),
    }
    run = go(hub, task("all", steps=steps), says=says)
    assert hub.entries(run["id"])["step:each"]["value"] == ["Part 1", "Part 2", "Part 3"]


# --- A plan


def test_every_task_has_its_result_and_the_run_the_last_ones(hub: Hub) -> None:
    run = go(hub, task("find"), task("tell", "find"))
    values = {key: entry["value"] for key, entry in hub.entries(run["id"]).items() if key.startswith("task:")}
    assert values == {"task:find": "find done.", "task:tell": "tell done."} and run["result"] == "tell done."


# --- A team


def test_a_team_shares_results_of_finished_tasks(hub: Hub) -> None:
    members = [{"name": "ada"}, {"name": "ben"}]
    run = go(
        hub,
        task("find"),
        task("tell", "find"),
        mode="multi-agent",
        plan={"members": members},
        says={"tell": once(calls("memory_read", keys=["task:find"]))},
    )
    assert result_of(hub, "tell")["entries"]["task:find"]["value"] == "find done."
    assert hub.entries(run["id"])["task:find"]["title"] == "Find"


def test_a_teammate_has_the_tools_and_is_told_of_the_shared_memory(hub: Hub) -> None:
    go(hub, task("find"), mode="multi-agent", plan={"members": [{"name": "ada"}]})
    request = request_of(hub, "find")
    assert {"memory_list", "memory_read", "memory_write", "team_board"} <= set(request.tool_names)
    system = str(request.messages[0]["content"])
    assert "## Memory tools" in system and "Finished work is in the run's memory" in system


# --- Modes


def test_every_mode_has_the_same_memory(hub: Hub) -> None:
    hub.model.respond = once(calls("memory_write", key="x", value="y"))
    for mode in ("loop", "plan", "multi-agent"):
        plan = {} if mode == "loop" else {"plan": {"tasks": [task("find")]}}
        run = hub.run("find it", mode=mode, **plan)
        assert hub.entries(run["id"])["shared:x"]["value"] == "y", mode


# --- Examples


def test_a_program_inspects_the_memory_when_the_run_has_ended(hub: Hub) -> None:
    run = go(hub, task("find"))
    address = f"{hub.ws}/runs/{run['id']}/memory"
    assert [entry["key"] for entry in hub.api.get(address, key="task:find").json()["items"]] == ["task:find"]
    assert Api(hub.cast.stranger).get(address).status_code == 404


def test_a_page_shows_the_memory_beside_the_run(hub: Hub) -> None:
    run = go(hub, task("find"))
    client = Client()
    client.force_login(hub.cast.viewer)
    assert "entry/?key=task%3Afind" in client.get(f"/{hub.ws}/runs/{run['id']}/").content.decode()


def test_every_access_to_memory_is_seen_without_its_values(hub: Hub) -> None:
    go(hub, task("find"), says={"find": once(calls("memory_write", key="x", value="zebra"))})
    [event] = RunEvent.objects.filter(kind="memory")
    assert (event.data["op"], event.data["keys"]) == ("write", ["shared:x"]) and "zebra" not in str(
        event.data
    )


def test_each_run_has_a_memory_of_its_own(hub: Hub) -> None:
    go(hub, task("find"), says={"find": once(calls("memory_write", key="x", value=1))})
    second = go(hub, task("find"))
    assert "shared:x" not in hub.entries(second["id"])


# --- Intended differences (docs/conformance.md)


def test_a_program_gives_no_system_prompt_of_its_own(hub: Hub) -> None:
    body = {"objective": "Compare", "system_prompt": "Ignore memory."}
    refused = hub.api.post(f"{hub.ws}/runs", body)
    assert refused.status_code == 422 and set(refused.json()["error"]["fields"]) == {"system_prompt"}
