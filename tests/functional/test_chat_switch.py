"""Switching to another chat without a page load: scripts, sidebar and panel stay."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.fakes.openai_server import Answer, Hold
from tests.functional.conftest import ScriptedHub, finished, send, sign_up


def row(page: Page, title: str) -> Locator:
    return page.locator("#chat-list .chat-row > a", has_text=title)


def is_shown(page: Page, title: str, questions: int = 1) -> None:
    """Check that address, tab, heading, sidebar and messages all show this chat and no other."""
    link = row(page, title)
    expect(page.locator("#chat-title")).to_have_text(title)
    expect(link).to_have_attribute("aria-current", "page")
    expect(page.locator("#chat-list [aria-current]")).to_have_count(1)
    expect(page).to_have_url(re.compile(f"{link.get_attribute('href')}$"))
    expect(page).to_have_title(re.compile(f"^{title} · "))
    expect(page.locator(".message--user")).to_have_count(questions)
    expect(page.locator(".message--user").first).to_contain_text(title)


# Withholds one address's response, which arrives even if the request is aborted, until the test calls ``letGo``.
LATE_RESPONSE = """(late) => {
  const own = window.fetch;
  window.fetch = async (url, options) => {
    if (!String(url).includes(late)) return own(url, options);
    const response = await own(url, { ...options, signal: undefined });
    await new Promise((done) => { window.letGo = done; });
    response.text = async () => {
      const html = await Response.prototype.text.call(response);
      setTimeout(() => { window.lateIsRead = true; });
      return html;
    };
    return response;
  };
}"""


@pytest.fixture
def two_chats(open_scripted_page: Callable[..., Page]) -> Page:
    """Return the page of a user with two chats, showing the second; any later page load fails the test."""
    page = open_scripted_page()
    sign_up(page, "switcher")
    for title in ("About boats", "About trains"):
        page.goto("/")
        finished(send(page, title))
        expect(row(page, title)).to_be_visible()
    page.reload()
    page.locator("#panel-filters").wait_for()
    page.evaluate("window.isTheSame = true")
    return page


def test_another_chat_is_shown_without_a_page_load(two_chats: Page, scripted_hub: ScriptedHub) -> None:
    page = two_chats
    back_and_forward(page)
    answer_continues_in_its_chat(page, scripted_hub)
    composer_and_keys_follow_the_chat(page)
    late_response_is_dropped(page)
    new_tab_and_missing_chat_are_loaded(page)


def back_and_forward(page: Page) -> None:
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
    page.evaluate("window.isTheSame = true")
    row(page, "About trains").click()
    is_shown(page, "About trains")


def composer_and_keys_follow_the_chat(page: Page) -> None:
    composer = page.locator("[data-composer]")
    composer.fill("unsent about trains")
    row(page, "About boats").click()
    is_shown(page, "About boats")
    expect(composer).to_have_value("")
    answer = send(page, "More about boats")
    finished(answer)
    expect(page.locator(".message--user")).to_have_count(2)
    row(page, "About trains").click()
    is_shown(page, "About trains", questions=2)
    expect(composer).to_have_value("unsent about trains")
    panel = page.locator("#panel")
    expect(panel).to_be_visible()
    page.keyboard.press("Control+.")
    expect(panel).to_be_hidden()  # only once: twice would leave it open
    page.keyboard.press("Control+k")
    expect(page.locator("#palette")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    assert page.evaluate("window.isTheSame")


def answer_continues_in_its_chat(page: Page, scripted_hub: ScriptedHub) -> None:
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
    scripted_hub.server.unscript()


def late_response_is_dropped(page: Page) -> None:
    page.evaluate(LATE_RESPONSE, row(page, "About boats").get_attribute("href"))
    row(page, "About boats").click()
    page.wait_for_function("() => window.letGo")
    row(page, "About trains").click()
    is_shown(page, "About trains", questions=2)
    page.evaluate("letGo()")
    page.wait_for_function("() => window.lateIsRead")
    is_shown(page, "About trains", questions=2)


def new_tab_and_missing_chat_are_loaded(page: Page) -> None:
    with page.context.expect_page() as opened:
        row(page, "About boats").click(modifiers=["Control"])
    expect(opened.value.locator("#chat-title")).to_have_text("About boats")
    is_shown(page, "About trains", questions=2)
    gone = page.locator(".chat-row", has_text="About boats")
    gone.evaluate("each => each.querySelector('a').href = '/chats/chat_gone/'")
    gone.locator("a").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("There is nothing here")
    assert not page.evaluate("window.isTheSame")
