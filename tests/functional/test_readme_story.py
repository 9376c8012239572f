"""README's "Two minutes" word for word, on a fresh installation at 1280x800: the small model, and no model.

With Ollama: test_first_minutes.
With the larger model, too, where its file is (LARGE_MODEL=file, or as manage.py fetch_model leaves it).
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.fakes.local_model import NEEDS_LARGE_MODEL, running_large_model, running_local_model
from tests.fakes.openai_server import Answer, Received
from tests.functional.conftest import SLOW, finished, send, shoot, sign_up
from tests.stack import ROOT, running_stack

pytestmark = pytest.mark.local_model
_STEPS = (ROOT / "README.md").read_text().partition("## Two minutes")[2].partition("\n## ")[0]
SAID, ASKED = re.findall(r'"([^"]+)"', _STEPS)
STATEMENTS = ("My project deadline is March 15", "I am vegetarian")
EXAMPLES = ("What do you remember about my project deadline?", "What do you know about me?")


class ReadmeSteps:
    """The README's steps on the page of a new installation."""

    def __init__(self, page: Page, name: str, *, patience: int = SLOW) -> None:
        self.page, self.name, self.patience = page, name, patience

    def begin(self) -> None:
        sign_up(self.page, "ada")
        expect(self.page.get_by_text("You're the administrator")).to_be_visible()
        shoot(self.page, f"readme-{self.name}-1-first")

    def connect_is_in_sight(self) -> None:
        """Check that the button is on the first screen, without scrolling or opening anything."""
        connect = self.page.get_by_role("button", name="Connect a model")
        expect(connect).to_be_visible()
        box = connect.bounding_box()
        assert box and box["y"] + box["height"] < 800
        top = "([x, y]) => document.elementFromPoint(x, y).textContent.trim()"
        middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        assert self.page.evaluate(top, middle) == "Connect a model"

    def connect_is_in_the_menu(self) -> None:
        """Check that connecting is one click away, and not advertised, if the model answers well."""
        expect(self.page.get_by_text("is only for trying things out")).to_have_count(0)
        self.page.locator(".model-choice > summary").click()
        expect(self.page.get_by_role("link", name="Connect a model")).to_be_visible()
        self.page.keyboard.press("Escape")

    def say_yes(self) -> None:
        self.page.get_by_role("button", name="Yes, remember").click()
        expect(self.page.locator("#consent")).to_have_count(0)

    def say_it(self, *, answered: bool) -> None:
        answer = send(self.page, SAID)
        if answered:
            finished(answer, self.patience)
        else:
            expect(answer).to_contain_text("An administrator can connect one under Models.", timeout=SLOW)
            expect(answer).not_to_contain_text("Retried")

    def two_memories_appear(self) -> None:
        panel = self.page.locator("#panel")
        for statement in STATEMENTS:
            card = panel.locator("[data-memory]", has_text=re.compile(rf"^\s*{statement}"))
            expect(card).to_be_visible(timeout=SLOW)
        expect(self.page.locator("#memory-count")).to_contain_text("2")
        shoot(self.page, f"readme-{self.name}-2-remembered")

    def examples_are_offered(self, questions: int) -> None:
        """Check the three suggestions of a new chat, the first ones made from memories."""
        self.page.goto("/")
        expect(self.page.locator(".prompt")).to_have_count(3)
        examples = self.page.locator("[data-prompt]")
        expect(examples).to_have_count(questions)
        for question in EXAMPLES[:questions]:
            expect(examples.filter(has_text=question)).to_have_count(1)
        shoot(self.page, f"readme-{self.name}-3-examples")

    def ask(self) -> None:
        answer = send(self.page, ASKED)
        finished(answer, self.patience)
        expect(answer.locator(".prose")).to_contain_text("March 15")
        used = answer.locator("details.receipt")
        expect(used).to_contain_text("Used 1 memory")
        used.locator("summary").click()
        item = used.locator(".receipt__item", has_text="March 15").first
        expect(item).to_be_visible()
        item.locator("summary").click()
        for action in ("Edit", "Forget", "Not relevant"):
            expect(item.get_by_role("button", name=action, exact=True)).to_be_visible()
        shoot(self.page, f"readme-{self.name}-4-receipt")

    def forget_and_undo(self) -> None:
        panel = self.page.locator("#panel")
        card = panel.locator("[data-memory]", has_text="March 15").first
        card.hover()
        card.get_by_role("button", name="Forget").click()
        expect(self.page.locator("#memory-count")).to_contain_text("1")
        panel.locator(".forgotten").get_by_role("button", name="Undo").click()
        expect(panel.locator("[data-memory]", has_text="March 15")).to_be_visible()
        expect(self.page.locator("#memory-count")).to_contain_text("2")


def as_llama_answers(request: Received) -> Answer:
    """Answer like a model that extracts JSON on request, and answers from the memories in its prompt."""
    asked = str(request.messages[0]["content"])
    if asked.startswith("Reply with a JSON"):
        return Answer('{"fact": "Moved to Lisbon."}')
    if asked.startswith("You read"):
        facts = [{"text": each, "kind": "fact", "importance": 0.7} for each in STATEMENTS]
        return Answer(json.dumps({"memories": facts}))
    given = "\n".join(str(message["content"]) for message in request.messages)
    if request.last_user_text == ASKED and STATEMENTS[0] in given.replace(SAID, ""):
        return Answer("Your deadline is ", "March 15.")
    return Answer("Noted.")


@pytest.fixture
def install(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., tuple[Path, Page]]]:
    """Create fresh installations, each with the page of its first visitor."""
    with ExitStack() as stack:

        def make(**env: str) -> tuple[Path, Page]:
            hub = stack.enter_context(running_stack(tmp_path_factory.mktemp("fresh"), **env))
            hub.worker()
            address = f"http://localhost:{hub.web().port}"
            context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 800})
            stack.callback(context.close)
            return hub.folder, context.new_page()

        yield make


def test_with_the_small_model(install: Callable[..., tuple[Path, Page]]) -> None:
    folder, page = install()
    with running_local_model(folder):
        told = ReadmeSteps(page, "small")
        told.begin()
        told.connect_is_in_sight()
        told.say_yes()
        told.say_it(answered=True)
        told.two_memories_appear()
        told.examples_are_offered(2)
        told.ask()
        told.forget_and_undo()


@NEEDS_LARGE_MODEL
def test_with_the_larger_model(install: Callable[..., tuple[Path, Page]]) -> None:
    folder, page = install()
    with running_large_model(folder):
        told = ReadmeSteps(page, "large", patience=4 * SLOW)
        told.begin()
        told.connect_is_in_the_menu()
        told.say_yes()
        told.say_it(answered=True)
        told.two_memories_appear()
        told.examples_are_offered(3)
        told.ask()
        told.forget_and_undo()


def test_with_no_model(install: Callable[..., tuple[Path, Page]]) -> None:
    """Everything else works without a model, and the page says how to connect one."""
    _folder, page = install(MEMORYHUB_BUILTIN_MODEL="off")
    told = ReadmeSteps(page, "none")
    told.begin()
    expect(page.get_by_text("No model is connected, so messages get no answer.")).to_be_visible()
    told.connect_is_in_sight()
    told.say_yes()
    told.say_it(answered=False)
    panel = page.locator("#panel")
    panel.get_by_role("button", name="Add", exact=True).click()
    for statement in STATEMENTS:  # nothing is extracted without an answer, so they are added by hand
        panel.locator(".memory__form textarea").first.fill(statement)
        panel.get_by_role("button", name="Remember", exact=True).click()
        expect(panel.locator("[data-memory]", has_text=statement)).to_be_visible()
    told.two_memories_appear()
    told.examples_are_offered(0)
    panel.locator("#panel-search").fill("when must it be ready?")
    expect(panel.locator("[data-memory]").first).to_contain_text("March 15")
    panel.locator("#panel-search").fill("")
    expect(panel.locator("[data-memory]")).to_have_count(2)
    told.forget_and_undo()
