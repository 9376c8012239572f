"""A prompt saved, found by “/”, its blanks filled in and sent, by the keyboard alone."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.functional.conftest import sign_up
from tests.functional.looks import look


def test_a_prompt_with_blanks(open_scripted_page: Callable[..., Page]) -> None:
    page = open_scripted_page()
    sign_up(page, "pia")
    page.get_by_role("button", name="Not now").click()
    expect(page.locator("#consent")).to_have_count(0)
    workspace = page.locator("body").get_attribute("data-workspace")

    page.goto(f"/workspaces/{workspace}/prompts/")
    page.get_by_label("Name", exact=True).fill("Polite no")
    page.get_by_role("textbox", name="Prompt").fill("Decline {{offer}} of {{who}} politely. $& {{offer}}")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("“Polite no” is saved.")).to_be_visible()

    page.goto(f"/workspaces/{workspace}/")
    message = page.get_by_role("textbox", name="Message", exact=True)
    message.focus()
    page.keyboard.type("/pol")
    offered = page.locator("#prompts-offered")
    expect(offered.get_by_role("button", name="Polite no")).to_be_visible()
    page.keyboard.press("Escape")
    expect(offered).to_be_hidden()
    page.keyboard.type("x")
    expect(offered).to_contain_text("No prompt contains “polx”")
    page.keyboard.press("Backspace")
    expect(offered.get_by_role("button", name="Polite no")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Polite no")).to_be_visible()
    page.keyboard.type("the <b>job</b>")
    page.keyboard.press("Tab")
    page.keyboard.type("$& and {{offer}}")
    look(page, "prompts-blanks")
    page.keyboard.press("Enter")
    filled = "Decline the <b>job</b> of $& and {{offer}} politely. $& the <b>job</b>"
    expect(message).to_have_value(filled)
    expect(message).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".message").first).to_contain_text(filled)
    expect(page.locator(".message--assistant .actions")).to_be_visible()
    page.keyboard.type("/pol")  # and in the next message of the same page
    expect(page.locator("#prompts-offered").get_by_role("button", name="Polite no")).to_be_visible()
