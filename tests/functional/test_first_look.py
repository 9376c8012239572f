"""Small faults that a first-time visitor would notice."""

import pytest
from playwright.sync_api import expect

from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message, make_workspace
from tests.functional.conftest import Open
from tests.functional.looks import SETTLED

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("database_beside_the_browser"),
]


def test_the_page_of_a_workspace(cast: Cast, open_as: Open) -> None:
    page = open_as(cast.owner)
    message = page.get_by_role("textbox", name="Message", exact=True)
    parts = ["#welcome-title", ".prompt >> nth=2", "#consent", "#composer"]
    for width, height in ((390, 844), (1440, 800)):
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"/workspaces/{cast.workspace.public_id}/")
        page.evaluate(SETTLED)
        boxes = [page.locator(each).bounding_box() for each in parts]
        ends = [box["y"] + box["height"] for box in boxes if box]
        assert len(ends) == 4 and ends == sorted(ends) and ends[-1] <= height
        consent = boxes[2]
        assert consent and consent["height"] <= height / 4
        model, readers = (
            page.locator(f".toolbar__line > {each}").bounding_box() for each in (":first-child", ".readers")
        )
        assert model and readers and readers["x"] - model["x"] - model["width"] >= 8

    message.focus()
    page.keyboard.press("Control+k")
    page.keyboard.type("ferry")
    page.keyboard.press("Escape")  # also after typing
    expect(page.locator("#palette")).to_be_hidden()
    expect(message).to_be_focused()

    expect(page.locator("#panel-search")).to_be_visible()
    page.keyboard.press("Control+.")
    expect(page.locator("#panel")).to_be_hidden()
    expect(message).to_be_focused()
    page.keyboard.press("Control+.")
    expect(page.locator("#panel-search")).to_be_focused()
    page.keyboard.press("Control+.")
    expect(message).to_be_focused()

    message.press_sequentially("/")
    expect(page.locator("#prompts-offered li")).to_have_css("list-style-type", "none")
    message.fill("")

    notice = page.locator(".notice", has_text="The built-in model is small")
    notice.get_by_role("button", name="Dismiss").click()
    expect(notice).to_have_count(0)
    for place in (cast.workspace, make_workspace(owner=cast.owner, name="Another")):
        page.goto(f"/workspaces/{place.public_id}/")
        expect(page.locator("#welcome-title")).to_be_visible()
        expect(notice).to_have_count(0)

    page.goto("/accounts/reauthenticate/")
    page.get_by_role("link", name="Back").click()
    expect(message).to_be_visible()


def test_the_menu_of_the_open_chat_looks_like_any_other_and_words_in_a_table_stay_whole(
    cast: Cast, open_as: Open
) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Crossings")
    table = "| Step | Who | What | Deadline |\n|---|---|---|---|\n| Implementation | Konstantinopoulou | "
    make_message(chat, table + "Internationalization of the configuration | soon |", role="assistant")
    page = open_as(cast.owner)
    page.goto(f"/chats/{chat.public_id}/")
    row = page.locator(".chat-row", has_text="Crossings")
    expect(row.get_by_role("link", name="Crossings")).to_have_css("font-weight", "550")
    row.hover()
    row.locator("summary").click()
    expect(row.get_by_text("Rename")).to_have_css("font-weight", "400")

    page.set_viewport_size({"width": 390, "height": 844})
    cell = page.locator(".prose td", has_text="Konstantinopoulou")
    assert cell.evaluate("cell => { const r = document.createRange(); r.selectNodeContents(cell);"
                         " return new Set([...r.getClientRects()].map(each => each.top)).size }") == 1  # fmt: skip
    table_box = page.locator(".prose table")
    assert table_box.evaluate("table => table.scrollWidth > table.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_by_touch_only_the_link_of_a_memory_is_underlined(cast: Cast, open_as: Open) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    make_memory("The ferry leaves at nine", cast.owner, cast.workspace, source_chat_id=chat.public_id)
    page = open_as(cast.owner, by_touch=True)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/workspaces/{cast.workspace.public_id}/")
    page.get_by_role("button", name="Memory panel").click()
    link = page.locator(".memory__meta a")
    expect(link).to_have_css("display", "block")  # in a flex box the underline continues below the dot
    box = link.bounding_box()
    assert box and box["height"] >= 44


def test_a_password_that_is_refused_is_told_its_rules_once(open_as: Open) -> None:
    page = open_as(None)
    page.goto("/accounts/signup/")
    rules = page.get_by_text("must contain at least 8 characters")
    expect(rules).to_be_visible()
    page.get_by_label("Username").fill("newcomer")
    for name in ("password1", "password2"):
        page.locator(f"input[name={name}]").fill("123")
    page.keyboard.press("Enter")
    expect(page.get_by_text("This password is too short")).to_be_visible()
    expect(rules.last).to_be_hidden()


def test_for_whom_a_file_is_stands_before_choosing_one_sends_it(cast: Cast, open_as: Open) -> None:
    page = open_as(cast.owner)
    page.goto(f"/workspaces/{cast.workspace.public_id}/documents/")
    whom, files = page.get_by_label("Visible to", exact=True), page.locator("[data-attach-files]")
    tops = [box["y"] for box in (whom.bounding_box(), files.bounding_box()) if box]
    assert len(tops) == 2 and tops[0] < tops[1]
    files.set_input_files({"name": "empty.txt", "mimeType": "text/plain", "buffer": b""})
    expect(page.locator(".attached__file [data-state]")).to_have_text("The file is empty.")
    expect(page.locator("#document-files-help")).to_contain_text("at most 50 MB")
