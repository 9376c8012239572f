"""Keyboard shortcuts: on foreign layouts, in menus, faster than the page loads, and for undo."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from memories.models import Memory
from tests.conftest import Cast
from tests.factories import make_agent, make_chat, make_memory, make_message, make_prompt
from tests.functional.conftest import Open
from tests.functional.keys import press, tab_to

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("database_beside_the_browser")]
# A browser's key events: character, position and modifiers.
LAYOUTS = {
    "German": [("/", "Digit7", "Control+Shift"), (".", "Period", "Control"), ("?", "Minus", "Shift")],
    "French": [("/", "Period", "Control+Shift"), (".", "Comma", "Control+Shift"), ("?", "KeyM", "Shift")],
    "Arabic": [("ظ", "Slash", "Control"), ("ز", "Period", "Control"), ("؟", "Slash", "Shift")],
}
HIT = """([key, code, held]) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {
  key, code, bubbles: true, cancelable: true, ctrlKey: held.includes("Control"), shiftKey: held.includes("Shift"),
}))"""

COMPOSED = """(how) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {
  key: "Enter", bubbles: true, cancelable: true, ...how,
}))"""


def here(cast: Cast) -> str:
    return f"/workspaces/{cast.workspace.public_id}/"


def test_shortcuts_are_the_same_on_every_keyboard(cast: Cast, open_as: Open) -> None:
    page = open_as(cast.owner)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(here(cast))
    panel, field = page.locator("#panel"), page.locator("[data-composer]")
    palette = page.get_by_role("dialog", name="Go to anything")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    for layout, (slash, dot, question) in LAYOUTS.items():
        expect(panel).to_be_visible()
        tab_to(page, "Skip to the content")
        page.evaluate(HIT, slash)
        expect(field).to_be_focused()
        page.evaluate(HIT, dot)
        expect(panel).to_be_hidden()
        page.evaluate(HIT, ("ن" if layout == "Arabic" else "k", "KeyK", "Control"))
        expect(palette).to_be_visible()
        page.keyboard.press("Escape")
        expect(palette).to_be_hidden()
        page.evaluate(HIT, question)  # in a field it is typed
        expect(page.get_by_role("dialog")).to_have_count(0)
        tab_to(page, "Skip to the content")
        page.evaluate(HIT, question)
        expect(keys).to_be_visible()
        page.keyboard.press("Escape")
        expect(keys).to_be_hidden()
        page.keyboard.press("Control+.")


def test_a_list_in_a_menu_keeps_its_arrows_and_what_is_hidden_is_passed_over(
    cast: Cast, open_as: Open
) -> None:
    make_agent(cast.owner, cast.workspace, name="Cook")
    page = open_as(cast.owner)
    page.add_init_script("window.SpeechRecognition = window.webkitSpeechRecognition = undefined")
    page.goto(here(cast))
    press(page, "More for this message")
    expect(page.locator("[data-dictate]")).to_be_hidden()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("button", name="Add files")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("button", name="Saved prompts")).to_be_focused()
    tab_to(page, "Assistant of this chat", "Shift+Tab")
    page.keyboard.press("ArrowDown")
    expect(page.locator("select[name=agent]")).to_be_focused()
    expect(page.locator("[data-chosen]")).to_contain_text("Cook")
    page.keyboard.press("Escape")
    expect(page.locator(".composer__more > summary")).to_be_focused()
    page.keyboard.press("Enter")
    tab_to(page, "Send")
    expect(page.locator(".composer__more")).not_to_have_attribute("open", "")


def enter_before_it_comes(page: Page, words: str, address: str) -> Route:
    """Type and press Enter while a request to this address is pending. Return its route."""
    held: list[Route] = []
    page.route(address, lambda route: held.append(route))
    page.keyboard.type(words)
    page.keyboard.press("Enter")
    while not held:
        page.wait_for_timeout(20)
    return held[0]


def test_enter_waits_for_what_is_found(cast: Cast, open_as: Open) -> None:
    for title in ("Spices of Zanzibar", "Harbour dues"):
        make_chat(cast.owner, cast.workspace, title=title)
    for name in ("Greeting", "Polite no"):
        make_prompt(cast.workspace, cast.owner, name=name, text=f"{name}, please")
    page = open_as(cast.owner)
    page.goto(here(cast))
    message = page.locator("[data-composer]")
    expect(message).to_be_focused()
    page.keyboard.type("/")
    expect(page.locator("#prompts-offered")).to_contain_text("Greeting")
    choices = enter_before_it_comes(page, "pol", "**/prompts/choices/**")
    expect(message).to_have_value("/pol")
    choices.continue_()
    expect(message).to_have_value("Polite no, please")

    page.keyboard.press("Control+k")
    expect(page.locator("#palette-found a").first).to_have_text("Harbour dues")
    for composing in (
        {"isComposing": True},
        {"keyCode": 229},
    ):  # a dead key or an input method ends with Enter
        page.evaluate(COMPOSED, composing)
    found = enter_before_it_comes(page, "Zanz", "**/palette/**")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.url.endswith(here(cast)), "it went to what was found before"
    found.continue_()
    expect(page.get_by_role("heading", name="Spices of Zanzibar")).to_be_visible()


def test_what_was_done_last_is_taken_back_by_a_key_but_not_from_a_field(cast: Cast, open_as: Open) -> None:
    for text in ("The ferry leaves at nine", "The kiosk closes at six"):
        make_memory(text, cast.owner, cast.workspace)
    make_chat(cast.owner, cast.workspace, title="Crossings")
    page = open_as(cast.owner)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(here(cast))
    cards, row = page.locator("#panel [data-memory]"), page.locator("#chat-list .chat-row")
    expect(cards).to_have_count(2)
    press(page, "Forget")
    expect(page.locator(".forgotten")).to_be_visible()
    press(page, "Actions for Crossings")
    expect(row.get_by_role("button", name="Archive")).to_be_visible()
    press(page, "Archive")
    expect(row).to_have_count(0)
    page.keyboard.press("Control+/")
    page.keyboard.press("Control+z")
    expect(row).to_have_count(0)
    tab_to(page, "Send")
    page.keyboard.press("Control+z")
    expect(row).to_have_count(1)
    expect(page.locator(".forgotten")).to_be_visible()
    page.keyboard.press("Control+z")
    expect(page.locator(".forgotten")).to_have_count(0)
    expect(cards).to_have_count(2)
    assert Memory.objects.live().count() == 2
    page.keyboard.press("Control+z")  # nothing is left to undo
    expect(cards).to_have_count(2)


def test_what_is_found_is_said(cast: Cast, open_as: Open) -> None:
    for text in ("The ferry leaves at nine", "The ferry is blue", "The kiosk closes at six"):
        make_memory(text, cast.owner, cast.workspace)
    page = open_as(cast.owner)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(here(cast))
    expect(page.locator("#panel [data-memory]")).to_have_count(3)
    tab_to(page, "Search memories")
    heard = page.locator("#announce")
    for letters, said in {
        "ferry": "2 memories found",
        "kiosk": "1 memory found",
        "chromodynamics": "0 memories found",
    }.items():
        page.keyboard.press("Control+a")
        page.keyboard.type(letters)
        expect(heard).to_have_text(said)
    page.keyboard.press("Control+k")
    page.keyboard.type("retention")
    expect(page.locator("#palette-said")).to_have_text("1 found. Enter takes it: Retention rules")
    page.keyboard.type("zz")
    expect(page.locator("#palette-said")).to_have_text("Nothing here is called “retentionzz”.")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_title(re.compile(r"^0 found · Search"))


def test_who_works_by_keys_keeps_a_place(cast: Cast, open_as: Open) -> None:
    chats = [
        make_chat(cast.owner, cast.workspace, title=title) for title in ("Crossings", "Harbour", "Spices")
    ]
    make_message(chats[0], "I am vegetarian")
    make_memory("The ferry leaves at nine", cast.owner, cast.workspace)
    page = open_as(cast.owner)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/chats/{chats[0].public_id}/")
    expect(page.locator("#panel [data-memory]")).to_have_count(1)
    focused = page.locator(":focus")

    press(page, "Remember this")
    expect(focused).to_have_text("Undo")
    page.keyboard.press("Enter")
    expect(focused).to_have_text("Remember this")

    press(page, "Filter")
    press(page, "Pinned", "Space")
    press(page, "Pinned")
    expect(page.locator(".filter-chip")).to_have_count(0)
    expect(focused).to_contain_text("Filter")

    rows = page.locator("#chat-list .chat-row")
    for act, title, left in (("Archive", "Spices", 2), ("Delete", "Harbour", 1)):
        press(page, f"Actions for {title}")
        with page.expect_response("**/chats/list/**"):  # a message arrived elsewhere: the menu stays open
            page.evaluate("htmx.trigger(document.body, 'chats:changed')")
        expect(rows.get_by_role("button", name=act, exact=True)).to_be_visible()
        press(page, act)
        expect(rows).to_have_count(left)
        expect(page.locator("#chat-list :focus")).to_have_count(1)
    page.keyboard.press("Control+z")
    expect(rows).to_have_count(2)
    expect(page.locator("#chat-list :focus")).to_have_count(1)
    press(page, "Undo")  # in the notice of the deletion
    expect(rows).to_have_count(3)
    expect(focused).to_have_count(1)
    press(page, "Everyone in Shared")
    expect(focused).to_contain_text("Share with the workspace")
