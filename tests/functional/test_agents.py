"""An assistant created, chosen, used and given a memory in a browser."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.functional.conftest import finished, open_more, open_panel, sign_up
from tests.functional.looks import look


def test_an_assistant_is_made_and_talked_to(open_scripted_page: Callable[..., Page]) -> None:
    page = open_scripted_page()
    sign_up(page, "ada")
    page.get_by_role("button", name="Not now").click()
    expect(page.locator("#consent")).to_have_count(0)

    expect(page.locator("#agent-chooser")).to_have_count(0)
    workspace = page.locator("body").get_attribute("data-workspace")
    page.goto(f"/workspaces/{workspace}/agents/")
    for name, told in (
        ("Planner", "Plan in weeks."),
        ("A proofreader with a rather long name for a chip", "Correct."),
    ):
        page.get_by_label("Name").fill(name)
        page.get_by_label("What it is for").fill(f"{name} helps with the newsletter.")
        page.get_by_label("Instructions").fill(told)
        page.get_by_role("button", name="Create assistant").click()
        expect(page.locator("#main").get_by_role("link", name=name, exact=True)).to_be_visible()
        expect(page.locator(".sidebar__agents a", has_text=name)).to_have_count(1)

    page.get_by_role("link", name="New chat with Planner").click()
    expect(page.locator("#welcome-title")).to_have_text("A new chat with Planner")
    expect(page.locator("#talking-to")).to_contain_text("Planner")
    open_more(page)
    chooser = page.get_by_label("Assistant of this chat")
    chooser.select_option(label="No assistant")
    expect(page.locator("#welcome-title")).to_contain_text("What's on your mind")
    expect(page.locator("#talking-to")).not_to_contain_text("Planner")
    chooser.select_option(label="A proofreader with a rather long name for a chip")
    expect(page.locator("#talking-to")).to_contain_text("A proofreader")
    chooser.select_option(label="Planner")
    expect(page.locator("#welcome-title")).to_have_text("A new chat with Planner")
    page.get_by_role("textbox", name="Message", exact=True).fill("Hello")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/chats/"))
    finished(page.locator(".message--assistant").first)
    expect(page.locator("#talking-to")).to_contain_text("Planner")
    open_more(page)
    page.get_by_label("Assistant of this chat").select_option(label="No assistant")
    expect(page.locator("#talking-to")).not_to_contain_text("Planner")
    page.reload()
    expect(page.locator("#talking-to")).not_to_contain_text("Planner")

    open_panel(page)
    page.locator("#panel").get_by_role("button", name="Add").click()
    page.get_by_label("What to remember").fill("The newsletter goes out on Tuesdays")
    page.get_by_label("Visible to", exact=False).first.select_option(label="Chats with Planner")
    look(page, "agents-panel-add")
    page.locator("#panel").get_by_role("button", name="Remember", exact=True).click()
    expect(page.locator("#panel [data-memory]").first).to_contain_text("Only with Planner")
