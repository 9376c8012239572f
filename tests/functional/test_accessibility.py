"""Accessibility (axe) of what opens by a click beside an answer and in the panel; whole pages: test_every_page."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.functional.conftest import finished, open_panel, send, sign_in
from tests.functional.looks import look


def test_axe_is_silent_about_what_opens(open_scripted_page: Callable[..., Page], demo: str) -> None:
    page = open_scripted_page()
    page.set_viewport_size({"width": 1440, "height": 900})
    sign_in(page, demo)
    answer = send(page, "What do I eat for dinner on Wednesday?")
    finished(answer)
    answer.locator("details.receipt summary").first.click()
    expect(answer.locator(".receipt__item").first).to_be_visible()
    look(page, "axe-receipt")

    panel = open_panel(page)
    card = panel.locator("[data-memory]").first
    card.hover()
    card.locator("summary", has_text="More").last.click()
    card.get_by_role("button", name="History").click()
    expect(panel.locator("[data-history]").first).to_be_visible()
    panel.get_by_role("button", name="Add").click()
    expect(page.locator("#memory-add")).to_be_visible()
    other = panel.locator("[data-memory]").nth(1)
    other.hover()
    other.get_by_role("button", name="Edit").click()
    expect(page.locator("[data-editing]").first).to_be_visible()
    look(page, "axe-panel")
    page.set_viewport_size({"width": 390, "height": 844})
    open_panel(page)
    look(page, "axe-panel-on-a-phone")
