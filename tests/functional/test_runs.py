"""A run by the keyboard alone: started, its plan changed, watched, stopped, its memory opened, undone, repeated."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.fakes.openai_server import HOLD, Answer, Call, Received, Reply
from tests.functional.conftest import ScriptedHub, shoot, sign_up
from tests.functional.keys import follow, press, tab_to, write
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
    if asked.startswith("Find") and not request.tool_results:
        return Answer(calls=[Call("x_save_memory", {"content": "We host in Europe alone"})])
    return Answer(REPORT if asked.startswith("Write it") else "Only hosts in Europe.")


@pytest.fixture
def held(scripted_hub: ScriptedHub) -> Iterator[None]:
    scripted_hub.server.hold()
    scripted_hub.server.respond = answering
    yield
    scripted_hub.server.release()


def undo_what_it_saved(page: Page) -> None:
    """Undo a saved memory and restore it; undo it again and reload, after which it is gone."""
    saved = page.locator("section", has=page.get_by_role("heading", name="Saved to memory"))
    press(page, "Undo")
    expect(saved.get_by_text("Forgotten.")).to_be_visible()
    shoot(page, "run-undone")
    press(page, "Undo")
    expect(saved).to_contain_text("We host in Europe alone")
    page.reload()
    press(page, "Undo")
    expect(saved.get_by_text("Forgotten.")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Memory of this run")).to_be_visible()
    expect(saved).to_have_count(0)


def test_a_run_is_planned_watched_and_read(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub, held: None
) -> None:
    page = open_scripted_page()
    sign_up(page, "runner")
    page.goto(page.url.rstrip("/") + "/runs/" if "/workspaces/" in page.url else page.url)
    write(page, "Task", "Compare our three hosting offers and recommend one. We host in Europe alone.")
    press(page, "It may save what it finds to memory", "Space")
    follow(page, "Start")
    expect(page.get_by_text("This is the plan.")).to_be_visible(timeout=20_000)
    write(page, "Our rules", "Find our rules for hosting.")
    shoot(page, "run-plan")
    press(page, "Start")
    expect(page.locator(".run-task--done")).to_have_count(1, timeout=20_000)
    expect(page.locator(".run-task--running")).to_have_count(1)
    shoot(page, "run-going")
    press(page, "Stop")
    expect(page.locator("#run-live .tag").first).to_have_text("Stopped")
    expect(page.locator(".run-task--running")).to_have_count(0)
    shoot(page, "run-stopped")
    press(page, "Resume")
    expect(page.locator("#run-live .tag").first).to_have_text("Running")
    scripted_hub.server.release()
    expect(page.locator("#run-live .tag").first).to_have_text("Done", timeout=20_000)
    expect(page.locator(".prose")).to_contain_text("Take offer B")
    press(page, "Result of “The offers”")
    expect(page.locator(".run-entry__text").first).to_contain_text("C 7 euros")
    look(page, "run-done")
    expect(page.locator(".run-graph__task--done")).to_have_count(3)
    undo_what_it_saved(page)
    press(page, "Log")
    expect(page.locator(".run-log")).to_contain_text("Read: Result of “The offers”, Result of “Our rules”")
    shoot(page, "run-log")
    tab_to(page, "Run again from here", "Shift+Tab")  # the report is the last of them
    page.keyboard.press("Enter")
    expect(page.locator("#run-live .tag").first).to_have_text("Done", timeout=20_000)
    expect(page.locator(".prose")).to_contain_text("Take offer B")
    press(page, "Save as a template")
    write(page, "Name", "Offers")
    follow(page, "Save")
    expect(page.get_by_label("Task")).to_have_value(re.compile("Compare our three"))
    follow(page, "Start")
    expect(page.get_by_text("This is the plan.")).to_be_visible()  # the stored plan, without a model


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
    shoot(page, "research-plan-changed")
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
    page.get_by_role("textbox", name="Message", exact=True).fill("Where may we host?")
    page.keyboard.press("Enter")
    change_by_keyboard(page)
    citation = page.locator(".message .prose a", has_text="[1]")
    expect(citation).to_be_visible(timeout=30_000)
    assert set(asked) == {"Find our rules.", "Collect two offers.", "Write it.", "Say what is missing."}
    assert asked[-1] == "Say what is missing."  # it was moved to the end, so the others are done before it
    look(page, "research")
    with page.context.expect_page() as opened:
        citation.click()
    expect(opened.value.locator("[data-memory]", has_text="We host in Europe alone")).to_be_visible()
    shoot(opened.value, "research-source")
