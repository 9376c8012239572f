"""The first two minutes on a fresh installation without settings or documentation."""

import socket
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.fakes.ollama import CHAT, EMBEDDER, Ollama
from tests.functional.conftest import SIZES, sign_up
from tests.functional.looks import look
from tests.functional.test_readme_story import ASKED, ReadmeSteps, as_llama_answers
from tests.stack import Stack, Web, running_stack
from workspaces.actions.model_connections import SERVERS


@pytest.fixture
def fresh_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, Web]]:
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
        yield name, server
        server.stop()
        return
    pytest.skip("models run at all usual places of this machine")


@pytest.fixture
def open_fresh(browser: Browser, fresh_hub: tuple[Stack, Web]) -> Iterator[Callable[..., Page]]:
    contexts, complaints = [], list[str]()

    def open_at() -> Page:
        address, wide = f"http://localhost:{fresh_hub[1].port}", SIZES["desktop"]
        context = browser.new_context(base_url=address, viewport={"width": wide[0], "height": wide[1]})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda m: complaints.append(m.text) if "Content Security" in m.text else None)
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert complaints == []


def test_a_model_of_this_machine_answers_after_signing_up_and_two_presses(
    open_fresh: Callable[..., Page], ollama: tuple[str, Ollama]
) -> None:
    name, server = ollama
    server.respond = as_llama_answers
    page = open_fresh()
    page.goto("/")
    sign_up(page, "ada")
    expect(page.get_by_text("You're the administrator")).to_be_visible()
    page.get_by_role("button", name="Yes, remember").click()
    expect(page.locator("#consent")).to_have_count(0)
    expect(page.get_by_text("You're the administrator")).to_be_visible()
    page.get_by_role("button", name="Connect a model").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    look(page, "first-found")
    page.get_by_role("button", name=f"Connect {EMBEDDER}").click()
    expect(page.get_by_text(f"“{EMBEDDER}” does not answer.")).to_be_visible()
    page.get_by_role("button", name=f"Connect {CHAT}").click()
    expect(page.locator("#toasts")).to_contain_text("is connected and answers in “Personal” now")
    expect(page.locator("[data-prompt]")).to_have_count(3)
    story = ReadmeSteps(page, "ollama")
    story.say_it(answered=True)
    story.two_memories_appear()
    story.examples_are_offered(3)
    story.ask()
    expect(page).to_have_title(f"{ASKED} · Personal · MemoryHub")
    story.forget_and_undo()

    second = open_fresh()
    sign_up(second, "bea")  # another user of the installation, no administrator
    expect(second.get_by_text("You're the administrator")).to_have_count(0)
    second.get_by_role("button", name="Not now").click()
    expect(second.locator("#consent")).to_have_count(0)
    second.get_by_role("button", name=f"Use “{CHAT}").click()
    expect(second.locator(".model-choice__name")).to_contain_text(CHAT)
    second.goto("/connections/")
    expect(second.get_by_text("Ask one of them if you need another")).to_be_visible()
    expect(second.get_by_role("button", name="Connect")).to_have_count(0)
