"""No part of a page that opens by a press has a serious fault that axe can find (pages: test_every_page)."""

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

GRAVE = {"serious", "critical"}

pytestmark = pytest.mark.local_model


@pytest.fixture(scope="module")
def demo(hub: str, hub_env: dict[str, str]) -> str:
    """A person with chats and memories."""
    seed = [sys.executable, "manage.py", "seed_demo", "--username", "axel", "--password", PASSWORD]
    done = subprocess.run(seed, cwd=ROOT, env=hub_env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return "axel"


@pytest.fixture(scope="module")
def answered(browser: Browser, hub: str, demo: str) -> str:
    """The address of a chat whose answer used memories."""
    page = browser.new_context(base_url=hub).new_page()
    sign_in(page, demo)
    page.get_by_role("textbox", name="Message", exact=True).fill("What do I eat for dinner on Wednesday?")
    page.keyboard.press("Enter")
    finished(page.locator(".message--assistant").first)
    address = page.url
    page.context.close()
    return address


def faults(page: Page, **only: list[str]) -> list[str]:
    """What axe calls serious or critical, each with the page and the first element; the rules may be named."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    asked = {"resultTypes": ["violations"], **only}  # what is well is a long list
    found: list[Any] = page.evaluate("asked => axe.run(asked).then((seen) => seen.violations)", asked)
    return [
        f"{page.url} {fault['id']}: {fault['nodes'][0]['html'][:200]} "
        f"{fault['nodes'][0].get('failureSummary', '')}"
        for fault in found
        if fault["impact"] in GRAVE
    ]


def open_sheet(page: Page, name: str, column: str) -> None:
    if not page.locator(column).is_visible():
        page.get_by_role("button", name=name).first.click()
    expect(page.locator(column)).to_be_visible()


@LOOKS
def test_what_opens_has_no_serious_fault(
    open_page: Callable[..., Page], demo: str, answered: str, size: str, scheme: str
) -> None:
    page = open_page(size, scheme)
    page.emulate_media(reduced_motion="reduce")  # no colour is looked at while it fades
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
    page.locator("#panel").get_by_role("button", name="Add").click()
    other = page.locator("#panel [data-memory]").nth(1)
    other.hover()
    other.get_by_role("button", name="Edit").click()
    expect(page.locator("[data-editing]").first).to_be_visible()
    found += faults(page)
    shoot(page, f"axe-panel-{size}-{scheme}")
    assert found == []
