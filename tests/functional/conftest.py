"""Browser tests: the application in headless Chromium, on real processes or on the tests' own server."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.fakes.openai_server import ScriptedOpenAI
from tests.stack import PASSWORD, Stack, prepared_in, running_stack

if TYPE_CHECKING:
    from pytest_django.live_server_helper import LiveServer

    from workspaces.models import User

WINDOWED = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# The same browser without windows, notifications and menus takes a third less CPU time.
CHROMIUM = shutil.which("chromium-headless-shell") or WINDOWED
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # The browser's own menus are pages too: a dozen of them loaded beside each page.
    "--disable-features=PreloadTopChromeWebUI,WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup",
]
SLOW = 60_000  # milliseconds that an answer of the local model may take
# Each client has its own address, as through a proxy: from one address twenty a minute may sign up.
BEHIND_A_PROXY = {"MEMORYHUB_TRUSTED_PROXIES": "1"}
ADDRESSES = (f"10.{number >> 8}.{number & 255}.7" for number in count())
WIDE = 1440 if os.environ.get("SCREENSHOTS") else 1280
SIZES = {"desktop": (WIDE, 900), "phone": (390, 844)}


class Open(Protocol):
    def __call__(self, person: User | None, *, by_touch: bool = False) -> Page: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason="no Chromium found: apt-get install chromium"))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def open_page_with_notifications(
    browser: Browser, scripted_hub: ScriptedHub
) -> Iterator[Callable[..., Page]]:
    """``open_scripted_page`` in a browser that shows notifications, which the shell does not."""
    if WINDOWED is None:
        pytest.skip("the shell of Chromium shows no notifications: apt-get install chromium")
    windowed = browser.browser_type.launch(executable_path=WINDOWED, args=QUIET)
    with _pages(windowed, scripted_hub.address) as open_at:
        yield open_at
    windowed.close()
    scripted_hub.server.unscript()


@pytest.fixture(scope="module")
def database_beside_the_browser() -> Iterator[None]:
    """Allow database access in this thread: the browser's library runs an event loop in it, which Django
    would refuse.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        yield


@dataclass(frozen=True)
class ScriptedHub:
    """An installation of real processes with a scripted model."""

    server: ScriptedOpenAI
    address: str
    stack: Stack


@pytest.fixture(scope="package")
def scripted_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedHub]:
    """A web process, a worker and a scripted model with tools and extraction, which the small local one lacks."""
    server = ScriptedOpenAI().start()
    model = {
        "MEMORYHUB_LLM_BASE_URL": server.base_url,
        "MEMORYHUB_LLM_API_KEY": server.api_key,
        "MEMORYHUB_LLM_MODEL": server.model,
        "DJANGO_SETTINGS_MODULE": "tests.quick_settings",  # each password takes a quarter of a second otherwise
        "MEMORYHUB_PEOPLE_MAY_CONNECT": "on",
        "MEMORYHUB_PEOPLE_MAY_CONNECT_INTERNAL": "on",
    }
    try:
        with running_stack(tmp_path_factory.mktemp("scripted-hub"), **model, **BEHIND_A_PROXY) as stack:
            prepared_in(stack.folder)
            stack.worker()
            yield ScriptedHub(server, stack.web().url, stack)
    finally:
        server.stop()


@pytest.fixture
def open_scripted_page(browser: Browser, scripted_hub: ScriptedHub) -> Iterator[Callable[..., Page]]:
    """Open pages of new visitors. Errors in the console or of the content policy fail the test; the script is reset."""
    with _pages(browser, scripted_hub.address) as open_at:
        yield open_at
    scripted_hub.server.unscript()


@contextmanager
def _pages(browser: Browser, address: str) -> Iterator[Callable[..., Page]]:
    complaints: list[str] = []
    contexts = []

    def open_at(size: str = "desktop", scheme: str = "light", **lived: str) -> Page:
        width, height = SIZES[size]
        context = browser.new_context(
            base_url=address,
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            has_touch=size == "phone",
            extra_http_headers={"X-Forwarded-For": next(ADDRESSES)},
            **lived,  # for example its time zone
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield open_at
    for context in contexts:
        context.close()
    # The browser reports refused requests, and htmx reports them again.
    known = r"status of (4\d\d|503)|Error Code (403|429) from"
    assert [complaint for complaint in complaints if not re.search(known, complaint)] == []


@pytest.fixture
def open_as(browser: Browser, live_server: LiveServer) -> Iterator[Open]:
    """Open pages of re-authenticated users, without the event stream."""
    from django.test import Client  # not above: benchmarks without Django use this file

    from tests.api import type_password_again

    contexts, complaints = [], []

    def open_page(person: User | None, *, by_touch: bool = False) -> Page:
        context = browser.new_context(base_url=live_server.url, reduced_motion="reduce", has_touch=by_touch)
        contexts.append(context)
        if person is not None:
            client = Client()
            client.force_login(person)
            type_password_again(client)
            cookie = client.cookies["sessionid"].value
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
        # Not by a route, which would disable the browser's cache.
        context.add_init_script("window.EventSource = EventTarget")
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if "Content Security" in m.text else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def sign_up(page: Page, username: str) -> None:
    """Create an account by the form's own request, and open the first page. Typed: test_walked_by_keys."""
    _post(page, "/accounts/signup/", username=username, password1=PASSWORD, password2=PASSWORD)


def sign_in(page: Page, username: str) -> None:
    _post(page, "/accounts/login/", login=username, password=PASSWORD)


def _post(page: Page, address: str, **form: str) -> None:
    page.request.get(address)
    token = next(each["value"] for each in page.context.cookies() if each["name"] == "csrftoken")
    done = page.request.post(address, form=form | {"csrfmiddlewaretoken": token}, max_redirects=0)
    assert done.status == 302, done.text()
    page.goto("/")


def open_more(page: Page) -> None:
    """Open the menu beside the message, with mode and assistant."""
    if not page.locator(".composer__more[open]").count():
        page.locator(".composer__more > summary").click()  # which takes the focus, as it does for a person


def finished(answer: Locator, milliseconds: int = SLOW) -> None:
    """Wait until the answer is complete. The model has one or two cores at best."""
    expect(answer).not_to_have_attribute("aria-busy", "true", timeout=milliseconds)
    expect(answer.locator(".prose")).not_to_be_empty()


def send(page: Page, text: str) -> Locator:
    """Send a message. Return the answer's list item, which is still being written."""
    before = page.locator(".message--assistant").count()
    page.get_by_role("textbox", name="Message", exact=True).fill(text)
    page.keyboard.press("Enter")
    answer = page.locator(".message--assistant").nth(before)
    expect(answer).to_be_visible()
    return answer


def open_panel(page: Page) -> Locator:
    panel = page.locator("#panel")
    if not panel.is_visible():
        page.get_by_role("button", name="Memory panel").click()
    expect(panel).to_be_visible()
    return panel


def close_panel(page: Page) -> None:
    if page.viewport_size and page.viewport_size["width"] < 1100:
        page.keyboard.press("Escape")
        expect(page.locator("#panel")).not_to_be_visible()


def shoot(page: Page, name: str) -> None:
    """Save a screenshot in the folder SCREENSHOTS, if it is set."""
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{folder}/{name}.png", caret="initial")  # hiding it would set styles
