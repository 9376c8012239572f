"""The bytes of a page in a browser with an empty cache. Times: tests/bench/bench_page.py."""

from collections.abc import Callable

from playwright.sync_api import Browser, Page, Route, expect

from tests.bench.bench_page import look, newcomer
from tests.functional.conftest import ScriptedHub, finished, send, sign_up

MOST_BYTES, MOST_REQUESTS, MOST_SHIFT = 150_000, 15, 0.01


def test_a_page_is_light_and_nothing_in_it_moves(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub, browser: Browser
) -> None:
    page = open_scripted_page()
    sign_up(page, "light")
    finished(send(page, "Write to me"))
    for address in (page.url, "/"):
        with newcomer(browser, page.context, scripted_hub.address) as context:
            seen = look(context, address)
        assert seen.requests <= MOST_REQUESTS, seen
        assert 20_000 < seen.size <= MOST_BYTES, seen
        assert seen.shift < MOST_SHIFT, seen


def test_the_memories_wait_for_no_script_but_the_first_and_are_asked_for_again_if_they_did_not_come(
    open_scripted_page: Callable[..., Page],
) -> None:
    page = open_scripted_page()
    sign_up(page, "early")
    panel, held, asked = page.locator("#panel"), list[Route](), list[Route]()
    page.route("**/htmx-*.js", lambda route: held.append(route))
    page.reload(wait_until="commit")
    expect(panel.locator("#panel-filters")).to_be_visible()
    assert held, "the script is there already"
    page.locator("#panel-search").fill("nothing like it")
    held[0].continue_()
    page.unroute("**/htmx-*.js")
    expect(panel).to_contain_text("Nothing matches")

    def fail_once(route: Route) -> None:
        asked.append(route)
        route.fulfill(status=503) if len(asked) == 1 else route.continue_()

    page.route("**/memories/", fail_once)
    page.reload()
    expect(panel.locator("#panel-filters")).to_be_visible()
    assert len(asked) == 2
