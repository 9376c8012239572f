"""The first minutes without a mouse."""

from collections.abc import Callable
from itertools import takewhile

from playwright.sync_api import Page, expect

from tests.functional.conftest import SLOW, finished, sign_up
from tests.functional.keys import reached_names, tabbed


def test_first_minutes_with_the_keyboard_alone(open_scripted_page: Callable[..., Page]) -> None:
    page = open_scripted_page()
    sign_up(page, "typist")
    page.reload()
    tab_follows_the_order_of_reading(page)
    page.goto("/")
    enter_sends_and_shift_enter_breaks_the_line(page)
    memory_is_added_edited_and_forgotten(page)


def tab_follows_the_order_of_reading(page: Page) -> None:
    # The panel loads after the page.
    expect(page.get_by_role("searchbox", name="Search memories")).to_be_visible()
    skip = page.locator("a, button, input, textarea, select, summary").first
    expect(skip).to_have_text("Skip to the content")
    skip.focus()
    in_document = reached_names(page)
    names = list(takewhile(bool, (tabbed(page) for _ in range(60))))
    assert [in_document[0], *names] == in_document, "keys.tab_to relies on this order"
    expected = [
        "New chat",
        "Search chats",
        "Memory panel",
        "Yes, remember",
        "Message",
        "Send",
        "Add",
        "Search memories",
    ]
    reached = iter(names)
    assert all(any(wanted in name for name in reached) for wanted in expected), names

    skip.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"


def enter_sends_and_shift_enter_breaks_the_line(page: Page) -> None:
    field = page.get_by_role("textbox", name="Message", exact=True)
    expect(field).to_be_focused()
    page.keyboard.type("First line")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("second line")
    expect(field).to_have_value("First line\nsecond line")
    expect(page.locator(".message")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.locator(".message--user")).to_contain_text("second line")
    expect(field).to_have_value("")
    expect(field).to_be_focused()
    finished(page.locator(".message--assistant").first)

    page.keyboard.press("Enter")  # an empty message is not sent
    page.keyboard.press("ArrowUp")  # the last message, for editing
    edited = page.locator(".message--user textarea")
    expect(edited).to_have_value("First line\nsecond line")
    expect(edited).to_be_focused()
    expect(page.locator(".message--user")).to_have_count(1)


def test_escape_closes_what_is_open_and_gives_the_focus_back(open_scripted_page: Callable[..., Page]) -> None:
    page = open_scripted_page("phone")
    sign_up(page, "escaper")
    toggle = page.get_by_role("button", name="Memory panel")
    toggle.focus()
    page.keyboard.press("Enter")
    panel = page.locator("#panel")
    expect(panel).to_be_visible()
    expect(panel.get_by_role("link", name="See all")).to_be_focused()  # the first element of the panel
    page.keyboard.press("Escape")
    expect(panel).not_to_be_visible()
    expect(toggle).to_be_focused()


def memory_is_added_edited_and_forgotten(page: Page) -> None:
    panel = page.locator("#panel")
    expect(panel.locator("#panel-filters")).to_be_visible()
    panel.get_by_role("button", name="Add").press("Enter")
    expect(panel.locator("#memory-add textarea")).to_be_focused()
    page.keyboard.type("The library closes at six")
    panel.locator("#memory-add button[type=submit]").press("Enter")
    card = panel.locator("[data-memory]", has_text="The library closes at six")
    # The first memory of an installation: its embedder is loaded now
    expect(card).to_be_visible(timeout=SLOW)

    card.get_by_role("button", name="Edit").press("Enter")
    expect(panel.locator("[data-editing] textarea").first).to_be_focused()
    page.keyboard.type(", and this is thrown away")
    page.keyboard.press("Escape")
    expect(panel.locator("[data-editing]")).to_have_count(0)
    expect(card).not_to_contain_text("thrown away")
    expect(card.get_by_role("button", name="Edit")).to_be_focused()

    card.get_by_role("button", name="Forget", exact=True).press("Enter")
    expect(panel.locator(".forgotten").get_by_role("button", name="Undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(card).to_be_visible()
    expect(card.get_by_role("button", name="Edit")).to_be_focused()
