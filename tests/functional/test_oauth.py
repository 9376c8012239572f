"""An OAuth consent page, at both widths, light and dark, by the keyboard."""

from collections.abc import Callable
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from tests.functional.conftest import ScriptedHub, sign_up
from tests.functional.looks import look
from tests.stack import PASSWORD


def test_a_program_is_let_in(open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub) -> None:
    page = open_scripted_page()
    # Another origin for the browser, whose policy limits form targets, which the server answers.
    back = f"{scripted_hub.address.replace('127.0.0.1', 'localhost')}/healthz"
    made = page.request.post("/oauth/register", data={"client_name": "Claude Code", "redirect_uris": [back]})
    asked = {
        "response_type": "code",
        "client_id": made.json()["client_id"],
        "redirect_uri": back,
        "code_challenge": "a" * 43,
        "code_challenge_method": "S256",
        "state": "s1",
    }
    sign_up(page, "orla")

    page.goto(f"/oauth/authorize?{urlencode(asked | {'redirect_uri': 'https://evil.example/'})}")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_text("an address that it did not register")).to_be_visible()
    page.goto(f"/oauth/authorize?{urlencode(asked)}")
    expect(page.get_by_role("heading", name="Allow “Claude Code” to use your memory?")).to_be_visible()
    look(page, "oauth-asked")
    page.get_by_label("Workspace").focus()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Access")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Allow", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(f"{back}?**")
    assert "code=mhc_" in page.url and "state=s1" in page.url
