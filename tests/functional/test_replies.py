"""Replies with more than an answer as the page shows them, and a proposed statement."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.fakes.openai_server import Answer, Hold, Received, Reply
from tests.functional.conftest import ScriptedHub, finished, send, sign_up
from tests.functional.looks import look

THOUGHT = "The person asks about green tea.\nSencha is the usual one, and gyokuro."


def reply(request: Received) -> Reply:
    first, last = str(request.messages[0]["content"]), str(request.messages[-1]["content"])
    if first.startswith("You write one statement"):
        return Answer("Sencha and gyokuro are green teas.")
    if first.startswith("You read a conversation"):
        return Answer('{"memories": []}')
    if "Go on exactly" in last:
        return Answer("kuro, which is shaded before the harvest.")
    return Answer(f"<think>{THOUGHT}</think>\n\n", "Sencha, for one, and gyo", finish_reason="length")


def test_a_thought_is_folded_a_cut_answer_goes_on_and_an_answer_is_remembered_in_ones_own_words(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    scripted_hub.server.respond = reply
    page = open_scripted_page()
    sign_up(page, "replies")
    page.get_by_role("button", name="Yes, remember").click()
    answer = send(page, "Which tea is green?")
    finished(answer)
    last = page.locator(".message--assistant").last
    thought = last.locator("summary", has_text="Thought about the answer")
    expect(thought).to_be_visible()
    expect(last.get_by_text("Sencha is the usual one")).to_be_hidden()
    expect(last.locator(".prose")).not_to_contain_text("asks about")
    expect(last.get_by_text("length limit")).to_be_visible()

    thought.focus()
    page.keyboard.press("Enter")
    expect(last.get_by_text("Sencha is the usual one")).to_be_visible()
    last.get_by_role("button", name="Continue").click()
    expect(last.locator(".prose")).to_contain_text(re.compile(r"and gyokuro, which is shaded"))
    expect(last.get_by_role("button", name="Continue")).to_have_count(0)

    last.get_by_role("button", name="Remember this").click()
    field = last.get_by_role("textbox", name="What to remember")
    expect(field).to_be_focused()
    expect(field).to_have_value("Sencha and gyokuro are green teas.")
    look(page, "replies-2-proposed")
    page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    last.get_by_role("button", name="Remember this").click()
    last.get_by_role("textbox", name="What to remember").fill("I drink sencha")
    last.get_by_role("button", name="Remember", exact=True).click()
    expect(last.get_by_text("Remembered")).to_be_visible()
    expect(page.locator("#memory-count")).to_contain_text("1")


def test_what_is_sent_during_an_answer_waits_for_its_end_and_can_be_taken_back(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    def slow(request: Received) -> Reply:
        is_first = "Which tea" in str(request.messages[-1]["content"])
        return Answer("Sencha", Hold(), ", for one.") if is_first else Answer("Gyokuro.")

    scripted_hub.server.respond = slow
    page = open_scripted_page()
    sign_up(page, "waits_for_its_turn")
    page.get_by_role("button", name="Not now").click()
    message = page.get_by_role("textbox", name="Message", exact=True)
    message.fill("Which tea is green?")
    page.keyboard.press("Enter")
    expect(page.locator(".message--assistant")).to_contain_text("Sencha")
    message.fill("And another?")
    page.keyboard.press("Enter")
    waits = page.get_by_text("Sends when this answer is finished.")
    expect(waits).to_be_visible()
    page.keyboard.press("Escape")
    expect(waits).to_be_hidden()
    page.keyboard.press("Enter")
    expect(page.locator(".message--user")).to_have_count(1)
    scripted_hub.server.release()
    expect(page.locator(".message--user")).to_have_count(2)
    expect(page.locator(".message--assistant").last).to_contain_text("Gyokuro.")
    expect(message).to_have_value("")
    expect(waits).to_be_hidden()
