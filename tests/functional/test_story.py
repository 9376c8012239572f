"""The first minutes with the local model, on a phone; on a wide screen: test_readme_story."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.functional.conftest import SLOW, finished, shoot, sign_up

SAID = "My project deadline is March 15 and I am vegetarian"


def send(page: Page, text: str) -> Locator:
    """Send a message. Return the answer's list item, which is still being written."""
    before = page.locator(".message--assistant").count()
    page.get_by_role("textbox", name="Message", exact=True).fill(text)
    page.keyboard.press("Enter")
    answer = page.locator(".message--assistant").nth(before)
    expect(answer).to_be_visible()
    return answer


def open_panel(page: Page) -> Locator:
    panel = page.locator("#panel")
    if not panel.is_visible():
        page.get_by_role("button", name="Memory panel").click()
    expect(panel).to_be_visible()
    return panel


def close_panel(page: Page) -> None:
    if page.viewport_size and page.viewport_size["width"] < 1100:
        page.keyboard.press("Escape")
        expect(page.locator("#panel")).not_to_be_visible()


@pytest.mark.local_model
def test_the_whole_story(open_page: Callable[..., Page]) -> None:
    page, name = open_page("phone", "dark"), "phone-dark"
    sign_up(page, "story")
    shoot(page, f"1-first-{name}")
    page.get_by_role("button", name="Yes, remember").click()
    expect(page.locator("#consent")).to_have_count(0)

    answer = send(page, SAID)
    finished(answer)
    shoot(page, f"2-answered-{name}")
    message = page.locator(".message--user").first
    message.hover()
    message.get_by_role("button", name="Remember this").click()
    expect(message.get_by_text("Remembered")).to_be_visible()
    badge = page.locator("#memory-count")
    expect(badge).to_contain_text(re.compile(r"[1-9]"))

    # A memory extracted in the background appears on the open page.
    panel = open_panel(page)
    noticed = panel.locator("[data-memory]", has_text=re.compile(r"^\s*I am vegetarian"))
    expect(noticed).to_be_visible(timeout=SLOW)
    expect(badge).to_contain_text("3")
    shoot(page, f"3-panel-{name}")

    card = panel.locator("[data-memory]", has_text=SAID)
    card.hover()
    card.get_by_role("button", name="Edit").click()
    form = panel.locator("[data-editing]")
    form.locator("textarea").first.fill("The deadline of my project is March 15")
    form.get_by_role("button", name="Save").click()
    expect(panel.get_by_text("The deadline of my project is March 15")).to_be_visible()
    close_panel(page)

    page.goto("/")
    answer = send(page, "When is my project deadline?")
    finished(answer)
    used = answer.locator("details.receipt")
    expect(used).to_contain_text(re.compile(r"Used \d memor"))
    used.locator("summary").click()
    item = used.locator(".receipt__item", has_text="March 15").first
    expect(item).to_be_visible()
    shoot(page, f"4-receipt-{name}")

    panel = open_panel(page)
    card = panel.locator("[data-memory]", has_text="The deadline of my project is March 15")
    card.hover()
    card.get_by_role("button", name="Forget").click()
    forgotten = panel.locator(".forgotten")
    expect(forgotten).to_be_visible()
    expect(badge).to_contain_text("2")
    shoot(page, f"5-forgotten-{name}")
    forgotten.get_by_role("button", name="Undo").click()
    expect(panel.get_by_text("The deadline of my project is March 15")).to_be_visible()
    expect(badge).to_contain_text("3")
