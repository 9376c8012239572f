"""What a page weighs and how soon it is there, in a browser that has never been here, and in one that has.

    python -m tests.bench.bench_page [--times 9]

Starts a web process with the demonstration's chats and memories, and opens a new chat and one of those in headless
Chromium. Bytes are those on the wire, fonts left out; times are from the navigation's beginning, medians: until the
server's answer begins, until the first content is painted, and until the memory panel has its memories, which are seen
with the first content at the earliest. The shift is the sum of all layout shifts. How soon a page is there that has a
sentence on it and asks no database is what the machine takes for any page: the best of the first content is said as so
many times the best of that.

Then another chat is opened over and over: as a page of its own, and by a press in the sidebar, by turns. The time is
from the press until the conversation and the panel are there and were drawn.
"""

from __future__ import annotations

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
    """Times in milliseconds."""

    requests: int
    size: int
    answer: float
    first: float
    panel: float
    shift: float


EMPTIEST = "/offline/"


def look(context: BrowserContext, address: str) -> Look:
    """Open the page as it is opened, and wait until its panel is there, if it has one, and nothing is on its way."""
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
    page.wait_for_timeout(500)  # what is asked for when all else is there: the icon, the stream of events
    seen: dict[str, float] = page.evaluate(SEEN)
    if address != EMPTIEST:
        page.evaluate(
            "() => navigator.serviceWorker.ready.then(() => true)"
        )  # the next visit goes through it
    page.close()
    weight = sum(sizes.get(each, 0) for each, kind in kinds.items() if kind != "Font")
    panel = max(seen["panel"], seen["first"]) if seen["panel"] else 0  # nothing is seen before it is painted
    return Look(len(kinds), int(weight), seen["answer"], seen["first"], panel, seen["shift"])


def switch(page: Page, row: Locator, *, as_page: bool) -> tuple[float, float]:
    """Milliseconds until the chat of a row in the sidebar is on the screen, and the bytes that came for it."""
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
    """A browser of the same person with nothing kept but who it is."""
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
            for _ in range(times):  # by turns: what else the machine does meets all of them
                for name, path in pages.items():
                    with newcomer(browser, person, address) as context:
                        for each in looks[name]:  # never been here, and been here
                            each.append(look(context, path))
            # Without a service worker, whose bytes are not told.
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
