"""An invitation in the sidebar, accepted there."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.functional.conftest import sign_up
from tests.functional.looks import look


def test_an_invited_person_accepts_in_the_sidebar(open_scripted_page: Callable[..., Page]) -> None:
    guest = open_scripted_page()
    sign_up(guest, "invited_guest")
    owner = open_scripted_page()
    sign_up(owner, "inviting_owner")
    watching = owner.context.new_page()
    watching.goto(owner.url)
    expect(watching.locator("#readers")).to_contain_text("Only you")
    owner.goto(owner.url.split("?")[0].rstrip("/") + "/settings/#members")
    form = owner.locator("form[action$='/members/']")
    form.locator("input[name=username]").fill("invited_guest")
    form.get_by_role("button", name="Invite").click()
    expect(owner.get_by_text("Invited, has not accepted yet")).to_be_visible()
    guest.reload()
    expect(guest.locator(".sidebar__invitation")).to_contain_text("inviting_owner invites you to")
    look(guest, "invited-2-guest")
    guest.locator(".sidebar__invitation").get_by_role("button", name="Accept").click()
    expect(guest.get_by_text("You are now a member of")).to_be_visible()
    expect(watching.locator("#readers")).to_contain_text("Everyone (2)")
