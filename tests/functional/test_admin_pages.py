"""The admin in a browser: nothing breaks the policy, axe finds no serious fault, no page is wider than a phone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from memories.models import Extraction, Memory, Refusal
from tests.factories import make_memory, make_user, make_workspace
from tests.functional.conftest import SIZES, shoot

GRAVE = {"serious", "critical"}
PAGES = {
    "dashboard": "/admin/",
    "pairs": "/admin/memories/memory/pairs/",
    "memories": "/admin/memories/memory/",
    "refusals": "/admin/memories/refusal/",
    "extractions": "/admin/memories/extraction/",
}
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("database_beside_the_browser")]


@pytest.fixture
def open_admin(browser: Browser, live_server: LiveServer) -> Iterator[object]:
    olive = make_user("olive")
    workspace = make_workspace(owner=olive, name="Kitchen crew")
    older = make_memory("The meeting is on Monday at ten", olive, workspace)
    newer = make_memory("The meeting is on Tuesday at eleven", olive, workspace)
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    now = timezone.now()
    Refusal.objects.create(day=now.date(), workspace=workspace, source_type="user", kind="openai", number=3)
    Extraction.objects.create(
        workspace=workspace,
        user=olive,
        chat_id="chat_" + "a" * 24,
        message_id="msg_" + "a" * 24,
        source_type="auto_chat",
        status="failed",
        next_attempt_at=now,
        error="The model did not answer in time.",
    )
    client = Client()
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    contexts, complaints = [], []

    def open_at(size: str, scheme: str) -> Page:
        width, height = SIZES[size]
        context = browser.new_context(
            base_url=live_server.url,
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
        )
        context.add_cookies(
            [{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}]
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if "Content Security" in m.text else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_no_page_of_the_admin_has_a_serious_fault(open_admin, size: str, scheme: str) -> None:
    page = open_admin(size, scheme)
    found = []
    for name, address in PAGES.items():
        page.goto(address)
        found += [
            f"{address} {fault['id']}: {fault['nodes'][0]['html']}"
            for fault in Axe().run(page).response["violations"]
            if fault["impact"] in GRAVE
        ]
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0], address
        shoot(page, f"admin-{name}-{size}-{scheme}")
    assert found == []


def test_a_pair_is_decided_and_undone_by_keys_alone(open_admin) -> None:
    page = open_admin("desktop", "light")
    page.goto(PAGES["pairs"])
    page.get_by_role("article").get_by_role("button", name="Replace the older").press("Enter")
    expect(page.get_by_role("heading", name="1 memory?")).to_be_visible()
    page.get_by_role("button", name="Replace the older one").press("Enter")
    expect(page.get_by_text("Nothing to compare")).to_be_visible()
    assert Memory.objects.filter(deleted_at=None).count() == 1
    page.get_by_role("button", name="Undo").press("Enter")
    expect(page.get_by_text("1 memory restored.")).to_be_visible()
    assert Memory.objects.filter(deleted_at=None).count() == 2
