"""Switching to another chat without a page load: scripts, sidebar and panel stay."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.fakes.openai_server import Answer, Hold
from tests.functional.conftest import ScriptedHub, finished, send, sign_up


def row(page: Page, title: str) -> Locator:
    return page.locator("#chat-list .chat-row > a", has_text=title)


def is_shown(page: Page, title: str) -> None:
    """Check that address, tab, heading and sidebar all show this chat and no other."""
    link = row(page, title)
    expect(page.locator("#chat-title")).to_have_text(title)
    expect(link).to_have_attribute("aria-current", "page")
    expect(page.locator("#chat-list [aria-current]")).to_have_count(1)
    expect(page).to_have_url(re.compile(f"{link.get_attribute('href')}$"))
    expect(page).to_have_title(re.compile(f"^{title} · "))
    expect(page.locator(".message--user")).to_have_count(1)
    expect(page.locator(".message--user")).to_contain_text(title)


@pytest.fixture
def two_chats(open_scripted_page: Callable[..., Page], request: pytest.FixtureRequest) -> Page:
    """Return the page of a user with two chats, showing the second; any later page load fails the test."""
    page = open_scripted_page()
    sign_up(page, f"switch_{abs(hash(request.node.name)) % 10**8}")
    for title in ("About boats", "About trains"):
        page.goto("/")
        finished(send(page, title))
        expect(row(page, title)).to_be_visible()
    page.reload()
    page.locator("#panel-filters").wait_for()
    page.evaluate("window.isTheSame = true")
    return page


def test_another_chat_is_shown_whole_and_back_and_forward_lead_between_them(two_chats: Page) -> None:
    page = two_chats
    pages = list[str]()
    page.on("request", lambda each: pages.append(each.url) if each.is_navigation_request() else None)
    row(page, "About boats").focus()
    page.keyboard.press("Enter")
    is_shown(page, "About boats")
    expect(row(page, "About boats")).to_be_focused()
    page.go_back()
    is_shown(page, "About trains")
    page.go_forward()
    is_shown(page, "About boats")
    page.keyboard.press("Control+Shift+O")
    expect(page.locator("[data-composer]")).to_be_focused()
    expect(page.locator(".message")).to_have_count(0)
    expect(page.locator("#chat-list [aria-current]")).to_have_count(0)
    page.go_back()
    is_shown(page, "About boats")
    assert page.evaluate("window.isTheSame")
    assert not pages
    page.reload()
    is_shown(page, "About boats")


def test_what_the_composer_and_the_keys_do_goes_with_the_chat(two_chats: Page) -> None:
    page = two_chats
    composer = page.locator("[data-composer]")
    composer.fill("unsent about trains")
    row(page, "About boats").click()
    is_shown(page, "About boats")
    expect(composer).to_have_value("")
    answer = send(page, "More about boats")
    finished(answer)
    expect(page.locator(".message--user")).to_have_count(2)
    row(page, "About trains").click()
    is_shown(page, "About trains")
    expect(composer).to_have_value("unsent about trains")
    panel = page.locator("#panel")
    expect(panel).to_be_visible()
    page.keyboard.press("Control+.")
    expect(panel).to_be_hidden()  # only once: twice would leave it open
    page.keyboard.press("Control+k")
    expect(page.locator("#palette")).to_be_visible()
    assert page.evaluate("window.isTheSame")


def test_an_answer_goes_on_where_it_was_asked_for_and_nowhere_else(
    two_chats: Page, scripted_hub: ScriptedHub
) -> None:
    page = two_chats
    scripted_hub.server.respond = lambda request: Answer("Half of it, ", Hold(), "and the rest.")
    send(page, "Tell me slowly")
    expect(page.locator("[data-live]")).to_contain_text("Half of it")
    row(page, "About boats").click()
    is_shown(page, "About boats")
    expect(page.locator("#composer")).not_to_have_attribute("data-streaming", re.compile("."))
    row(page, "About trains").click()
    expect(page.locator("[data-live]")).to_contain_text("Half of it")
    row(page, "About boats").click()
    is_shown(page, "About boats")
    scripted_hub.server.release()
    row(page, "About trains").click()
    expect(page.locator(".message--assistant").last).to_contain_text("Half of it, and the rest.")
    finished(page.locator(".message--assistant").last)
    assert page.evaluate("window.isTheSame")


def test_the_chat_pressed_last_is_shown_and_a_late_answer_to_the_first_is_not(two_chats: Page) -> None:
    page = two_chats
    boats, trains = (row(page, title).get_attribute("href") for title in ("About boats", "About trains"))
    page.evaluate(
        """([slow]) => {
            const own = window.fetch;
            window.fetch = async (url, options) => {
                if (String(url).includes(slow)) await new Promise((done) => setTimeout(done, 800));
                return own(url, options);
            };
        }""",
        [boats],
    )
    row(page, "About boats").click()
    row(page, "About trains").click()
    page.wait_for_timeout(1500)
    is_shown(page, "About trains")
    assert trains in page.url


def test_a_chat_that_is_gone_is_said_by_the_server_and_a_new_tab_is_the_browsers(two_chats: Page) -> None:
    page = two_chats
    with page.context.expect_page() as opened:
        row(page, "About boats").click(modifiers=["Control"])
    expect(opened.value.locator("#chat-title")).to_have_text("About boats")
    is_shown(page, "About trains")
    gone = page.locator(".chat-row", has_text="About boats")
    gone.evaluate("each => each.querySelector('a').href = '/chats/chat_gone/'")
    gone.locator("a").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("There is nothing here")
    assert not page.evaluate("window.isTheSame")
