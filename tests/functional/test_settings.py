"""Settings in tabs that are saved on change, and an invitation that is accepted in the sidebar, in a browser."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.functional.conftest import PASSWORD, sign_up
from tests.functional.looks import look

OPEN_ALL = "for (const tab of document.querySelectorAll('[data-tab]')) tab.classList.add('tabbed--open')"


def look_at_all_tabs(page: Page, name: str) -> None:
    page.evaluate(OPEN_ALL)
    look(page, name)


def test_settings_are_saved_as_they_are_changed(open_scripted_page: Callable[..., Page]) -> None:
    page = open_scripted_page()
    sign_up(page, "ines")
    workspace = page.locator("body").get_attribute("data-workspace")
    page.goto(f"/workspaces/{workspace}/settings/#about")
    page.get_by_label("Name", exact=True).focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("Harbour")
    page.keyboard.press("Tab")
    page.keyboard.type("Boats")
    expect(page.get_by_role("heading", level=1)).to_have_text("Harbour")
    expect(page.locator("#workspace-switch")).to_contain_text("Harbour")
    expect(page).to_have_title(re.compile("^Settings · Harbour"))
    expect(page.get_by_label("What it is for")).to_have_value("Boats")  # a field in use is not overwritten
    page.keyboard.press("Tab")
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    page.get_by_label("Name", exact=True).fill("")
    page.keyboard.press("Enter")
    expect(page.locator(".field__error")).to_be_visible()
    look_at_all_tabs(page, "settings-refused")
    page.reload()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Harbour")
    expect(page.get_by_label("What it is for")).to_have_value("Boats")
    memory = page.locator(".tabs").get_by_role("link", name="Memory", exact=True)
    memory.press("Enter")
    expect(memory).to_have_attribute("aria-current", "true")
    switch = page.get_by_label("Review what viewers or models propose")
    switch.press("Space")
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    page.reload()
    expect(switch).to_be_checked()
    expect(page.get_by_role("heading", level=1)).to_be_in_viewport(ratio=1)

    page.goto("/profile/#name")
    page.locator("#given-name").fill("Inês da Costa")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Inês da Costa")
    expect(page.locator("#own-name")).to_contain_text("Inês da Costa")
    expect(page.locator("#own-picture .avatar")).to_have_text("IC")
    page.goto("/profile/#memory-setting")
    page.get_by_role("radio", name="On").first.check()
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    look_at_all_tabs(page, "settings-profile")


def test_an_invited_person_accepts_in_the_sidebar_and_leaves(open_scripted_page: Callable[..., Page]) -> None:
    """Invitations by link: tests/workspaces/invitations."""
    guest, owner = open_scripted_page(), open_scripted_page()
    sign_up(guest, "gus")
    sign_up(owner, "inviting_owner")
    watching = owner.context.new_page()
    watching.goto(owner.url)
    expect(watching.locator("#readers")).to_contain_text("Only you")
    members = owner.url.split("?")[0].rstrip("/") + "/settings/#members"
    owner.goto(members)
    form = owner.locator("form[action$='/members/']")
    form.locator("input[name=username]").fill("gus")
    form.get_by_role("button", name="Invite").click()
    expect(owner.get_by_text("Invited, has not accepted yet")).to_be_visible()
    guest.reload()
    invitation = guest.locator(".sidebar__invitation")
    expect(invitation).to_contain_text("inviting_owner invites you to")
    look(guest, "settings-invited")
    invitation.get_by_role("button", name="Accept").click()
    expect(guest.get_by_text("You are now a member of")).to_be_visible()
    expect(watching.locator("#readers")).to_contain_text("Everyone (2)")

    guest.goto(members)
    leave = guest.locator("summary", has_text="Leave")
    leave.press("Enter")
    question = guest.get_by_text("only an owner can add you again")
    expect(question).to_be_visible()
    guest.keyboard.press("Escape")
    expect(question).to_be_hidden()
    guest.set_viewport_size({"width": 390, "height": 844})
    guest.keyboard.press("Enter")
    assert (question.bounding_box() or {})["x"] >= 0
    guest.keyboard.press("Tab")
    guest.keyboard.press("Enter")
    expect(guest.locator("#toasts")).to_contain_text("You have left “Personal”.")


def test_a_deleted_workspace_is_said_to_be_deleted(open_scripted_page: Callable[..., Page]) -> None:
    """The event that access ended comes before the next page, and would load the page of the deleted workspace."""
    page = open_scripted_page()
    sign_up(page, "dora")
    page.goto("/accounts/reauthenticate/?next=/workspaces/")
    page.locator("input[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_label("Name").fill("Scratch")
    page.get_by_role("button", name="Create workspace").click()
    workspace = page.locator("#workspace-switch", has_text="Scratch")
    expect(workspace).to_be_visible()
    page.goto(f"/workspaces/{page.locator('body').get_attribute('data-workspace')}/settings/#danger")
    confirm = page.get_by_label("Type the name of the workspace")
    confirm.fill("Scrap")
    page.keyboard.press("Enter")
    expect(page.locator(".field__error")).to_be_in_viewport()
    confirm.fill("Scratch")
    expect(page.locator(".field__error")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Deleted for good")
