"""Usage of an answer; and a budget that is set, warned about and used up, in a browser."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.functional.conftest import sign_up
from tests.functional.looks import look


def test_a_budget_is_set_warned_of_and_used_up(open_scripted_page: Callable[..., Page]) -> None:
    page = open_scripted_page()

    def ask(text: str) -> None:
        page.get_by_role("textbox", name="Message", exact=True).fill(text)
        page.keyboard.press("Enter")

    def allow(tokens: int) -> None:
        page.goto(f"/workspaces/{workspace}/settings/")
        page.get_by_role("link", name="Data", exact=True).click()
        page.get_by_role("link", name="Usage and budget").click()
        page.get_by_label("Tokens per month").fill(str(tokens))
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("The budget is saved.")).to_be_visible()

    sign_up(page, "bud")
    page.get_by_role("button", name="Not now").click()
    expect(page.locator("#consent")).to_have_count(0)
    workspace = page.locator("body").get_attribute("data-workspace")
    ask("Hello")
    line = page.locator(".message__about")
    expect(line.get_by_text("9 tokens in")).to_be_hidden()
    chat = page.url
    line.locator("summary").click()
    expect(line.get_by_text(re.compile(r"^\s*9 tokens in, 3 out"))).to_be_visible()
    expect(line.get_by_text("Cached")).to_be_visible()
    look(page, "usage-answer")

    allow(14)  # 12 are used
    page.goto(chat)
    warning = page.get_by_text("This workspace has used 12 of 14 tokens of its budget for this month")
    expect(warning).to_be_visible()

    allow(12)
    look(page, "usage-spent")
    page.goto(chat)
    ask("And now?")
    refusal = page.get_by_text("This workspace's budget for the month is used up: 12 of 12 tokens.").last
    expect(refusal).to_be_visible()
    look(page, "usage-refused")
    allow(1000)
    page.goto(chat)
    expect(warning).to_have_count(0)
    page.goto("/profile/")
    page.get_by_role("link", name="Data", exact=True).click()
    page.get_by_role("link", name="Your usage").click()
    expect(page.get_by_role("cell", name="9", exact=True).first).to_be_visible()
