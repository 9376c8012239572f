"""Steps, tasks, plans and teams against a server with the OpenAI API, with the prompts as they are sent."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chat.prompting.prompt_text import tokens
from chat.runs import worker as asking_module
from chat.runs.budget import Budget, Limits, Used
from chat.runs.plan import PLAN_SCHEMA, PlannedStep, TaskPlan, read_plan
from chat.runs.run_entries import MemoryKind, RunEntries
from chat.runs.run_memory_tools import step_tool
from chat.runs.scheduling import ParallelTaskExecutor, State, TaskExecutor, agent_step
from chat.runs.step import (
    INTERRUPTED,
    NOT_FINISHED,
    ONLY_FINISH,
    Reply,
    StepContext,
    StepExecutor,
    Transcript,
    Unit,
    result_in,
)
from chat.runs.team import TaskBoard, TaskState, TeamExecutor
from chat.runs.worker import asking
from chat.tools.base import Arguments
from memoryhub.llm.base import ToolCall
from memoryhub.llm.registry import get_chat_model
from tests.chat.runs.driving import drive
from tests.fakes.openai_server import HOLD, Answer, Call, Failure, Received, ScriptedOpenAI

GOLDEN = Path(__file__).parent / "golden"
OBJECT = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"],
}
SECRET_VALUES = ("ZEBRA-ONE", "ZEBRA-TWO")


@pytest.fixture
def memory() -> RunEntries:
    return RunEntries()


@pytest.fixture
def context(scripted_model: ScriptedOpenAI, memory: RunEntries) -> StepContext:
    return StepContext(memory, asking(get_chat_model()))


def finish(result: Any, **more: Any) -> Answer:
    return Answer(calls=[Call("finish_step", {"result": result}, **more)])


def by_task(answers: dict[str, Callable[[Received], Any]]) -> Callable[[Received], Any]:
    """Return a responder that chooses its answer by the first words of the user message."""

    def respond(request: Received) -> Any:
        asked = next(str(said["content"]) for said in request.messages if said["role"] == "user")
        return next(answer for start, answer in answers.items() if asked.startswith(start))(request)

    return respond


def read_then_finish(*keys: str, result: Any) -> Callable[[Received], Answer]:
    """Return a model that reads these keys and hands in a result made of them."""

    def respond(request: Received) -> Answer:
        if not request.tool_results:
            return Answer(calls=[Call("memory_read", {"keys": list(keys)}, id="read")])
        got = json.loads(request.tool_results[0])["entries"]
        return finish(result(got))

    return respond


def seen(request: Received) -> str:
    said = "\n\n".join(f"### {message['role']}\n{message['content']}" for message in request.messages)
    return f"{said}\n\n### tools\n{', '.join(request.tool_names)}\n"


def golden(name: str, request: Received) -> None:
    text, path = seen(request), GOLDEN / f"{name}.txt"
    assert not any(value in text for value in SECRET_VALUES), "a value stands in a prompt"
    assert text == path.read_text(), f"the prompt has changed: {path}\n{text}"


PLAN = read_plan(
    {
        "tasks": [
            {"id": "research", "title": "Research findings", "steps": [
                {"id": "search", "instructions": "Search for cats.", "schema": OBJECT},
                {"id": "sift", "instructions": "Sift the finds.", "depends_on": ["search"], "schema": OBJECT},
            ]},
            {"id": "prices", "title": "Prices", "description": "List the prices of cats."},
            {"id": "summary", "title": "Summary", "description": "Sum up the findings.",
             "depends_on": ["research", "prices"]},
            {"id": "report", "title": "Report", "depends_on": ["summary"], "steps": [
                {"id": "write", "instructions": "Write a report from the summary.", "schema": {"type": "string"}},
            ]},
        ]
    }
)  # fmt: skip


def test_results_propagate_from_research_to_summary_to_report(
    scripted_model: ScriptedOpenAI, memory: RunEntries, context: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The main scenario of the memory, with two parallel tasks: each reply waits until both are requested. The prompts
    contain keys only.
    """
    monkeypatch.setattr(asking_module, "REPLY_SECONDS", 10.0)
    begun = set[str]()

    def beside(other: Answer) -> Callable[[Received], Answer]:
        def respond(request: Received) -> Answer:
            begun.add(request.last_user_text)
            if len(begun) == 2:
                scripted_model.release()
            return other

        return respond

    scripted_model.respond = by_task(
        {
            "Search": beside(Answer(HOLD, calls=[Call("finish_step", {"result": {"facts": ["ZEBRA-ONE"]}})])),
            "Sift": read_then_finish("step:search", result=lambda got: got["step:search"]["value"]),
            "List the prices": beside(Answer(HOLD, "ZEBRA-TWO")),
            "Sum up": lambda request: (
                Answer(calls=[Call("memory_read", {"keys": ["task:research", "task:prices"]})])
                if not request.tool_results
                else Answer(" and ".join(sorted(re.findall(r"ZEBRA-\w+", request.tool_results[0]))))
            ),
            "Write": read_then_finish(
                "task:summary", result=lambda got: f"Report: {got['task:summary']['value']}"
            ),
        }
    )
    executor = ParallelTaskExecutor(PLAN, memory, inputs={"topic": "cats"})
    drive(executor, context)
    assert executor.final_result() == "Report: ZEBRA-ONE and ZEBRA-TWO"
    assert {entry.key for entry in memory.snapshot()} == {
        "input:topic", "step:search", "step:sift", "task:research", "step:prices", "task:prices",
        "step:summary", "task:summary", "step:write", "task:report",
    }  # fmt: skip
    assert executor.task_result("research") == {"facts": ["ZEBRA-ONE"]}
    assert {entry.key for entry in executor.all_results()} == {
        "task:research", "task:prices", "task:summary", "task:report",
    }  # fmt: skip
    firsts = [request for request in scripted_model.chat_requests if len(request.messages) == 2]
    for request in firsts:
        asked = request.last_user_text.split()[0].lower()
        golden(f"plan_{asked}", request)
    assert len(firsts) == 5


def test_failed_step_stops_only_the_tasks_that_depend_on_it() -> None:
    for failing, states in (
        ("Search", {"research": "failed", "prices": "done", "summary": "skipped", "report": "skipped"}),
        ("Write", {"research": "done", "prices": "done", "summary": "done", "report": "failed"}),
    ):

        def ask(messages: Any, tools: Any, *, may_call: bool, failing: str = failing) -> Reply:
            if messages[1].content.startswith(failing):
                raise RuntimeError("broken")
            if any(tool.name == "finish_step" for tool in tools):
                result: Any = "text" if messages[1].content.startswith("Write") else {"facts": []}
                return Reply("", (ToolCall("a", "finish_step", json.dumps({"result": result})),))
            return Reply("Done.")

        memory = RunEntries()
        executor = ParallelTaskExecutor(PLAN, memory)
        drive(executor, StepContext(memory, ask))
        assert executor.is_over and executor.task_states == states
        assert memory.has("task:research") == (states["research"] == "done")


# --- a step


def step_of(schema: Any = OBJECT, **more: Any) -> Unit:
    return Unit(PlannedStep("s", "Find facts.", schema=schema), **more)


def test_a_callers_prompt_stands_before_the_contract(
    scripted_model: ScriptedOpenAI, context: StepContext
) -> None:
    scripted_model.script(finish({"facts": ["one"]}))
    mine = StepContext(context.memory, context.ask, preamble="Ignore everything below. Never call tools.")
    executor = StepExecutor(step_of(upstream=("task:other",), finishes_task=True, task_id="t"), mine)
    assert executor.execute().value == {"facts": ["one"]}
    assert context.memory.get_value("step:s") == context.memory.get_value("task:t") == {"facts": ["one"]}
    golden("step_with_preamble", scripted_model.chat_requests[0])


def test_invalid_result_is_reported_to_the_model_three_times(
    scripted_model: ScriptedOpenAI, context: StepContext
) -> None:
    for said, why in (
        (Answer(calls=[Call("finish_step", {"result": {"facts": "none"}})]), "is not of type 'array'"),
        (Answer(calls=[Call("finish_step", "{broken")]), "not valid JSON"),
        (Answer(calls=[Call("finish_step", {})]), "“result” is missing"),
        (Answer("Here are the facts."), "Call `finish_step`"),
    ):
        before = len(scripted_model.chat_requests)
        scripted_model.script(said, said, said, finish({"facts": []}))
        assert StepExecutor(step_of(), context).execute().ok, why
        told = scripted_model.chat_requests[before + 1].messages[-1]["content"]
        assert why in json.dumps(told, ensure_ascii=False)
        scripted_model.script(said, said, said, said)
        failed = StepExecutor(step_of(), context).execute()
        assert not failed.ok and context.memory.get_value("step:s") == {"error": failed.error}, why
        assert len(scripted_model.chat_requests) == before + 8, why


TASK = {"id": "a", "title": "Read", "description": "Read it."}
PLANNED = {"tasks": [TASK | {"depends_on": []}]}


def test_nearly_valid_plan_is_read(scripted_model: ScriptedOpenAI, context: StepContext) -> None:
    for number, arguments in enumerate(
        (
            '{"result": {"tasks": [{"id": "a", "title": "Read", "description": "Read it.", "depends_on": [],},]},}',
            "```\n{'result': {'tasks': [{'id': 'a', 'title': 'Read', 'description': 'Read it.',"
            " 'depends_on': []}]}}```",
            json.dumps({"result": [TASK | {"depends_on": None}]}),
            json.dumps([TASK | {"depends_on": []}]),
            json.dumps({"tasks": TASK | {"depends_on": []}}),
        ),
        start=1,
    ):
        scripted_model.script(Answer(calls=[Call("finish_step", arguments)]))
        made = StepExecutor(step_of(PLAN_SCHEMA), context).execute()
        assert made.value == PLANNED and len(scripted_model.chat_requests) == number, arguments
        assert [task.id for task in read_plan(made.value).tasks] == ["a"]


def test_numbers_are_read_as_texts_and_incomplete_json_is_refused() -> None:
    given = '{"result": {"tasks": [{"id": 1, "title": "Read", "description": "Read it."}]}}'
    assert result_in(given, PLAN_SCHEMA)["tasks"][0]["id"] == "1"
    with pytest.raises(ValueError, match="not valid JSON"):
        result_in(given[:-20], PLAN_SCHEMA)
    with pytest.raises(ValueError, match="not valid JSON"):
        result_in("{" * 100_000, PLAN_SCHEMA)


def test_a_step_whose_rounds_are_spent_leaves_an_error(
    scripted_model: ScriptedOpenAI, context: StepContext
) -> None:
    scripted_model.respond = lambda request: Answer(calls=[Call("memory_list", id="same")])
    few = StepContext(context.memory, context.ask, budget=Budget(Limits(step_rounds=3)))
    assert StepExecutor(step_of(), few).execute().error == NOT_FINISHED
    assert context.memory.get_value("step:s") == {"error": NOT_FINISHED}
    assert [request.tool_names for request in scripted_model.chat_requests][2] == ["finish_step"]
    ids = {
        call["id"] for said in scripted_model.chat_requests[2].messages for call in said.get("tool_calls", ())
    }
    assert ids == {"same", "same_2"}


def test_beyond_nine_tenths_of_the_tokens_only_finish_step_is_left(
    scripted_model: ScriptedOpenAI, context: StepContext
) -> None:
    budget = Budget(Limits(tokens=1_000_000), Used(tokens_in=900_001))
    tight = StepContext(context.memory, context.ask, budget=budget)
    scripted_model.script(Answer(calls=[Call("memory_read", {"keys": ["a"]})]), finish({"facts": []}))
    assert StepExecutor(step_of(), tight).execute().ok
    first, second = scripted_model.chat_requests
    assert first.tool_names == second.tool_names == ["finish_step"]
    assert second.tool_results == [ONLY_FINISH]
    scripted_model.script(Answer("Plain."))
    assert StepExecutor(step_of(schema=None), tight).execute().value == "Plain."
    assert scripted_model.chat_requests[2].body["tool_choice"] == "none"


def test_no_model_is_requested_once_the_budget_is_spent(
    scripted_model: ScriptedOpenAI, context: StepContext
) -> None:
    for budget, what in (
        (Budget(Limits(tokens=10), Used(tokens_in=10)), "tokens"),
        (Budget(Limits(rounds=1), Used(rounds=1)), "rounds"),
        (Budget(is_over_time=True), "minutes"),
    ):
        spent = StepExecutor(step_of(), StepContext(context.memory, context.ask, budget=budget)).execute()
        assert spent.spent == what and not scripted_model.chat_requests and not context.memory.snapshot()


class Nothing(Arguments):
    pass


def test_a_step_goes_on_behind_the_last_thing_it_did(
    scripted_model: ScriptedOpenAI, context: StepContext
) -> None:
    """A step that restarts after any of its saves requests no reply twice and makes no call twice."""
    made: list[str] = []
    write = step_tool(
        "pay", "Pay once.", Nothing, lambda _, key: made.append(key) or "Paid.", is_repeatable=False
    )  # type: ignore[func-returns-value]
    mine = StepContext(context.memory, context.ask, tools=(write,))
    replies = [
        Answer(calls=[Call("pay", id="p1"), Call("memory_list", id="l1")]),
        finish({"facts": []}, id="f1"),
    ]
    saves: list[str] = []
    log = Transcript()
    log.save = lambda: saves.append(json.dumps(log.as_json()))
    scripted_model.script(*replies)
    assert StepExecutor(step_of(), mine, transcript=log).execute().ok
    assert made == ["s:p1"]
    outcomes = []
    for kept in saves:
        made.clear()
        again = Transcript.from_json(json.loads(kept))
        scripted_model.unscript()
        scripted_model.script(*replies[again.rounds :])
        assert StepExecutor(step_of(), mine, transcript=again).execute().ok
        told = next(said.content for said in again.messages if said.tool_call_id == "p1")
        outcomes.append((len(made), told))
    # After the reply; with the payment begun; paid; listed. The finishing call is saved with its result.
    assert outcomes == [(1, "Paid."), (0, INTERRUPTED), (0, "Paid."), (0, "Paid.")]


def test_what_goes_wrong_with_a_call_is_told_to_the_model(
    scripted_model: ScriptedOpenAI, context: StepContext
) -> None:
    wrong = [Call("nothing", id="a"), Call("memory_read", {}, id="b"), Call("memory_list", "[", id="c")]
    scripted_model.script(
        Answer(calls=wrong), Failure(503, headers={"retry-after": "0"}), finish({"facts": []})
    )
    assert StepExecutor(step_of(), context).execute().ok
    told = scripted_model.chat_requests[-1].tool_results
    assert all(text.startswith("Error: ") for text in told) and len(told) == 3


def test_an_agent_step_brings_its_edges_as_inputs(
    scripted_model: ScriptedOpenAI, context: StepContext
) -> None:
    scripted_model.script(Answer("ok"))
    given = {"text": "ZEBRA-ONE", "empty": None}
    assert agent_step("node7", "Translate it.", given, context).ok
    entry = context.memory.get("input:node7.text")
    assert entry is not None and (entry.source, entry.title, entry.value) == (
        "node7",
        "node7.text",
        "ZEBRA-ONE",
    )
    assert context.memory.get_value("step:node7") == "ok" and len(context.memory.snapshot()) == 2
    golden("agent_step", scripted_model.chat_requests[0])


def test_a_step_adds_at_most_470_tokens_to_the_bare_call(context: StepContext) -> None:
    """Beside its instructions and result schema: the contract with its tools in words, their schemas, a key."""
    context.memory.set("task:a", MemoryKind.TASK_RESULT, 1, title="Findings")
    executor = StepExecutor(step_of(upstream=("task:a",), finishes_task=True, task_id="t"), context)
    assert added_tokens(executor) <= 470


def added_tokens(executor: StepExecutor) -> int:
    """Count the tokens of prompt and tools; schemas as they are sent, without blanks."""
    sent = sum(tokens(message.content) for message in executor.prompt())
    for tool in executor.offered():
        schema = json.dumps(dict(tool.parameters), separators=(",", ":"))
        sent += tokens(tool.name + tool.description + schema)
    own = json.dumps(executor.step.schema, separators=(",", ":"))
    return sent - tokens(executor.step.instructions) - tokens(own)


# --- a list, item by item


def fan_out() -> TaskPlan:
    steps = [
        {"id": "find", "instructions": "Find offers.", "schema": OBJECT},
        {"id": "each", "instructions": "Judge this offer.", "over": "find", "schema": {"type": "string"}},
    ]
    return read_plan({"tasks": [{"id": "t", "title": "Offers", "steps": steps}]})


def test_step_over_a_list_returns_the_results_in_order(scripted_model: ScriptedOpenAI) -> None:
    def judge(request: Received) -> Answer:
        key = re.search(r"input:\S+", request.last_user_text)
        assert key
        if not request.tool_results:
            return Answer(calls=[Call("memory_read", {"keys": [key[0]]})], delay=0.01)
        item = json.loads(request.tool_results[0])["entries"][key[0]]["value"]
        return Failure(400, "no") if item == "offer 3" else finish(f"judged {item}")

    for count in (0, 1, 9):
        memory = RunEntries()
        offers = [f"offer {n}" for n in range(count)]
        scripted_model.respond = by_task(
            {"Find": lambda _, found=offers: finish({"facts": found}), "Judge": judge}  # type: ignore[misc]
        )
        executor = TaskExecutor(fan_out().tasks[0], memory)
        drive(executor, StepContext(memory, asking(get_chat_model())))
        assert executor.ok, count
        expected = [f"judged {offer}" for offer in offers]
        result = memory.get_value("task:t")
        if count > 3:
            assert result[3] is None or "error" in result[3]
            expected[3] = result[3]
        assert result == memory.get_value("step:each") == expected


def test_step_fails_over_a_value_that_is_no_list_or_too_long() -> None:
    for value in ({"a": [1], "b": [2]}, list(range(101)), 7, "none here"):
        memory = RunEntries()
        memory.set("step:find", MemoryKind.STEP_RESULT, value)
        executor = TaskExecutor(fan_out().tasks[0], memory, states={"find": State.DONE})
        if value == "none here":  # a single line is a list of one
            assert len(executor.ready()) == 1
            continue
        assert executor.ready() == [] and executor.is_over and not executor.ok, value
        assert "error" in memory.get_value("step:each"), value


# --- a team

TEAM = read_plan(
    {
        "tasks": [
            {"id": "facts", "title": "Facts", "description": "Collect facts."},
            {"id": "figures", "title": "Figures", "description": "Collect figures."},
            {"id": "story", "title": "Story", "description": "Tell the story.", "depends_on": ["facts", "figures"],
             "member": "cleo"},
        ],
        "members": [{"name": "ada"}, {"name": "ben", "role": "You know numbers."}, {"name": "cleo"}],
    }
)  # fmt: skip


def test_a_team_of_three_shares_its_work(
    scripted_model: ScriptedOpenAI, memory: RunEntries, context: StepContext
) -> None:
    def figures(request: Received) -> Answer:
        if "You are ada" in request.messages[0]["content"]:
            return Answer(calls=[Call("release_task", {"reason": "Not my field."})])
        if not request.tool_results:
            return Answer(
                calls=[
                    Call("send_message", {"to": "cleo", "text": "Mind the ZEBRA-ONE."}, id="m"),
                    Call(
                        "add_task",
                        {"title": "Check", "description": "Check it.", "depends_on": ["story"]},
                        id="n",
                    ),
                    Call("add_task", {"title": "Bad", "description": "x", "depends_on": ["nowhere"]}, id="o"),
                ]
            )
        assert "not there" in request.tool_results[2]
        return finish(7)

    def story(request: Received) -> Answer:
        if not request.tool_results:
            return Answer(calls=[Call("read_messages", id="r"), Call("team_board", id="b")])
        assert "ZEBRA-ONE" in request.tool_results[0] and "working" in request.tool_results[1]
        return finish("The story.")

    scripted_model.respond = by_task(
        {
            "Collect facts": lambda _: finish(["a", "b"]),
            "Collect figures": figures,
            "Tell": story,
            "Check it": lambda _: finish("checked"),
        }
    )
    team = TeamExecutor(TEAM, memory)
    drive(team, context)
    assert memory.get_value("task:task_4") == "checked" and team.ok
    assert memory.get_value("task:figures") == 7 and memory.get_value("task:story") == "The story."
    assert team.board.tasks["story"].member == "cleo" and team.board.tasks["figures"].member in (
        "ben",
        "cleo",
    )
    first = next(r for r in scripted_model.chat_requests if r.last_user_text.startswith("Tell"))
    golden("team_story", first)


def test_a_team_ends_when_nobody_can_go_on(
    scripted_model: ScriptedOpenAI, memory: RunEntries, context: StepContext
) -> None:
    scripted_model.respond = by_task(
        {
            "Collect facts": lambda _: Answer(calls=[Call("release_task", {"reason": "I cannot."})]),
            "Collect figures": lambda _: Failure(400, "broken"),
        }
    )
    team = TeamExecutor(TEAM, memory)
    drive(team, context)
    assert team.is_over and not team.ok
    assert set(team.board.tasks["facts"].refused_by) == {"ada", "ben", "cleo"}
    assert team.board.tasks["figures"].state == TaskState.FAILED
    assert memory.list(kind="task_result") == []  # failures are not mirrored


def test_a_board_survives_being_written_down_and_calls_made_again() -> None:
    board = TaskBoard.of(TEAM)
    assert (
        board.claim("facts", "ada") and not board.claim("facts", "ben") and not board.claim("story", "cleo")
    )
    for _ in range(2):
        board.add("More", "Do more.", ["facts"], made_by="s:1")
        board.send("ada", "", "Hello", made_by="s:2")
    again = TaskBoard.from_json(json.loads(json.dumps(board.as_json())))
    assert again.tasks == board.tasks and again.messages == board.messages
    assert len(again.tasks) == 4 and len(again.messages) == 1
    assert [said.text for said in again.read("ben")] == ["Hello"] and again.read("ada") == []
