"""The admin in a browser, by the keyboard alone; test_every_page checks each of its pages."""

from collections.abc import Iterator

import pytest
from django.test import Client
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from memories.models import Memory
from tests.factories import make_chat, make_memory, make_user, make_workspace
from tests.functional.conftest import shoot

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("database_beside_the_browser")]


@pytest.fixture
def page(browser: Browser, live_server: LiveServer) -> Iterator[Page]:
    """A superuser's page. Errors of its policy or its scripts fail the test."""
    client, complaints = Client(), []
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    context = browser.new_context(base_url=live_server.url, reduced_motion="reduce")
    cookie = client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
    page = context.new_page()
    page.on("console", lambda m: complaints.append(m.text) if "Content Security" in m.text else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert complaints == []


def test_a_possible_update_is_decided_and_taken_back_by_keys_alone(page: Page) -> None:
    olive = make_user("olive")
    workspace = make_workspace(owner=olive, name="Kitchen crew")
    older = make_memory("The meeting is on Monday at ten", olive, workspace)
    newer = make_memory("The meeting is on Tuesday at eleven", olive, workspace)
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    page.goto(f"/admin/memories/memory/{newer.pk}/change/")
    page.get_by_role("button", name="Replace the older one").press("Enter")
    expect(page.get_by_role("heading", name="Replace the older one: 1 memory?")).to_be_visible()
    expect(page.locator(".pair del").first).to_have_text("Monday")
    shoot(page, "admin-asks")
    page.get_by_role("button", name="Replace the older one").press("Enter")
    expect(page.get_by_text("1 memory replaced an older one.")).to_be_visible()
    assert Memory.objects.get(replaced_by=newer) == older
    page.locator("tr", has_text="Tuesday").get_by_role("checkbox").press("Space")
    page.get_by_role("combobox", name="Action").select_option("Let the older one hold again")
    page.get_by_role("button", name="Go").press("Enter")
    page.get_by_role("button", name="Let the older one hold again").press("Enter")
    expect(page.get_by_text("1 memory no longer replacing an older one.")).to_be_visible()
    assert Memory.objects.filter(deleted_at=None, replaced_by=None).count() == 2


def test_long_name_wraps_and_pushes_no_column_out(page: Page) -> None:
    olive = make_user("olive")
    workspace = make_workspace(owner=olive, name="Kitchen" * 16)
    make_memory("The meeting is on Monday at ten", olive, workspace)
    make_chat(olive, workspace, title="Supper" * 19)
    page.set_viewport_size({"width": 1280, "height": 800})
    for model in ("workspaces/workspace", "memories/memory", "chat/chat"):
        page.goto(f"/admin/{model}/")
        expect(page.locator("#result_list tbody tr").first).to_be_visible()
        across, room = page.locator(".results").evaluate("box => [box.scrollWidth, box.clientWidth]")
        assert across <= room + 1, model
        shoot(page, f"admin-long-{model.replace('/', '-')}")
