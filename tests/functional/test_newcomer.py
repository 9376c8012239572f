"""A new user with the mouse: switching workspaces, permanent deletion, long texts and hostile names."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import Cast
from tests.factories import make_memory
from tests.fakes.openai_server import Answer
from tests.functional.conftest import Open, ScriptedHub, finished, open_panel, send, sign_up
from tests.stack import PASSWORD
from workspaces.models import Workspace

SAID = "The spare key is with Ines"


def switch_to(page: Page, name: str) -> None:
    """Use the menu at the head of the list."""
    page.get_by_text("Switch workspace").locator("..").click()
    page.locator("#sidebar").get_by_role("link", name=name, exact=True).click()


def test_workspaces_are_switched_and_a_memory_and_its_chat_forgotten(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    """The way in to what cannot be undone: from a memory's history, and from the notice of a deleted chat."""
    scripted_hub.server.respond = lambda request: Answer(
        "[]" if str(request.messages[0]["content"]).startswith("You read") else "Noted."
    )
    page = open_scripted_page()
    sign_up(page, "newcomer")
    page.get_by_role("button", name="Yes, remember").click()
    finished(send(page, SAID))
    chat = page.url
    message = page.locator(".message--user")
    message.hover()
    message.get_by_role("button", name="Remember this").click()
    expect(message.locator(".remember-slot")).to_contain_text("Remembered")

    switch_to(page, "All workspaces")
    page.get_by_label("Name").fill("Harbour")
    page.get_by_role("button", name="Create workspace").click()
    expect(page).to_have_title(re.compile("Harbour"))
    expect(page.locator("#welcome-title")).to_have_text("What's on your mind?")
    expect(page.locator("#chat-list")).not_to_contain_text(SAID)
    switch_to(page, "Personal")
    expect(page).to_have_title(re.compile("Personal"))

    page.goto(chat)
    card = open_panel(page).locator("[data-memory]", has_text=SAID)
    card.hover()
    card.locator("summary", has_text="More").last.click()
    expect(card.get_by_role("link", name="Forget for good")).to_have_count(0)
    card.get_by_role("button", name="History").click()
    card.get_by_role("link", name="Forget for good").click()
    page.get_by_label("Password").fill(PASSWORD)  # asked once before an irreversible action
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".said")).to_have_text(SAID)
    page.get_by_role("button", name="Forget for good").click()
    expect(page.get_by_text("finds nothing that says it")).to_be_visible()

    page.goto(chat)
    row = page.locator("#chat-list .chat-row", has_text=SAID)
    row.hover()
    row.get_by_role("button", name=re.compile("^Delete ")).click()
    deleted = page.locator(".toast", has_text="Deleted")
    deleted.locator("summary").click()
    deleted.get_by_role("link", name="Delete for good").click()
    page.get_by_role("button", name="Delete for good").click()
    expect(row).to_have_count(0)
    assert page.request.get(chat).status == 404


# The distance of each element from the left edge, as rendered.
PLACE_OF = """([element, ...words]) => {
  const text = document.createTreeWalker(document.querySelector(element), NodeFilter.SHOW_TEXT).nextNode();
  const range = document.createRange();
  return words.map((word) => {
    const at = text.data.indexOf(word);
    range.setStart(text, at);
    range.setEnd(text, at + word.length);
    return range.getBoundingClientRect().left;
  });
}"""


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("database_beside_the_browser")
def test_long_texts_hostile_names_and_the_way_in(cast: Cast, open_as: Open) -> None:
    page = open_as(None)
    page.goto("/accounts/login/")
    expect(page.get_by_role("link", name="Forgot your password?")).to_have_count(1)

    make_memory("Word " * 100, cast.owner, cast.workspace)
    Workspace.objects.filter(pk=cast.workspace.pk).update(name="Crew \u202eevil")
    page = open_as(cast.owner)
    page.set_viewport_size({"width": 1440, "height": 900})
    here = f"/workspaces/{cast.workspace.public_id}/"
    page.goto(here)
    card = page.locator("#panel [data-memory]")
    expect(card.locator(".memory__meta")).to_contain_text("Saved by you")
    expect(card.locator(".memory__meta")).not_to_contain_text(cast.owner.username)
    more = card.locator(".memory__more > summary")
    expect(more.get_by_text("More")).to_be_visible()
    expect(more.get_by_text("Less")).to_be_hidden()
    more.click()
    expect(more.get_by_text("Less")).to_be_visible()
    expect(more.get_by_text("More")).to_be_hidden()

    brackets = page.evaluate(PLACE_OF, ["#readers-all .readers__long", "evil", "(3)"])
    assert brackets == sorted(brackets), "a name turned round what stands after it"
    page.goto(f"{here}documents/")
    words = page.evaluate(PLACE_OF, [".page__lead", "evil", "can"])
    assert words == sorted(words)
