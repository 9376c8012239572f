"""The first two minutes on a fresh installation without settings or documentation."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.fakes.ollama import CHAT, EMBEDDER, Ollama
from tests.fakes.openai_server import Answer, Failure, Received, ScriptedOpenAI
from tests.functional.conftest import LOOKS, SIZES, finished, shoot, sign_up
from tests.functional.keys import press, write
from tests.functional.test_accessibility import faults
from tests.functional.test_story import send
from tests.stack import PASSWORD, Stack, Web, running_stack
from workspaces.actions.connections import SERVERS


@pytest.fixture
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, Web]]:
    """An installation as `make run` starts it, without its small model, settings or users."""
    with running_stack(tmp_path_factory.mktemp("fresh-hub")) as stack:
        stack.worker()
        yield stack, stack.web()


@pytest.fixture
def ollama() -> Iterator[tuple[str, Ollama]]:
    """A fake Ollama server at one of the usual ports, with its maker's name."""
    for name, port in SERVERS.values():
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                continue
        server = Ollama()
        server.start(port)
        server.respond = _reply
        yield name, server
        server.stop()
        return
    pytest.skip("models run at all usual places of this machine")


def _reply(request: Received) -> Answer:
    """Reply like a model that writes JSON on request, extracts nothing, and calls no tool."""
    asked = str(request.messages[0]["content"])
    if asked.startswith("Reply with a JSON"):
        return Answer('{"fact": "Moved to Lisbon."}')
    return Answer("[]" if asked.startswith("You read") else "At nine, I think.")


class Look:
    """Takes a screenshot of a page, measures it, and checks it for faults at each step."""

    def __init__(self, page: Page, name: str) -> None:
        self.page, self.name, self.faults = page, name, list[str]()

    def __call__(self, step: str) -> None:
        self.faults += faults(self.page)
        shoot(self.page, f"first-{step}-{self.name}")
        assert self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{step} is too wide"


@pytest.fixture
def open_fresh(browser: Browser, hub: tuple[Stack, Web]) -> Iterator[Callable[..., Page]]:
    contexts, complaints = [], list[str]()

    def open_at(size: str, scheme: Any) -> Page:
        width, height = SIZES[size]
        context = browser.new_context(
            base_url=f"http://localhost:{hub[1].port}",
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda m: complaints.append(m.text) if "Content Security" in m.text else None)
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert complaints == []


@LOOKS
def test_a_model_of_this_machine_answers_after_signing_up_and_two_presses(
    open_fresh: Callable[..., Page], ollama: tuple[str, Ollama], size: str, scheme: str
) -> None:
    name, _server = ollama
    page = open_fresh(size, scheme)
    look = Look(page, f"{size}-{scheme}")
    page.goto("/")
    look("sign-in")
    sign_up(page, "ada")
    expect(page.get_by_text("You're the administrator")).to_be_visible()
    look("welcome")
    page.get_by_role("button", name="Yes, remember").click()
    expect(page.locator("#consent")).to_have_count(0)
    expect(page.get_by_text("You're the administrator")).to_be_visible()
    look("consented")
    page.get_by_role("button", name="Connect a model").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    look("found")
    page.get_by_role("button", name=f"Connect {EMBEDDER}").click()
    expect(page.get_by_text(f"“{EMBEDDER}” does not answer.")).to_be_visible()
    look("embedder")
    page.get_by_role("button", name=f"Connect {CHAT}").click()
    expect(page.locator("#toasts")).to_contain_text("is connected and answers in “Personal” now")
    expect(page.locator("[data-prompt]")).to_have_count(3)
    look("connected")
    answer = send(page, "When does the ferry leave?")
    finished(answer)
    expect(answer).to_contain_text("At nine, I think.")
    expect(page).to_have_title("When does the ferry leave? · Personal · MemoryHub")
    look("answered")
    assert look.faults == []

    second = open_fresh(size, scheme)
    sign_up(second, "bea")  # another user of the installation, no administrator
    expect(second.get_by_text("You're the administrator")).to_have_count(0)
    second.get_by_role("button", name="Not now").click()
    expect(second.locator("#consent")).to_have_count(0)
    look_beside = Look(second, f"{size}-{scheme}")
    look_beside("second")
    second.get_by_role("button", name=f"Use “{CHAT}").click()
    expect(second.locator(".model-choice__name")).to_contain_text(CHAT)
    second.goto("/connections/")
    expect(second.get_by_text("Ask one of them if you need another")).to_be_visible()
    expect(second.get_by_role("button", name="Connect")).to_have_count(0)
    look_beside("nothing-to-connect")
    assert look_beside.faults == []


@LOOKS
def test_a_model_elsewhere_is_connected_by_keys_alone(
    open_fresh: Callable[..., Page], size: str, scheme: str
) -> None:
    server = ScriptedOpenAI().start()
    unknown = Failure(404, "There is no such model.", code="model_not_found")
    server.respond = lambda request: _reply(request) if request.body["model"] == server.model else unknown
    page = open_fresh(size, scheme)
    look = Look(page, f"{size}-{scheme}")
    try:
        page.goto("/accounts/signup/")
        write(page, "Username", "ada")
        write(page, "Password", PASSWORD)
        write(page, "Password (again)", PASSWORD)
        page.keyboard.press("Enter")
        expect(page.get_by_text("You're the administrator")).to_be_visible()
        page.wait_for_load_state()
        press(page, "Not now")
        expect(page.locator("#consent")).to_have_count(0)
        page.goto("/connections/")
        look("form")
        press(page, "Other")
        expect(page.locator("#preset-other")).to_have_attribute("aria-current", "true")
        write(page, "Address", server.base_url)
        write(page, "Key", "sk-wrong")
        press(page, "Show its models")
        expect(page.get_by_text("No list of models came from there")).to_be_visible()
        look("form-refused")
        page.goto("/connections/?preset=other")
        write(page, "Address", server.base_url)
        write(page, "Key", server.api_key)
        press(page, "Show its models")
        expect(page.locator("#connect-report")).to_contain_text("in the field now")
        expect(page.locator("#connect-models")).to_be_focused()
        expect(page.locator("#offered-models option")).to_have_attribute("value", server.model)
        write(page, "Model", "no-such-model")
        press(page, "Connect")
        expect(page.locator("#connect-report")).to_contain_text("does not answer")
        expect(page.get_by_role("button", name="Save anyway")).to_be_visible()
        look("form-failed")
        write(page, "Model", server.model)
        press(page, "Test")
        expect(page.locator("#connect-report")).to_contain_text("It did not call the tool.")
        look("form-tested")
        press(page, "Connect")  # the typed key is still in its field
        expect(page.locator("#toasts")).to_contain_text("is connected and answers in “Personal” now")
        finished(send(page, "When does the ferry leave?"))
        assert look.faults == []
        page.goto("/connections/")
        expect(page.get_by_role("link", name=server.model)).to_be_visible()
        look("kept")
    finally:
        server.stop()
