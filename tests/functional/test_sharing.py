"""Sharing a chat in two clicks, reading it as another person, and revoking the link."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.fakes.openai_server import Answer
from tests.functional.conftest import ScriptedHub, finished, send, sign_up
from tests.functional.looks import look

ANSWER = (
    "Take the **ferry** at nine.\n\n| From | To |\n|---|---|\n| Kiel | Oslo |\n\n```py\nprint('ahoy')\n```"
)


def test_shared_read_and_closed(open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub) -> None:
    scripted_hub.server.respond = lambda request: Answer(ANSWER)
    page = open_scripted_page()
    page.set_viewport_size({"width": 1440, "height": 900})
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    sign_up(page, "share")
    place = page.url.split("/workspaces/")[1].strip("/")
    finished(send(page, "How do we get to Oslo?"))
    share = page.locator("details.share > summary")
    share.focus()
    page.keyboard.press("Enter")
    make = page.get_by_role("button", name="Create and copy link")
    expect(make).to_be_visible()
    look(page, "share-menu")
    make.dblclick()  # the second click: one link even on a double click, and copied to the clipboard
    expect(page.locator("#announce")).to_have_text("Copied")
    address = page.evaluate("navigator.clipboard.readText()")
    expect(page.locator("#share-menu")).to_contain_text("never opened")
    expect(page.locator("#share-menu .share__links > li")).to_have_count(1)

    other = open_scripted_page()
    other.goto(address)
    expect(other.get_by_role("heading", level=1)).to_have_text("How do we get to Oslo?")
    expect(other.locator(".prose strong")).to_have_text("ferry")
    assert other.evaluate("document.scripts.length") == 0

    chat = page.url
    page.goto(f"/workspaces/{place}/settings/#links")
    listed = page.locator("#share-links")
    expect(listed).to_contain_text("last opened")
    page.goto(chat)
    share.click()
    page.get_by_role("button", name="Turn off link").click()
    expect(page.locator("#share-menu")).to_contain_text("The link is turned off")
    assert other.request.get(address).status == 404
