"""A run with a plan, watched, stopped and resumed; and research in a chat, whose plan is changed by the keyboard."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.fakes.openai_server import HOLD, Answer, Call, Received, Reply
from tests.functional.conftest import ScriptedHub, send, shoot, sign_up
from tests.functional.keys import press
from tests.functional.looks import look
from tests.functional.test_deep_think import begin, choose, remember

PLAN = {
    "tasks": [
        {"id": "offers", "title": "The offers", "description": "Collect the three offers."},
        {"id": "rules", "title": "Our rules", "description": "Find our rules."},
        {"id": "report", "title": "Report", "description": "Write it.", "depends_on": ["offers", "rules"]},
    ]
}
REPORT = "Take **offer B**: it is the cheapest that our rules allow [1].\n\nSources\n\n1. mem_x, our rules"


def answering(request: Received) -> Reply:
    asked = next(str(said["content"]) for said in request.messages if said["role"] == "user")
    if "Split it into the fewest tasks" in str(request.messages[0]["content"]):
        return Answer(calls=[Call("finish_step", {"result": PLAN})])
    if asked.startswith("Collect"):
        return Answer("A 12 euros, B 9 euros, ", HOLD, "C 7 euros")
    if asked.startswith("Write it") and not request.tool_results:
        return Answer(calls=[Call("memory_read", {"keys": ["task:offers", "task:rules"]})])
    return Answer(REPORT if asked.startswith("Write it") else "Only hosts in Europe.")


@pytest.fixture
def held(scripted_hub: ScriptedHub) -> Iterator[None]:
    scripted_hub.server.hold()
    scripted_hub.server.respond = answering
    yield
    scripted_hub.server.release()


def test_a_run_is_planned_watched_and_read(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub, held: None
) -> None:
    """Saved memories and their undo, repeated runs and templates: tests/chat/runs."""
    page = open_scripted_page()
    sign_up(page, "runner")
    page.goto(page.url.rstrip("/") + "/runs/")
    page.get_by_label("Task").fill("Compare our three hosting offers and recommend one.")
    page.get_by_role("button", name="Start").press("Enter")
    expect(page.get_by_text("This is the plan.")).to_be_visible(timeout=20_000)
    page.get_by_label("Our rules").fill("Find our rules for hosting.")
    shoot(page, "run-plan")
    page.get_by_role("button", name="Start").press("Enter")
    state = page.locator("#run-live .tag").first
    expect(page.locator(".run-task--done")).to_have_count(1, timeout=20_000)
    expect(page.locator(".run-task--running")).to_have_count(1)
    press(page, "Stop")
    expect(state).to_have_text("Stopped")
    expect(page.locator(".run-task--running")).to_have_count(0)
    press(page, "Resume")
    expect(state).to_have_text("Running")
    scripted_hub.server.release()
    expect(state).to_have_text("Done", timeout=20_000)
    expect(page.locator(".prose")).to_contain_text("Take offer B")
    expect(page.locator(".run-graph__task--done")).to_have_count(3)
    press(page, "Result of “The offers”")
    expect(page.locator(".run-entry__text").first).to_contain_text("C 7 euros")
    look(page, "run-done")
    press(page, "Log")
    expect(page.locator(".run-log")).to_contain_text("Read: Result of “The offers”, Result of “Our rules”")


def change_by_keyboard(page: Page) -> None:
    """Change the plan of a chat's research by the keyboard: edit, move, remove and add tasks, then start it."""
    plan = page.locator(".message .plan")
    expect(plan.get_by_label("The offers", exact=True)).to_be_visible(timeout=30_000)
    look(page, "research-plan")
    plan.get_by_label("The offers", exact=True).fill("Collect two offers.")
    plan.get_by_role("button", name="Move up: Our rules").press("Enter")
    expect(plan.get_by_role("button", name="Move down: Our rules, now 1 of 3")).to_be_focused()
    page.keyboard.press("Enter")
    expect(plan.get_by_role("button", name="Move up: Our rules, now 2 of 3")).to_be_focused()
    for text in ("Say what is missing.", "Too much."):
        plan.get_by_role("button", name="Add a task").press("Enter")
        expect(plan.get_by_label("New task")).to_be_focused()
        page.keyboard.type(text)
    plan.get_by_role("button", name="Leave out", exact=False).last.press("Enter")
    expect(plan.locator("textarea")).to_have_count(4)
    page.reload()  # the changes are stored
    expect(plan.get_by_label("The offers", exact=True)).to_have_value("Collect two offers.")
    plan.get_by_role("button", name="Start", exact=True).press("Enter")


def test_research_in_a_chat_opens_its_sources(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    asked: list[str] = []

    def respond(request: Received) -> Reply:
        if "Split it into the fewest tasks" in str(request.messages[0]["content"]):
            return Answer(calls=[Call("finish_step", {"result": PLAN})])
        if "x_recall_memory" not in request.tool_names:
            return Answer("[]")
        asked.append(str(request.messages[1]["content"]).splitlines()[0])
        if not request.tool_results:
            return Answer(calls=[Call("x_recall_memory", {"query": "Where may we host?"})])
        found = re.search(r"mem_\w+", request.tool_results[0])
        named = found[0] if found else "nothing"
        return Answer(f"We host **in Europe** alone [1].\n\nSources\n\n1. {named}, our rule")

    scripted_hub.server.respond = respond
    page = open_scripted_page()
    begin(page, "researcher")
    remember(page, "We host in Europe alone")
    choose(page, "Research")
    send(page, "Where may we host?")
    change_by_keyboard(page)
    citation = page.locator(".message .prose a", has_text="[1]")
    expect(citation).to_be_visible(timeout=30_000)
    assert set(asked) == {"Find our rules.", "Collect two offers.", "Write it.", "Say what is missing."}
    assert asked[-1] == "Say what is missing."  # it was moved to the end, so the others are done before it
    with page.context.expect_page() as opened:
        citation.click()
    expect(opened.value.locator("[data-memory]", has_text="We host in Europe alone")).to_be_visible()
