"""Several tabs of one browser: one event stream for all of them, and each shows changes made in another."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, Request, Route, expect

from tests.functional.conftest import sign_up


def add_memory(page: Page, text: str) -> None:
    panel = page.locator("#panel")
    if not panel.locator("#memory-add").is_visible():
        panel.get_by_role("button", name="Add").click()
    panel.locator("#memory-add textarea").first.fill(text)
    panel.locator("#memory-add button[type=submit]").click()
    expect(panel.locator("[data-memory]", has_text=text)).to_be_visible()


def test_two_tabs_share_one_stream_and_the_second_takes_it_over(
    open_scripted_page: Callable[..., Page],
) -> None:
    first = open_scripted_page()
    with first.expect_request("**/events/"):
        sign_up(first, "two_tabs")
    streams: list[str] = []

    def note(request: Request) -> None:
        if request.url.endswith("/events/"):
            streams.append(request.url)

    first.context.on("request", note)
    with first.expect_request("**/events/"):
        first.goto("/")
    second = first.context.new_page()
    second.goto("/")
    add_memory(first, "The library closes at six")
    expect(second.locator("#memory-count")).to_contain_text("1")
    add_memory(second, "The ferry leaves at nine")
    expect(first.locator("#memory-count")).to_contain_text("2")
    assert len(streams) == 1

    with second.expect_request("**/events/"):
        first.close()
    third = second.context.new_page()
    third.goto("/")
    add_memory(third, "The museum is free on Mondays")
    expect(second.locator("#memory-count")).to_contain_text("3")
    assert len(streams) == 2


def test_a_change_while_the_count_is_being_fetched_is_counted_too(
    open_scripted_page: Callable[..., Page],
) -> None:
    page = open_scripted_page()
    sign_up(page, "counted")
    held: list[Route] = []
    page.route("**/memories/count/", lambda route: held.append(route))
    change = "document.body.dispatchEvent(new CustomEvent('memories:changed'))"
    with page.expect_request("**/memories/count/"):
        page.evaluate(change)
    page.evaluate(change)
    with page.expect_request("**/memories/count/", timeout=3000):
        held[0].fulfill(body=held[0].fetch().body())


def test_a_change_while_the_panel_is_on_its_way_is_shown_in_it(
    open_scripted_page: Callable[..., Page],
) -> None:
    page = open_scripted_page("phone")
    sign_up(page, "shown_late")
    held: list[Route] = []
    panel = re.compile(r"/memories/$")
    page.route(panel, lambda route: held.append(route))
    with page.expect_request(panel):
        page.get_by_role("button", name="Memory panel").click()
    page.evaluate("document.body.dispatchEvent(new CustomEvent('memories:changed'))")
    with page.expect_request(re.compile(r"part=list"), timeout=3000):
        held[0].continue_()
