"""Settings in tabs that are saved on change, and an invitation from its creation to its acceptance, in a browser."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.functional.conftest import PASSWORD, sign_up
from tests.functional.looks import look


def test_settings_and_an_invitation(open_scripted_page: Callable[..., Page]) -> None:
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
    look(page, "settings-about-refused")
    page.reload()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Harbour")
    expect(page.get_by_label("What it is for")).to_have_value("Boats")
    memory = page.locator(".tabs").get_by_role("link", name="Memory", exact=True)
    memory.focus()
    page.keyboard.press("Enter")
    expect(memory).to_have_attribute("aria-current", "true")
    switch = page.get_by_label("Review what viewers or models propose")
    switch.focus()
    page.keyboard.press("Space")
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    look(page, "settings-memory")
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
    look(page, "settings-profile-memory")
    page.get_by_role("radio", name="On").first.check()
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    for name in ("General", "Security", "Programs", "Data"):
        page.get_by_role("link", name=name, exact=True).click()
        look(page, f"settings-profile-{name.lower()}")

    page.goto(f"/workspaces/{workspace}/settings/#members")
    page.get_by_role("region", name="Invitations").get_by_role("button", name="Create link").click()
    expect(page.get_by_text("The link is ready")).to_be_visible()
    look(page, "settings-members")
    link = page.get_by_label("Link of the invitation").input_value()

    guest = open_scripted_page()
    guest.goto(link)
    look(guest, "settings-invitation")
    guest.get_by_role("link", name="Create account").click()
    guest.get_by_label("Username").fill("gus")
    guest.locator("input[name=password1]").fill(PASSWORD)
    guest.locator("input[name=password2]").fill(PASSWORD)
    guest.keyboard.press("Enter")
    guest.get_by_role("button", name=re.compile("^Join as gus")).click()
    expect(guest.get_by_text("You are now a member of")).to_be_visible()
    other = open_scripted_page()
    other.goto(link)
    expect(other.get_by_text("This invitation has been used.")).to_be_visible()

    guest.keyboard.press("Control+k")
    guest.get_by_role("dialog").get_by_role("searchbox").fill("doc")
    expect(guest.locator("#palette-found")).to_contain_text("Add a document")
    look(guest, "settings-palette")

    guest.goto(f"/workspaces/{workspace}/settings/#members")
    leave = guest.locator("summary", has_text="Leave")
    leave.focus()
    guest.keyboard.press("Enter")
    question = guest.get_by_text("only an owner can add you again")
    expect(question).to_be_visible()
    assert (question.bounding_box() or {})["x"] >= 0
    look(guest, "settings-leave")
    guest.keyboard.press("Escape")
    expect(question).to_be_hidden()
    guest.keyboard.press("Enter")
    guest.keyboard.press("Tab")
    guest.keyboard.press("Enter")
    expect(guest.locator("#toasts")).to_contain_text("You have left “Harbour”.")


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
