"""A model connected, tested, chosen, failing and deleted in a browser, at both widths, light and dark."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.fakes.openai_server import Answer, Failure
from tests.functional.conftest import LOOKS, ScriptedHub, shoot, sign_up
from tests.functional.test_accessibility import faults


@LOOKS
def test_a_model_is_connected_and_chosen(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub, size: str, scheme: str
) -> None:
    server = scripted_hub.server
    page = open_scripted_page(size, scheme)
    page.emulate_media(reduced_motion="reduce")
    sign_up(page, f"mona-{size}-{scheme}")
    page.get_by_role("button", name="Not now").click()
    expect(page.locator("#consent")).to_have_count(0)
    workspace = page.locator("body").get_attribute("data-workspace")
    found: list[str] = []

    def look(name: str) -> None:
        found.extend(faults(page))
        shoot(page, f"models-{name}-{size}-{scheme}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is too wide"

    page.goto("/connections/")
    page.get_by_role("button", name="Look for models").click()
    expect(page.get_by_role("heading", name="On this machine")).to_be_visible()
    look("here")
    page.get_by_role("link", name="Other").click()
    expect(page.locator("#preset-other")).to_have_attribute("aria-current", "true")
    page.get_by_role("textbox", name="Address").fill("not an address")
    page.get_by_role("textbox", name="Key").fill(server.api_key)
    page.get_by_label("Model", exact=True).fill(server.model)
    page.get_by_text("More settings").click()
    page.get_by_label("Name").fill("My own model")
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.get_by_text("Must be an address such as")).to_be_visible()
    look("refused")
    page.get_by_role("textbox", name="Address").fill(server.base_url)
    server.script(Answer("ready"), Answer("noon"), Answer('{"fact": "Moved."}'))
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text(
        "“My own model” is connected and answers in “Personal” now"
    )
    page.goto("/connections/")
    server.script(Answer("ready"), Answer("noon"), Answer('{"fact": "Moved."}'))
    page.get_by_role("button", name="Test My own model").click()
    expect(page.get_by_text("It did not call the tool.")).to_be_visible()
    look("tested")

    page.goto(f"/workspaces/{workspace}/")
    chooser = page.locator(".model-choice > summary")
    chooser.focus()
    page.keyboard.press("Enter")
    option = page.get_by_role("button", name="My own model").last
    expect(option).to_be_visible()
    look("menu")
    option.press("Enter")
    expect(page.locator("#wanted-connection")).to_have_value(re.compile("conn_"))
    expect(page.locator(".model-choice__name")).to_contain_text("My own model")
    server.script(Failure(401, "no"))
    page.get_by_role("textbox", name="Message", exact=True).fill("Hello")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The model's endpoint refused the API key.")).to_be_visible()
    look("failed")
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("Hello from the script.", exact=True)).to_be_visible()
    expect(page.locator(".model-choice__name")).to_contain_text("My own model")
    chat = page.url

    page.goto(f"/workspaces/{workspace}/settings/#model")
    look("settings")
    page.get_by_label("Memories of this workspace never leave this machine").check()
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    page.goto(chat)
    expect(page.locator("#model-notice")).to_contain_text("“My own model” is not marked local")
    look("kept-here")
    page.locator(".model-choice > summary").click()
    expect(page.locator("#model-menu")).to_contain_text("is not marked local")
    look("kept-here-menu")
    page.keyboard.press("Escape")

    page.goto("/connections/")
    page.locator("summary", has_text="Delete My own model").click()
    expect(page.get_by_text("What uses it continues with the next model that is set.")).to_be_visible()
    page.get_by_role("button", name="Delete My own model").click()
    expect(page.get_by_text("1 workspace and 1 chat used it")).to_be_visible()
    look("deleted")
    page.goto(chat)
    expect(page.locator("#model-notice")).to_contain_text(
        "“My own model”, which was chosen here, no longer exists"
    )
    look("gone")
    assert found == []
