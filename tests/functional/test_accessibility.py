"""Accessibility (axe) of menus and dialogs that open by a click; whole pages: test_every_page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page, expect

from tests.functional.conftest import LOOKS, finished, shoot, sign_in
from tests.stack import PASSWORD, ROOT

pytestmark = pytest.mark.local_model


@pytest.fixture(scope="module")
def demo(hub: str, hub_env: dict[str, str]) -> str:
    """Create a user with chats and memories."""
    seed = [sys.executable, "manage.py", "seed_demo", "--username", "axel", "--password", PASSWORD]
    done = subprocess.run(seed, cwd=ROOT, env=hub_env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return "axel"


@pytest.fixture(scope="module")
def answered(browser: Browser, hub: str, demo: str) -> str:
    """Return the address of a chat whose answer used memories."""
    page = browser.new_context(base_url=hub).new_page()
    sign_in(page, demo)
    page.get_by_role("textbox", name="Message", exact=True).fill("What do I eat for dinner on Wednesday?")
    page.keyboard.press("Enter")
    finished(page.locator(".message--assistant").first)
    address = page.url
    page.context.close()
    return address


def faults(page: Page, *, before: str = "", **only: Any) -> list[str]:
    """Return the violations that axe finds, each with the page and the first element.

    ``only`` selects rules. ``before``: a script function that runs once axe is loaded.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    # Passes are left out, since they are many, and style sheets are not preloaded, which would send more requests.
    asked = {"resultTypes": ["violations"], "preload": False, **only}
    if before:
        page.evaluate(before)
    found: list[Any] = page.evaluate("asked => axe.run(asked).then((seen) => seen.violations)", asked)
    return [
        f"{page.url} {fault['id']}: {fault['nodes'][0]['html'][:200]} "
        f"{fault['nodes'][0].get('failureSummary', '')}"
        for fault in found
    ]


# Whether a chosen element differs from its neighbour in forced colours.
TOLD_APART = """chosen => {
  const kept = ["outlineStyle", "outlineWidth", "borderBlockEndWidth", "borderBlockEndStyle", "borderBlockEndColor",
                "textDecorationLine", "fontWeight", "color", "backgroundColor"];
  const seen = (element) => JSON.stringify(kept.map((name) => getComputedStyle(element)[name]));
  const other = document.querySelector(chosen[1]);
  return document.querySelector(chosen[0]) && other && seen(document.querySelector(chosen[0])) !== seen(other);
}"""


def open_sheet(page: Page, name: str, column: str) -> None:
    if not page.locator(column).is_visible():
        page.get_by_role("button", name=name).first.click()
    expect(page.locator(column)).to_be_visible()


@LOOKS
def test_axe_is_silent_about_what_opens(
    open_page: Callable[..., Page], demo: str, answered: str, size: str, scheme: str
) -> None:
    page = open_page(size, scheme)
    page.emulate_media(reduced_motion="reduce")  # no colour is checked while it fades
    found = []
    sign_in(page, demo)
    page.goto(answered)
    answer = page.locator(".message--assistant").first
    answer.locator("details.receipt summary").first.click()
    expect(answer.locator(".receipt__item").first).to_be_visible()
    found += faults(page)
    shoot(page, f"axe-receipt-{size}-{scheme}")

    open_sheet(page, "Memory panel", "#panel")
    card = page.locator("#panel [data-memory]").first
    card.hover()
    found += faults(page)
    card.locator("summary", has_text="More").last.click()
    card.get_by_role("button", name="History").click()
    expect(page.locator("#panel [data-history]").first).to_be_visible()
    page.locator("#panel").get_by_role("button", name="Add").click()
    expect(page.locator("#memory-add")).to_be_visible()
    other = page.locator("#panel [data-memory]").nth(1)
    other.hover()
    other.get_by_role("button", name="Edit").click()
    expect(page.locator("[data-editing]").first).to_be_visible()
    found += faults(page)
    shoot(page, f"axe-panel-{size}-{scheme}")
    assert found == []


def test_what_is_chosen_is_told_apart_in_a_systems_own_colours(
    open_page: Callable[..., Page], demo: str, answered: str
) -> None:
    page = open_page("desktop", "light")
    sign_in(page, demo)
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    page.goto(answered)
    row = ".chat-row > a"
    assert page.evaluate(TOLD_APART, [f"{row}[aria-current]", f"{row}:not([aria-current])"])
    assert (
        page.evaluate("() => getComputedStyle(document.querySelector('.bubble')).borderTopStyle") == "solid"
    )
    shoot(page, "forced-colours-chat")
    page.goto("/profile/#looks")
    page.get_by_role("button", name="Dark").click()
    pressed = ".segments button[aria-pressed='%s']"
    assert page.evaluate(TOLD_APART, [pressed % "true", pressed % "false"])
    assert page.evaluate(TOLD_APART, [".tab[aria-current]", ".tab:not([aria-current])"])
    shoot(page, "forced-colours-profile")
