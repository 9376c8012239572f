"""The most frequent actions take at most two clicks or keys; actions with their own page work by Tab and
Enter alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from chat.models import Chat
from tests.conftest import Cast
from tests.factories import make_agent, make_artifact, make_chat, make_memory, make_message
from tests.fakes.ollama import CHAT, Ollama
from tests.functional.conftest import Open
from tests.functional.keys import press, tab_to, write
from workspaces.actions import model_connections
from workspaces.models import User

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("database_beside_the_browser"),
]
MOST_PRESSES = 2
ONE_PRESS = {"delete_a_chat", "begin_with_an_assistant"}  # with a mouse; two with a finger
WIDE: Any = {"width": 1440, "height": 900}
PHONE: Any = {"width": 390, "height": 844}


@dataclass
class PressCounter:
    """Counts clicks, taps and key presses. Typing a search and scrolling do not count."""

    page: Page
    by_touch: bool
    presses: int = 0

    def click(self, what: Locator, within: Locator | None = None) -> None:
        self.presses += 1
        if within and not self.by_touch:
            within.hover()
        what.tap() if self.by_touch else what.click()

    def press(self, key: str) -> None:
        self.presses += 1
        self.page.keyboard.press(key)


def remember(hand: PressCounter) -> None:
    message = hand.page.locator(".message--user")
    hand.click(message.get_by_role("button", name="Remember this"), message)
    expect(message.locator(".remember-slot")).to_contain_text("Remembered")


def forget(hand: PressCounter) -> None:
    if hand.by_touch:
        hand.click(hand.page.get_by_role("button", name="Memory panel"))
    card = hand.page.locator("#panel [data-memory]", has_text="The ferry leaves at nine")
    hand.click(card.get_by_role("button", name="Forget", exact=True), card)
    expect(hand.page.locator("#panel .forgotten")).to_be_visible()


def take_it_back(hand: PressCounter) -> None:
    panel = hand.page.locator("#panel")
    hand.click(panel.locator(".forgotten").get_by_role("button", name="Undo"))
    expect(panel.locator("[data-memory]", has_text="The ferry leaves at nine")).to_be_visible()


def find_an_old_chat(hand: PressCounter) -> None:
    if hand.by_touch:  # rows beyond the list's first page load on scrolling
        hand.click(hand.page.get_by_role("button", name="Show the list of chats").first)
        old = hand.page.get_by_role("link", name="Spices of Zanzibar")
        hand.page.locator("#chat-list").evaluate("list => list.scrollTo(0, list.scrollHeight)")
        expect(old).to_have_count(1)
        hand.click(old)
    else:
        hand.press("Control+k")
        hand.page.keyboard.type("Zanz")
        hand.press("Enter")
    expect(hand.page.get_by_role("heading", name="Spices of Zanzibar")).to_be_visible()


def make_it_private(hand: PressCounter) -> None:
    hand.click(hand.page.get_by_role("button", name="Make private"))
    expect(hand.page.locator("#readers")).to_contain_text("Private, only you")
    assert Chat.objects.get(title="Crossings").is_private


def connect_a_model(hand: PressCounter) -> None:
    hand.click(hand.page.get_by_role("button", name="Connect a model"))
    hand.click(hand.page.get_by_role("button", name=f"Connect {CHAT}"))
    expect(hand.page.locator("#toasts")).to_contain_text("is connected and answers")


def share(hand: PressCounter) -> None:
    hand.click(hand.page.locator("details.share > summary"))
    hand.click(hand.page.get_by_role("button", name="Create and copy link"))
    expect(hand.page.locator("#announce")).to_have_text("Copied")
    assert "/shared/" in hand.page.evaluate("navigator.clipboard.readText()")


def delete_a_chat(hand: PressCounter) -> None:
    row = hand.page.locator(".chat-row", has_text="Harbour dues 3").first
    hand.click(row.get_by_role("button", name="Delete"), row)
    toast = hand.page.locator(".toast", has_text="Deleted")
    expect(toast.get_by_role("button", name="Undo")).to_be_visible()


def begin_with_an_assistant(hand: PressCounter) -> None:
    if hand.by_touch:
        hand.click(hand.page.get_by_role("button", name="Show the list of chats").first)
    hand.click(hand.page.locator("#sidebar").get_by_role("link", name="Chef"))
    expect(hand.page.locator("#welcome-title")).to_contain_text("Chef")


def invite(hand: PressCounter) -> None:
    hand.click(hand.page.locator("#workspace-switch > summary"))
    hand.click(hand.page.get_by_role("link", name="Invite people"))
    form = hand.page.locator(".member-form").first  # the other one creates links
    field = form.locator("input:not([type=hidden])").first
    expect(field).to_be_visible()
    field.fill("sam")
    hand.click(form.get_by_role("button", name="Invite"))
    expect(hand.page.get_by_text("Invited, has not accepted yet")).to_be_visible()


def test_a_person_is_invited_in_three_presses(cast: Cast, open_as: Open) -> None:
    page = open_as(cast.owner)
    page.set_viewport_size(WIDE)
    page.goto(f"/workspaces/{cast.workspace.public_id}/")
    hand = PressCounter(page, by_touch=False)
    invite(hand)
    print("invite", hand.presses)
    assert hand.presses == 3


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = Ollama()
    server.start()
    monkeypatch.setattr(model_connections, "SERVERS", {"ollama": ("Ollama", server.port)})
    yield
    server.stop()


@pytest.mark.usefixtures("ollama")
@pytest.mark.parametrize(("role", "by_touch"), [("owner", False), ("editor", True)])
def test_what_people_do_most_takes_two_presses(cast: Cast, open_as: Open, role: str, by_touch: bool) -> None:
    person: User = getattr(cast, role)
    chat = make_chat(person, cast.workspace, title="Crossings")
    make_message(chat, "I am vegetarian")
    make_message(chat, "Noted.", role="assistant")
    days = (timezone.now() - timedelta(days=number) for number in count(1))
    for title in [*(f"Harbour dues {number}" for number in range(40)), "Spices of Zanzibar"]:
        make_chat(person, cast.workspace, title=title, active_at=next(days))
    make_memory("The ferry leaves at nine", cast.owner, cast.workspace)
    make_agent(cast.owner, cast.workspace, name="Chef")
    page = open_as(person, by_touch=by_touch)
    page.set_viewport_size(PHONE if by_touch else WIDE)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    here, new = f"/chats/{chat.public_id}/", f"/workspaces/{cast.workspace.public_id}/"
    tasks: dict[Callable[[PressCounter], None], str] = {
        find_an_old_chat: here,
        remember: here,
        forget: here,
        take_it_back: "",
        share: here,
        make_it_private: here,
        begin_with_an_assistant: here,
    }
    if not by_touch:  # with a finger it is in the row's menu
        tasks[delete_a_chat] = here
    if role == "owner":
        User.objects.filter(pk=person.pk).update(is_staff=True, is_superuser=True)  # as the first user is
        tasks[connect_a_model] = new
    took = {}
    for task, address in tasks.items():
        if address:
            page.goto(address)
            expect(page.locator("#panel-filters")).to_be_visible(visible=not by_touch)
        hand = PressCounter(page, by_touch)
        task(hand)
        took[task.__name__] = hand.presses
    print(role, "by touch" if by_touch else "by mouse and keys", took)
    assert max(took.values()) <= MOST_PRESSES, took
    assert by_touch or all(took[name] == 1 for name in ONE_PRESS & took.keys()), took


def test_documents_artifacts_settings_prompts_and_links_by_tab_and_enter_alone(
    cast: Cast, open_as: Open
) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Crossings")
    make_message(chat, "When is the ferry?", author=cast.owner)
    make_message(chat, "At nine.", role="assistant")
    artifact = make_artifact(cast.owner, cast.workspace, "print('old')", title="Greeting")
    page = open_as(cast.owner)
    page.set_viewport_size(WIDE)
    place = f"/workspaces/{cast.workspace.public_id}/"

    page.goto(f"{place}documents/")
    press(page, "Or paste text")
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
    tab_to(page, "Model")  # past the link of that name in the sidebar
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
