"""Personal memories in a shared chat, in the browser: left out, allowed, and hidden from the others."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.fakes.openai_server import Answer
from tests.functional.conftest import ScriptedHub, finished, send, sign_up
from tests.functional.looks import look

QUESTION = "Which cake shall we order for the party?"
_ASK = """async ([path, body]) => {
    const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
    const headers = {"Content-Type": "application/json", "X-CSRFToken": token};
    const asked = await fetch("/chat/api/" + path, {method: "POST", headers, body: JSON.stringify(body)});
    return asked.json();
}"""


def rest(page: Page, path: str, body: dict[str, Any]) -> Any:
    return page.evaluate(_ASK, [path, body])


def test_left_out_let_in_and_nothing_for_others(
    open_scripted_page: Callable[..., Page], scripted_hub: ScriptedHub
) -> None:
    scripted_hub.server.respond = lambda request: Answer("Let me see.")
    own = "The party cake must have no walnuts for Anna"
    other = open_scripted_page()
    sign_up(other, "ben")
    page = open_scripted_page()
    page.set_viewport_size({"width": 1440, "height": 900})
    sign_up(page, "anna")
    page.get_by_role("button", name="Yes, remember").click()
    expect(page.locator("#consent")).to_have_count(0)
    place = rest(page, "workspaces", {"name": "Party"})["id"]
    rest(page, f"workspaces/{place}/members", {"username": "ben", "role": "viewer"})
    rest(other, f"workspaces/{place}/members/accept", {})
    rest(page, f"workspaces/{place}/memories", {"content": "The party cake is ordered at Rosa's bakery"})
    home = page.url.split("/workspaces/")[1].strip("/")
    saved = rest(page, f"workspaces/{home}/memories", {"content": own, "scope": "user"})
    assert saved.get("scope", saved.get("memory", {}).get("scope")) == "user"
    page.goto(f"/workspaces/{place}/")
    answer = send(page, QUESTION)
    finished(answer)
    line = answer.locator(".receipt summary").first
    expect(line).to_contain_text("1 personal left out")
    line.press("Enter")
    expect(answer.locator(".receipt__withheld")).to_contain_text("others read this chat")
    expect(page.locator("#personal-chip")).to_be_attached()
    expect(page.locator("#personal-chip input")).not_to_be_checked()
    look(page, "personal-left-out")

    other.goto(page.url)
    expect(other.locator(".message--assistant .receipt summary")).to_contain_text("Used 1 memory")
    expect(other.locator("#messages").get_by_text("personal")).to_have_count(0)

    assert not any(own in str(request.messages) for request in scripted_hub.server.chat_requests)
    answer.get_by_role("button", name="Use mine here").press("Enter")
    expect(answer.get_by_role("status")).to_contain_text("from your next message on")
    expect(page.locator("#personal-chip input")).to_be_checked()
    again = send(page, QUESTION)
    finished(again)
    expect(again.locator(".receipt summary").first).to_contain_text("Used 2 memories")
    assert any(own in str(request.messages) for request in scripted_hub.server.chat_requests)
