"""What people do most takes two clicks or keys at most; what has pages of its own is done by Tab and Enter alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Locator, Page, expect

from chat.models import Chat
from tests.conftest import Cast
from tests.factories import make_artifact, make_chat, make_memory, make_message
from tests.fakes.ollama import CHAT, Ollama
from tests.functional.conftest import Open
from tests.functional.keys import press, write
from workspaces.connections import local_servers
from workspaces.models import User

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("database_beside_the_browser"),
]
MOST_PRESSES = 2
WIDE: Any = {"width": 1440, "height": 900}
PHONE: Any = {"width": 390, "height": 844}


@dataclass
class Hand:
    """Counts what it clicks and presses. Typing the words of a search is no press."""

    page: Page
    presses: int = 0

    def click(self, what: Locator) -> None:
        self.presses += 1
        what.click()

    def press(self, key: str) -> None:
        self.presses += 1
        self.page.keyboard.press(key)


def remember(hand: Hand) -> None:
    message = hand.page.locator(".message--user")
    message.hover()
    hand.click(message.get_by_role("button", name="Remember this"))
    expect(message.locator(".remember-slot")).to_contain_text("Remembered")


def forget_and_undo(hand: Hand) -> None:
    panel = hand.page.locator("#panel")
    card = panel.locator("[data-memory]", has_text="The ferry leaves at nine")
    card.hover()
    hand.click(card.get_by_role("button", name="Forget", exact=True))
    hand.click(panel.locator(".forgotten").get_by_role("button", name="Undo"))
    expect(card.get_by_role("button", name="Edit")).to_be_visible()


def find_an_old_chat(hand: Hand) -> None:
    hand.press("Control+k")
    hand.page.keyboard.type("Zanz")
    expect(hand.page.get_by_role("dialog").get_by_role("link").first).to_have_text("Spices of Zanzibar")
    hand.press("Enter")
    expect(hand.page.get_by_role("heading", name="Spices of Zanzibar")).to_be_visible()


def make_it_private(hand: Hand) -> None:
    hand.click(hand.page.get_by_role("button", name="Make private"))
    expect(hand.page.locator("#readers")).to_contain_text("Only you")
    assert Chat.objects.get(title="Crossings").is_private


def connect_a_model(hand: Hand) -> None:
    hand.click(hand.page.get_by_role("button", name="Connect a model"))
    hand.click(hand.page.get_by_role("button", name=f"Connect {CHAT}"))
    expect(hand.page.locator("#toasts")).to_contain_text("is connected and answers")


def share(hand: Hand) -> None:
    hand.click(hand.page.locator("details.share > summary"))
    hand.click(hand.page.get_by_role("button", name="Create and copy link"))
    expect(hand.page.locator("#announce")).to_have_text("Copied")
    assert "/shared/" in hand.page.evaluate("navigator.clipboard.readText()")


def test_what_people_do_most_takes_two_presses(
    cast: Cast, open_as: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Crossings")
    make_message(chat, "I am vegetarian", author=cast.owner)
    make_message(chat, "Noted.", role="assistant")
    make_chat(cast.owner, cast.workspace, title="Spices of Zanzibar")
    make_memory("The ferry leaves at nine", cast.owner, cast.workspace)
    User.objects.filter(pk=cast.owner.pk).update(is_staff=True, is_superuser=True)  # as who signed up first
    server = Ollama()
    server.start()
    monkeypatch.setattr(local_servers, "SERVERS", {"ollama": ("Ollama", server.port)})
    page = open_as(cast.owner)
    page.set_viewport_size(WIDE)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    here, new = f"/chats/{chat.public_id}/", f"/workspaces/{cast.workspace.public_id}/"
    tasks: dict[Callable[[Hand], None], str] = {
        remember: here,
        forget_and_undo: here,
        find_an_old_chat: here,
        share: here,
        make_it_private: here,
        connect_a_model: new,
    }
    took = {}
    try:
        for task, address in tasks.items():
            page.goto(address)
            expect(page.locator("#panel-filters")).to_be_visible()
            hand = Hand(page)
            task(hand)
            took[task.__name__] = hand.presses
    finally:
        server.stop()
    print(took)
    assert max(took.values()) <= MOST_PRESSES, took


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["desktop", "phone"])
def test_documents_artifacts_settings_prompts_and_links_by_tab_and_enter_alone(
    cast: Cast, open_as: Open, size: Any
) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Crossings")
    make_message(chat, "When is the ferry?", author=cast.owner)
    make_message(chat, "At nine.", role="assistant")
    artifact = make_artifact(cast.owner, cast.workspace, "print('old')", title="Greeting")
    page = open_as(cast.owner)
    page.set_viewport_size(size)
    place = f"/workspaces/{cast.workspace.public_id}/"

    page.goto(f"{place}documents/")
    press(page, "Or paste a text")
    write(page, "Title", "Timetable")
    write(page, "Text", "The ferry leaves at nine.")
    press(page, "Add")
    expect(page.get_by_role("link", name="Timetable")).to_be_visible()
    press(page, "Timetable")
    expect(page.get_by_role("heading", level=1)).to_have_text("Timetable")

    page.goto(f"{place}artifacts/{artifact.public_id}/")
    press(page, "Edit")
    write(page, "Content", "print('new')")
    press(page, "Save as a new version")
    expect(page.locator(".artifact__text")).to_contain_text("print('new')")

    page.goto(f"{place}settings/")
    press(page, "Memory")
    press(page, "Review", "Space")
    expect(page.locator("#toasts")).to_contain_text("Saved.")

    page.goto(f"{place}prompts/")
    write(page, "Name", "Polite no")
    write(page, "Prompt", "Decline {{offer}}")
    press(page, "Save")
    expect(page.locator(".rows")).to_contain_text("Polite no")

    page.goto(f"/chats/{chat.public_id}/")
    press(page, "Share or export this chat")
    expect(page.get_by_role("button", name="Create and copy link")).to_be_visible()
    press(page, "Create and copy link")
    expect(page.get_by_label("The link")).to_be_visible()
    press(page, "Turn off link")
    expect(page.locator("#share-menu")).to_contain_text("The link is turned off.")
    reader = Client().get(f"/chats/{chat.public_id}/")
    assert reader.status_code == 302, "nobody reads it without signing in"
