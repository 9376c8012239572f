"""Pages in the language with the longest words and in one from right to left, in a browser.

The language is chosen in the profile; nothing is cut, covered, too wide or too small. Structure and colours are checked
in English (test_every_page), as is what opens beside an answer and in the panel.
"""

import os
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.functional.conftest import SIZES, ScriptedHub, finished, open_panel, send, shoot, sign_in
from tests.functional.looks import SETTLED, look
from tests.functional.test_every_page import COVERED, CUT, SMALL
from tests.stack import PASSWORD

SCHEMES = ("light", "dark") if os.environ.get("SCREENSHOTS") else ("light",)


@pytest.fixture
def speaker(scripted_hub: ScriptedHub) -> str:
    """Create a user with chats, memories, topics and an assistant, who has sent nothing."""
    scripted_hub.stack.manage("seed_demo", "--username", "amina", "--password", PASSWORD)
    return "amina"


def faults_of(page: Page, address: str, name: str) -> list[str]:
    """Return the faults on a phone; of a conversation, also with the columns that cover it there, and on a desktop."""
    page.goto(address)
    page.set_viewport_size({"width": SIZES["phone"][0], "height": SIZES["phone"][1]})
    found = faults_here(page, f"{name}-phone")
    if "/chats/" in address:
        for column in ("panel", "sidebar"):
            page.locator(f".toolbar [data-toggle={column}]").click()
            page.locator(f"#{column} :is([data-memory], .chat-row)").first.wait_for()
            found += faults_here(page, f"{name}-{column}-phone")
            page.keyboard.press("Escape")
        page.set_viewport_size({"width": SIZES["desktop"][0], "height": SIZES["desktop"][1]})
        page.locator("#panel [data-memory]").first.wait_for()
        found += faults_here(page, f"{name}-desktop")
    return found


def faults_here(page: Page, name: str) -> list[str]:
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.evaluate(SETTLED)
        shoot(page, f"in-{name}-{scheme}")
    found = page.evaluate(CUT) + page.evaluate(COVERED)
    found += page.evaluate(SMALL) if name.endswith("phone") else []
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("is too wide")
    return [f"{name}: {fault}" for fault in found]


def choose(page: Page, language: str, *, direction: str) -> None:
    page.goto("/profile/")
    page.locator("select[name=language]").select_option(language)
    expect(page.locator("html")).to_have_attribute("lang", language or "en")
    expect(page.locator("html")).to_have_attribute("dir", direction)


def test_a_language_is_chosen_and_no_page_has_a_fault_in_it(
    open_scripted_page: Callable[..., Page], speaker: str
) -> None:
    page = open_scripted_page(timezone_id="Asia/Tokyo")
    sign_in(page, speaker)
    workspace = page.locator("body").get_attribute("data-workspace")
    chat = page.locator(".chat-row > a").first.get_attribute("href") or ""
    place = f"/workspaces/{workspace}/"
    addresses = {
        "conversation": chat,
        "workspace": place,
        "settings": f"{place}settings/",
        "documents": f"{place}documents/",
        "topics": f"{place}nodes/",
        "usage": f"{place}usage/",
        "profile": "/profile/",
    }
    found = []
    for language, direction in (("ar", "rtl"), ("de", "ltr")):
        choose(page, language, direction=direction)
        for name, address in addresses.items():
            found += faults_of(page, address, f"{language}-{name}")
    assert not found, "\n".join(found)

    width, height = SIZES["desktop"]
    page.set_viewport_size({"width": width, "height": height})
    page.goto(chat)  # in German, and in the browser's time zone
    expect(page.locator("#panel time").first).to_have_attribute("title", re.compile("JST$"))
    choose(page, "", direction="ltr")
    expect(page.get_by_role("heading", name="Language")).to_be_visible()
    look_at_what_opens(page)  # last, as the answer is listed on the page of usage


def look_at_what_opens(page: Page) -> None:
    """Check what opens by a click beside an answer and in the panel."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("/")
    answer = send(page, "What do I eat for dinner on Wednesday?")
    finished(answer)
    answer.locator("details.receipt summary").first.click()
    expect(answer.locator(".receipt__item").first).to_be_visible()

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
