"""Measure the bytes and the times of a page, in a browser with an empty cache and in one that has visited before.

    python -m tests.bench.bench_page [--times 9]

Starts a web process with the demonstration's chats and memories, and opens a new chat and one of those in headless
Chromium. Bytes are those on the wire, fonts left out; times are from the navigation's beginning, medians: until the
server's answer begins, until the first content is painted, and until the memory panel has its memories, which are
visible with the first content at the earliest. The shift is the sum of all layout shifts. A page with one sentence and
no query gives the machine's floor: the best first content is printed as a multiple of it.

Then another chat is opened over and over: as a page of its own, and by a click in the sidebar, in turn. The time is
from the click until the conversation and the panel are painted.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Locator, Page, sync_playwright

from tests.functional.conftest import BEHIND_A_PROXY, CHROMIUM, QUIET, sign_in
from tests.stack import PASSWORD, running_stack

WATCHED = """() => {
  window.seen = { shift: 0, panel: 0 };
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.seen.shift += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
  new MutationObserver(() => {
    if (!window.seen.panel && document.getElementById("panel-filters")) window.seen.panel = performance.now();
  }).observe(document, { childList: true, subtree: true });
}"""
SEEN = """() => ({
  ...window.seen,
  answer: performance.getEntriesByType("navigation")[0].responseStart,
  first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0,
})"""


DRAWN = """(link) => location.pathname === link && link.includes(document.getElementById("conversation")?.dataset.chat)
  && document.getElementById("panel-filters") && document.getElementById("messages")"""


@dataclass(frozen=True)
class Look:
    """The measures of one page load; times in milliseconds."""

    requests: int
    size: int
    answer: float
    first: float
    panel: float
    shift: float


EMPTIEST = "/offline/"


def look(context: BrowserContext, address: str) -> Look:
    """Open the page and wait until its panel is loaded, if it has one, and no request is pending."""
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    kinds: dict[str, str] = {}
    sizes: dict[str, float] = {}

    def answered(event: dict[str, Any]) -> None:
        if not event["response"].get("fromDiskCache"):
            kinds[event["requestId"]] = event["type"]

    session.on("Network.responseReceived", answered)
    session.on("Network.loadingFinished", lambda e: sizes.update({e["requestId"]: e["encodedDataLength"]}))
    page.add_init_script(f"({WATCHED})()")
    page.goto(address)
    if address != EMPTIEST:
        page.locator("#panel-filters").wait_for()
    page.wait_for_timeout(500)  # for what loads last: the icon, the event stream
    seen: dict[str, float] = page.evaluate(SEEN)
    if address != EMPTIEST:
        page.evaluate(
            "() => navigator.serviceWorker.ready.then(() => true)"
        )  # that will handle the next visit
    page.close()
    weight = sum(sizes.get(each, 0) for each, kind in kinds.items() if kind != "Font")
    # Nothing is visible before it is painted
    panel = max(seen["panel"], seen["first"]) if seen["panel"] else 0
    return Look(len(kinds), int(weight), seen["answer"], seen["first"], panel, seen["shift"])


def switch(page: Page, row: Locator, *, as_page: bool) -> tuple[float, float]:
    """Open a chat from the sidebar. Return the milliseconds until it is on the screen, and the bytes received."""
    link = row.get_attribute("href") or ""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    sizes: list[float] = []
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    began = time.perf_counter()
    if as_page:
        page.evaluate("link => { location.href = link }", link)
    else:
        row.click(no_wait_after=True)
    page.wait_for_function(DRAWN, arg=link, polling="raf")
    took = (time.perf_counter() - began) * 1000
    page.wait_for_timeout(500)
    session.detach()
    return took, sum(sizes)


@contextmanager
def newcomer(browser: Browser, signed_in: BrowserContext, address: str) -> Iterator[BrowserContext]:
    """Yield a browser of the same signed-in user with an empty cache."""
    size: Any = {"width": 1440, "height": 900}
    context = browser.new_context(base_url=address, storage_state=signed_in.storage_state(), viewport=size)
    yield context
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=9)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder), **BEHIND_A_PROXY) as stack:
        stack.manage("seed_demo", "--username", "demo", "--password", PASSWORD)
        address = stack.web().url
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
            person = browser.new_context(base_url=address)
            page = person.new_page()
            sign_in(page, "demo")
            chat = page.locator("#chat-list .chat-row > a").first.get_attribute("href") or ""
            pages = {"a new chat": page.url, "a chat": chat, "a sentence": EMPTIEST}
            looks: dict[str, tuple[list[Look], list[Look]]] = {name: ([], []) for name in pages}
            for _ in range(times):  # in turn, so that other load on the machine affects all alike
                for name, path in pages.items():
                    with newcomer(browser, person, address) as context:
                        for each in looks[name]:  # first visit, later visit
                            each.append(look(context, path))
            # Without a service worker, whose bytes are not reported.
            page = browser.new_context(
                base_url=address, storage_state=person.storage_state(), service_workers="block"
            ).new_page()
            page.goto(chat)
            rows = page.locator("#chat-list .chat-row > a")
            switches: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
            for _ in range(2 * times):
                for taken, as_page in zip(switches, (True, False), strict=True):
                    taken.append(switch(page, rows.nth(1), as_page=as_page))
                    switch(page, rows.first, as_page=False)
            browser.close()
    print(f"{'':26} requests  kB    answer  first  panel  shift   best first")
    for name, both in looks.items():
        for when, seen, least in zip(
            ("never been here", "been here"), both, looks["a sentence"], strict=True
        ):
            _say(f"{name}, {when}", seen, min(each.first for each in least))
    for name, taken in zip(("another chat as a page", "another chat by a press"), switches, strict=True):
        took, sizes = zip(*taken, strict=True)
        print(
            f"{name:26} {statistics.median(took):5.0f} ms, best {min(took):.0f}, "
            f"{statistics.median(sizes) / 1000:.1f} kB"
        )


def _say(name: str, looks: list[Look], least: float) -> None:
    answer, first, panel = (
        statistics.median(getattr(each, of) for each in looks) for of in ("answer", "first", "panel")
    )
    requests, size = (max(getattr(each, of) for each in looks) for of in ("requests", "size"))
    shift = max(each.shift for each in looks)
    best = min(each.first for each in looks)
    print(
        f"{name:26} {requests:8}  {size / 1000:5.1f}  {answer:5.0f}  {first:5.0f}  {panel:5.0f}  {shift:.4f}  "
        f"{best:5.0f} ({best / least:.2f})"
    )


if __name__ == "__main__":
    main()
