"""Deep thinking in the browser: chosen beside the composer, its steps shown live and kept, stopped, and
extracted from.
"""

import json
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.fakes.openai_server import HOLD, Answer, Call, Received, Reply, ScriptedOpenAI
from tests.functional.conftest import (
    ScriptedHub,
    close_panel,
    finished,
    open_more,
    open_panel,
    send,
    sign_up,
)
from tests.functional.looks import look

PLAN = "1. Look at who comes along.\n2. Leave out what they cannot eat.\n3. Give a short list."
LIST = (
    "For Saturday take along:\n\n- bread and cheese\n- roasted peanuts for Anna\n- two bottles of water\n\n"
)
TEXT = LIST + "All of it fits into one basket, and nothing of it has to be kept cold on the way there. " * 2
WRONG = {
    "statements": [{"quote": "roasted peanuts for Anna", "memory": 1, "agrees": False}],
    "correction": "Correction: no peanuts for Anna, she is allergic to them.",
}
NOTICED = "User goes for a picnic with Anna on Saturday"


class Model:
    """Answers by the kind of request, since workers send others; the end of an answer waits for
    ``server.release()``.
    """

    def __init__(self, server: ScriptedOpenAI) -> None:
        self.server = server
        self.answer: Reply = Answer(TEXT[:60], HOLD, TEXT[60:])
        self.check: Reply = Answer(json.dumps(WRONG))
        server.hold()
        server.respond = self

    def __call__(self, request: Received) -> Reply:
        first, before = (str(request.messages[0]["content"]), str(request.messages[-2:-1]))
        if first.startswith("You compare"):
            return self.check
        if first.startswith("You read what an assistant wrote"):
            return Answer(json.dumps([{"text": NOTICED, "kind": "event", "importance": 0.6}]))
        if first.startswith("You read a conversation"):
            return Answer("[]")
        if "Write only a plan" in before:
            return Answer(PLAN)
        if request.messages[-1]["role"] == "tool":
            return Answer("Kept", HOLD, ".")
        return self.answer


@pytest.fixture
def model(scripted_hub: ScriptedHub) -> Iterator[Model]:
    yield Model(scripted_hub.server)
    scripted_hub.server.release()


def begin(page: Page, username: str) -> None:
    sign_up(page, username)
    page.get_by_role("button", name="Yes, remember").click()
    expect(page.locator("#consent")).to_have_count(0)


def remember(page: Page, text: str) -> None:
    panel = open_panel(page)
    panel.get_by_role("button", name="Add").click()
    panel.locator("#memory-add textarea").first.fill(text)
    panel.locator("#memory-add button[type=submit]").click()
    expect(panel.locator("[data-memory]", has_text=text)).to_be_visible()
    close_panel(page)


def choose(page: Page, mode: str) -> Locator:
    open_more(page)
    choice = page.locator(".mode-choice", has_text=mode)
    choice.click()
    return choice.locator("input")


def test_a_question_is_thought_through(open_scripted_page: Callable[..., Page], model: Model) -> None:
    page = open_scripted_page()
    begin(page, "thinker")
    remember(page, "Anna is allergic to peanuts")
    choose(page, "Think")
    answer = send(page, "I have a picnic with Anna on Saturday. What do we take along?")

    plan = answer.locator(".call", has_text="Planned the answer")
    expect(plan).to_be_visible()
    expect(answer.locator("[data-live]")).to_contain_text("For Saturday")
    plan.locator("summary").click()
    expect(plan).to_contain_text("Leave out what they cannot eat.")

    other = page.context.new_page()  # as another tab of the same user shows it
    other.goto(page.url)
    expect(other.locator(".call", has_text="Planned the answer")).to_be_visible()
    expect(other.locator("[data-live]")).to_contain_text("For Saturday")

    model.server.release()
    for tab in (page, other):
        shown = tab.locator(".message--assistant").first
        finished(shown)
        expect(shown.locator(".prose")).to_contain_text("Correction: no peanuts for Anna")
        check = shown.locator(".call--differs")
        expect(check).to_contain_text("Checked against 1 memory · 1 statement differs, corrected")
        expect(check).to_contain_text("differs from memory: Anna is allergic to peanuts")

    page.reload()
    answer = page.locator(".message--assistant").first
    expect(answer.locator(".call", has_text="Planned the answer")).to_be_visible()
    expect(answer.locator(".call--differs")).to_contain_text("roasted peanuts for Anna")
    chip = page.locator("[data-chosen] button")
    expect(chip).to_contain_text("Think")
    chip.click()
    expect(chip).to_have_count(0)
    expect(page.get_by_role("textbox", name="Message", exact=True)).to_be_focused()
    look(page, "think-4-reloaded")
    stop_while_it_is_checked(page, model)


def stop_while_it_is_checked(page: Page, model: Model) -> None:
    """Stop during the check: the answer stays whole."""
    choose(page, "Think")
    model.server.hold()
    model.answer, model.check = Answer(TEXT), Answer("{", HOLD, "}")
    answer = send(page, "I have a picnic with Anna on Saturday. What do we take along?")
    expect(answer.locator("[data-checks]")).to_contain_text("Checking against memory…")
    page.get_by_role("button", name="Stop").click()
    finished(answer)
    expect(answer).to_contain_text("Not checked against memory: it was stopped")
    expect(answer.get_by_role("button", name="Retry")).to_have_count(0)
    expect(answer.get_by_role("button", name="Regenerate")).to_be_attached()


def test_what_is_saved_glows_in_the_panel_and_is_told_once(
    open_scripted_page: Callable[..., Page], model: Model
) -> None:
    """A memory saved by a tool has a line on its answer and no toast; one found in the text has a toast."""
    page = open_scripted_page()
    begin(page, "noticed")
    model.answer = Answer(calls=[Call("x_save_memory", {"content": "User likes oolong tea"})])
    answer = send(page, "Remember that I like oolong tea")
    expect(answer.locator(".call")).to_contain_text("Saved to memory")
    cards, toast = page.locator("#panel [data-memory]"), page.locator(".toast")
    expect(cards.filter(has_text="User likes oolong tea")).to_have_class(re.compile("memory--new"))
    expect(page.locator("#memory-count")).to_contain_text("1")
    model.server.release()
    finished(answer)
    expect(answer.get_by_role("button", name="Undo")).to_be_visible()
    expect(toast).to_have_count(0)

    choose(page, "Think")
    model.answer = Answer(TEXT)
    answer = send(page, "I go for a picnic with Anna on Saturday. What do we take along?")
    finished(answer)
    expect(toast.filter(has_text="Memories saved: 1")).to_be_visible(timeout=20_000)
    expect(page.locator("#memory-count")).to_contain_text("2")
    page.get_by_role("button", name="View").click()
    card = cards.filter(has_text=NOTICED)
    expect(card).to_have_class(re.compile("memory--new"))
    expect(card).to_contain_text("From thinking")
    expect(toast).to_have_count(0)  # “View” closed the toast, and no second one appeared
    close_panel(page)
    expect(answer).to_contain_text(re.compile("saved 1", re.IGNORECASE))


def test_thinking_outlasts_the_question_about_memory_and_ends_with_the_chat(
    open_scripted_page: Callable[..., Page], model: Model
) -> None:
    page = open_scripted_page()
    sign_up(page, "chooser")
    chooser, memory = choose(page, "Think"), page.get_by_role("switch", name="Automatic memory in this chat")
    field = page.get_by_role("textbox", name="Message", exact=True)
    field.fill("What do we take along?")
    page.get_by_role("button", name="Not now").click()
    expect(page.locator("#consent")).to_have_count(0)
    expect(page.locator("#welcome")).to_contain_text("Nothing is remembered automatically.")
    expect(memory).not_to_be_checked()
    expect(page.locator("[data-chosen] button")).to_contain_text("Think")
    expect(field).to_have_value("What do we take along?")
    expect(field).to_be_focused()
    open_more(page)
    expect(chooser).to_be_checked()

    off, quick = page.get_by_role("button", name="Think Turn off"), page.locator("[data-quick]")
    expect(quick).to_be_hidden()
    answer = send(page, "What do we take along?")
    model.server.release()
    finished(answer)
    off.click()
    page.reload()
    expect(quick).to_be_visible()  # turned off, although the last answer was made so
    page.get_by_role("button", name="Think", exact=True).click()
    expect(off).to_be_visible()
    page.get_by_role("link", name="New chat").first.click()
    expect(quick).to_be_visible()
    expect(page.locator("[data-chosen] button")).to_have_count(0)


def test_all_choices_have_room_beside_the_composer_of_a_phone(
    open_scripted_page: Callable[..., Page], model: Model
) -> None:
    page = open_scripted_page("phone")
    begin(page, "crowded")
    page.goto(f"{page.url}agents/")
    page.get_by_label("Name").fill("A helper with quite a long name")
    page.locator("main form button[type=submit]").first.click()
    page.goto("/")
    choose(page, "Think")
    expect(page.locator("[data-chosen] button")).to_contain_text("Think")
    open_more(page)
    for chooser in (
        page.locator(".composer__more > summary"),
        page.get_by_role("textbox", name="Message", exact=True),
        page.locator("#memory-chip"),
        page.locator(".mode-choice", has_text="Think"),
        page.get_by_role("combobox", name="Assistant of this chat"),
        page.get_by_role("button", name="Send"),
    ):
        expect(chooser).to_be_visible()
        box = chooser.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert min(box["width"], box["height"]) >= 44
