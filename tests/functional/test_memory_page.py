"""The page of all memories in a browser: semantic search, editing in place, bulk changes, by the keyboard too."""

import re

import pytest
from playwright.sync_api import Route, expect

from memories.models import Memory, Scope
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message
from tests.functional.conftest import Open, shoot
from tests.functional.keys import tab_to
from tests.functional.looks import look

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("database_beside_the_browser"),
]


def test_memories_are_found_and_changed_in_their_table(cast: Cast, open_as: Open) -> None:
    for text in ("I am vegetarian", "The ferry leaves at nine", "Our server is called heron"):
        make_memory(text, cast.owner, cast.workspace)
    page = open_as(cast.owner)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/workspaces/{cast.workspace.public_id}/memories/all/")
    rows = page.locator(".memory-table tbody tr")
    expect(rows).to_have_count(3)

    page.locator("#memory-q").fill("diet")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("I am vegetarian")
    page.locator("#memory-q").fill("")
    expect(rows).to_have_count(3)

    row = rows.filter(has_text="ferry")
    row.get_by_role("button", name="Edit").click()
    row.locator("textarea").fill("The ferry leaves at ten")
    row.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("at ten")

    bulk = page.locator("#memory-bulk")
    expect(bulk).to_be_hidden()
    page.get_by_label("Select all that are shown").check()
    expect(bulk.locator("[data-selected]")).to_have_text("Selected: 3")
    rows.first.get_by_role("checkbox").uncheck()
    bulk.get_by_role("button", name="Forget").click()
    expect(rows).to_have_count(1)
    page.locator(".toast", has_text="2 memories forgotten").get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(3)
    assert Memory.objects.live().count() == 3


def test_a_row_that_was_dealt_with_keeps_its_space_under_the_pointer(cast: Cast, open_as: Open) -> None:
    for title in ("Cats", "Dogs"):
        make_chat(cast.owner, cast.workspace, title=title)
        make_memory(f"{title} sleep a lot", cast.owner, cast.workspace)
    page = open_as(cast.owner)
    page.goto(f"/workspaces/{cast.workspace.public_id}/memories/all/")
    row = page.locator("#memory-rows tbody tr").first
    row.get_by_role("button", name="Forget").click()
    expect(row).to_contain_text("Forgotten.")
    expect(row.get_by_role("button", name="Edit")).to_be_hidden()
    row.locator("summary").click()
    expect(row.get_by_role("link", name="Forget for good")).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")

    chats = page.locator("#chat-list .chat-row")
    chats.first.hover()
    before = chats.last.bounding_box()
    chats.first.get_by_role("button", name="Delete Dogs").click()
    toast = page.locator(".toast", has_text="Deleted “Dogs”")
    expect(toast).to_be_visible()
    assert chats.last.bounding_box() == before
    toast.locator("summary").click()
    expect(toast.get_by_role("link", name="Delete for good")).to_be_in_viewport(ratio=1)
    expect(chats).to_have_count(1)


def test_by_keys_alone(cast: Cast, open_as: Open) -> None:
    memory = make_memory("The ferry leaves at nine", cast.owner, cast.workspace)
    page = open_as(cast.owner)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/workspaces/{cast.workspace.public_id}/")
    tab_to(page, "Memory")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    tab_to(page, "Select “The ferry")
    page.keyboard.press("Space")
    tab_to(page, "Pin", "Shift+Tab")
    page.keyboard.press("Enter")
    pin = page.locator(".memory-table__acts").get_by_role("button", name="Pin")
    expect(pin).to_have_attribute("aria-pressed", "true")
    memory.refresh_from_db()
    assert memory.pinned


def test_a_name_becomes_a_topic_that_gathers_and_is_merged(cast: Cast, open_as: Open) -> None:
    for text in ("We met Maria Lopez", "The venue was found by Maria Lopez", "Lunch is with Maria on Friday"):
        make_memory(text, cast.owner, cast.workspace)
    page = open_as(cast.owner)
    topics = f"/workspaces/{cast.workspace.public_id}/nodes/"
    page.goto(topics)
    page.get_by_role("button", name="Make a topic Maria Lopez").click()
    expect(page.locator("#memories .node-memory")).to_have_count(2)
    page.goto(topics)
    page.get_by_label("Name", exact=True).fill("Maria")
    page.get_by_role("button", name="Create topic").click()
    expect(page.locator("#memories .node-memory")).to_have_count(3)
    page.goto(topics)
    page.get_by_text("Merge …").click()
    look(page, "topics")
    page.get_by_role("button", name="Merge", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Maria Lopez")
    expect(page.locator("#memories .node-memory")).to_have_count(3)


def test_the_profile_by_keys(cast: Cast, open_as: Open) -> None:
    for text, category in (
        ("I am vegetarian", "preference"),
        ("I prefer short answers without lists", "instruction"),
        ("Never deploy on Fridays or on the day before a bank holiday", "instruction"),
        ("Kafka has carried the events between our services since March 2024", "fact"),
        ("Amounts are stored as integers in minor units, never as floats", "decision"),
    ):
        make_memory(text, cast.owner, cast.workspace, category=category)
    make_memory("My sister lives in Lisbon", cast.owner, scope=Scope.USER)
    page = open_as(cast.owner)
    page.goto(f"/workspaces/{cast.workspace.public_id}/profile/")

    switch = page.get_by_label("Use my profile in chats")
    switch.press("Space")
    expect(page.locator(".toast")).to_contain_text("Saved")
    cast.owner.refresh_from_db()
    assert cast.owner.profile_in_chats

    lines = page.locator("#profile .receipt__item")
    expect(lines).to_have_count(6)
    line = lines.filter(has_text="vegetarian")
    menu = line.locator("summary").last
    menu.press("Enter")
    shoot(page, "profile-menu")
    line.get_by_role("button", name="Hide from profile").press("Enter")
    expect(lines).to_have_count(5)
    expect(page.get_by_text("1 hidden line")).to_be_visible()
    page.locator(".toast").get_by_role("button", name="Undo").press("Enter")
    expect(lines).to_have_count(6)

    menu.press("Enter")
    line.get_by_role("button", name="Edit").press("Enter")
    lines.locator("textarea").fill("I am vegan")
    lines.get_by_role("button", name="Save").press("Enter")
    expect(lines.filter(has_text="I am vegan")).to_have_count(1)
    line = lines.filter(has_text="I am vegan")
    line.locator("summary").last.press("Enter")
    line.get_by_role("button", name="Forget").press("Enter")
    expect(lines).to_have_count(5)

    page.get_by_label("What to remember").fill("I collect stamps")
    page.get_by_role("button", name="Remember").press("Enter")
    expect(lines.filter(has_text="I collect stamps")).to_contain_text("Only you")
    shoot(page, "profile-added")


def test_the_panel_leaves_an_open_form_alone_and_catches_up_when_it_closes(cast: Cast, open_as: Open) -> None:
    for text in ("Our server is called heron", "The ferry leaves at nine"):
        make_memory(text, cast.owner, cast.workspace)
    page = open_as(cast.owner)
    page.goto(f"/workspaces/{cast.workspace.public_id}/")
    cards, form = page.locator("#memory-region [data-memory]"), page.locator("#memory-region [data-editing]")
    page.locator("#panel-search").fill("ferry")
    expect(cards).to_have_count(1)

    held: list[Route] = []
    page.route(re.compile(r"/memories/\?"), lambda route: held.append(route))
    with page.expect_request(re.compile(r"/memories/\?")):
        page.locator("#panel-search").fill("")
    cards.first.hover()
    cards.first.get_by_role("button", name="Edit").click()
    expect(form).to_be_visible()
    with page.expect_response(re.compile(r"/memories/\?")):
        held[0].continue_()
    page.unroute_all()
    expect(form).to_be_visible()

    make_memory("The museum is free on Mondays", cast.editor, cast.workspace)
    page.evaluate("document.body.dispatchEvent(new CustomEvent('memories:changed'))")
    expect(page.locator("#memory-count")).to_contain_text("3")
    expect(form).to_be_visible()
    form.get_by_role("button", name="Cancel").click()
    expect(cards).to_have_count(3)


def test_a_receipt_learns_what_was_saved_while_the_conversation_was_in_use(cast: Cast, open_as: Open) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    make_message(chat, "Where is the ferry?")
    page = open_as(cast.owner)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"/chats/{chat.public_id}/")
    changed = "document.body.dispatchEvent(new CustomEvent('transcript:changed'))"
    page.evaluate("messages.insertAdjacentHTML('beforeend', '<li id=held data-earlier hidden></li>')")
    page.evaluate(changed)
    page.wait_for_timeout(800)
    assert not any("/transcript/" in url for url in asked)
    with page.expect_request("**/transcript/"):
        page.evaluate("held.remove(); document.dispatchEvent(new CustomEvent('memoryhub:answered'))")
