"""A reader's marks on a chat by the keyboard alone: a rating with its reason, versions, a tag."""

from collections.abc import Callable
from contextlib import suppress

from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.fakes.openai_server import Answer
from tests.functional.conftest import ScriptedHub, finished, send, sign_up
from tests.functional.looks import look


def test_a_thumb_the_arrows_and_a_tag(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    said = iter(["The ferry leaves at nine.", "It leaves at ten."])
    scripted_hub.server.respond = lambda request: Answer(
        "[]" if str(request.messages[0]["content"]).startswith("You read") else next(said, "Oslo")
    )  # the worker's extraction requests use none of the answers
    page = open_scripted_page("phone")
    sign_up(page, "marks")
    finished(send(page, "When does the ferry leave?"))

    bad = page.get_by_role("button", name="Bad answer")
    bad.focus()
    page.keyboard.press("Enter")
    reason = page.get_by_role("checkbox", name="Not correct")
    expect(reason).to_be_visible()
    reason.focus()
    page.keyboard.press("Space")
    look(page, "rating")
    page.get_by_label("Anything else").fill("It is at ten")
    page.keyboard.press("Enter")
    expect(page.locator(".rating")).to_contain_text("Thank you")
    page.reload()
    expect(bad).to_have_attribute("aria-pressed", "true")

    page.get_by_role("button", name="Regenerate").click()
    answer = page.locator(".message--assistant").last
    expect(answer).to_contain_text("It leaves at ten.")
    finished(answer)
    arrows = page.get_by_role("group", name="Versions")
    expect(arrows).to_contain_text("Version 2 of 2")
    page.get_by_role("button", name="Earlier version").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".message--assistant")).to_contain_text("The ferry leaves at nine.")
    expect(arrows).to_contain_text("Version 1 of 2")
    expect(page.get_by_role("button", name="Earlier version")).to_be_focused()

    page.get_by_role("button", name="Show the list of chats").first.click()
    press_tags(page)
    expect(page.get_by_label("Tags of the chat")).to_be_focused()
    page.keyboard.type("Travel, summer")
    page.keyboard.press("Enter")
    chosen = page.get_by_label("Chats with a tag")
    expect(chosen).to_be_visible()
    chosen.select_option("summer")
    expect(page.locator(".chat-row")).to_have_count(1)


def press_tags(page: Page) -> None:
    """Open the tags dialog. The list re-renders when the chat changes, also after an answer, which closes the menu."""
    button = page.locator(".chat-row").get_by_role("button", name="Tags")
    for _ in range(3):
        page.locator(".chat-row summary").first.focus()
        page.keyboard.press("Enter")
        with suppress(PlaywrightTimeout):
            button.press("Enter", timeout=5_000)
            return
    raise AssertionError("the menu of the chat does not stay open")
