"""A model connected, tested, chosen, failing and deleted by the keyboard alone, at both widths, light and dark."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.fakes.openai_server import Answer, Failure
from tests.functional.conftest import ScriptedHub, sign_up
from tests.functional.keys import press, write
from tests.functional.looks import look


def test_a_model_is_connected_and_chosen(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    server = scripted_hub.server
    page = open_scripted_page()
    sign_up(page, "mona")
    page.get_by_role("button", name="Not now").click()
    expect(page.locator("#consent")).to_have_count(0)
    workspace = page.locator("body").get_attribute("data-workspace")

    page.goto("/connections/")
    press(page, "Look for models")
    expect(page.get_by_role("heading", name="On this machine")).to_be_visible()
    press(page, "Other")
    expect(page.locator("#preset-other")).to_have_attribute("aria-current", "true")
    write(page, "Address", "not an address")
    write(page, "Key", server.api_key)
    write(page, "Model", server.model)
    press(page, "More settings")
    write(page, "Name", "My own model")
    press(page, "Connect")
    expect(page.get_by_text("Must be an address such as")).to_be_visible()
    look(page, "models-refused")
    write(page, "Address", server.base_url)
    server.script(Answer("ready"), Answer("noon"), Answer('{"fact": "Moved."}'))
    press(page, "Connect")
    expect(page.locator("#toasts")).to_contain_text(
        "“My own model” is connected and answers in “Personal” now"
    )
    page.goto("/connections/")
    server.script(Answer("ready"), Answer("noon"), Answer('{"fact": "Moved."}'))
    press(page, "Test My own model")
    expect(page.get_by_text("It did not call the tool.")).to_be_visible()
    look(page, "models-tested")

    page.goto(f"/workspaces/{workspace}/")
    press(page, "Model:")
    expect(page.get_by_role("button", name="My own model").last).to_be_visible()
    look(page, "models-menu")
    press(page, "scripted-model")
    expect(page.locator("#wanted-connection")).to_have_value("built-in")
    press(page, "Model:")
    expect(page.get_by_role("button", name="My own model").last).to_be_visible()
    press(page, "My own model")  # the workspace's choice
    expect(page.locator("#wanted-connection")).to_have_value("")
    expect(page.locator(".model-choice__name")).to_contain_text("My own model")
    server.script(Failure(401, "no"))
    write(page, "Message", "Hello")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The model's endpoint refused the API key.")).to_be_visible()
    look(page, "models-failed")
    press(page, "Retry")
    expect(page.get_by_text("Hello from the script.", exact=True)).to_be_visible()
    expect(page.locator(".model-choice__name")).to_contain_text("My own model")
    chat = page.url

    page.goto(f"/workspaces/{workspace}/settings/#model")
    look(page, "models-settings")
    press(page, "Memories of this workspace never leave this machine", "Space")
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    page.goto(chat)
    expect(page.locator("#model-notice")).to_contain_text("“My own model” is not marked local")
    page.locator(".model-choice > summary").click()
    expect(page.locator("#model-menu")).to_contain_text("is not marked local")
    look(page, "models-kept-here-menu")
    page.keyboard.press("Escape")

    page.goto("/connections/")
    press(page, "Delete My own model")
    expect(page.get_by_text("What uses it continues with the next model that is set.")).to_be_visible()
    press(page, "Delete My own model")
    expect(page.get_by_text("1 workspace and 0 chats used it")).to_be_visible()
    look(page, "models-deleted")
    page.goto(chat)
    expect(page.locator("#model-notice")).to_contain_text(
        "“My own model”, which was chosen here, no longer exists"
    )
    look(page, "models-gone")
