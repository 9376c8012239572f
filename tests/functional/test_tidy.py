"""Tidying up and the recall test in a browser, by the keyboard alone: every click and its Undo, at both widths."""

import os
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from memories.models import Memory
from memories.models.memory import MEMORY
from memories.writing.gate import Draft, save_memory
from tests.factories import make_memory, make_user, make_workspace
from tests.functional.conftest import Open, shoot
from workspaces.models import PassageVector, User, Workspace

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("database_beside_the_browser")]
NARROW, WIDE = {"width": 390, "height": 844}, {"width": 1440, "height": 900}


@pytest.fixture
def owner() -> User:
    return make_user("tess")


@pytest.fixture
def page(open_as: Open, owner: User) -> Page:
    return open_as(owner)


def looked_at(page: Page, name: str) -> None:
    """Check the page at both widths, without overflow, and take screenshots in both schemes."""
    for width, size in (("390", NARROW), ("1440", WIDE)):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for scheme in ("dark", "light") if os.environ.get("SCREENSHOTS") else ():
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
            shoot(page, f"{name}-{width}-{scheme}")


def filled(owner: User) -> Workspace:
    """Create something on each of the six lists."""
    workspace = make_workspace(owner=owner, editor=None, viewer=make_user("vera"), name="Kitchen crew")
    for text in (
        "The project deadline is March 15, 2026",
        "The project deadline is the 15th of March 2026",
        "Our office is on the third floor",
        "Our office is on the fifth floor",
        "See ya!",
        "Later!",
    ):
        make_memory(text, owner, workspace)
    now = timezone.now()
    stale = make_memory("The boiler was serviced by Dunn", owner, workspace, now=now - timedelta(days=300))
    Memory.objects.filter(pk=stale.pk).update(last_accessed_at=now - timedelta(days=200))
    unused = make_memory("Nadia collects stamps", owner, workspace, now=now - timedelta(days=40))
    bare = make_memory("The ferry has a café", owner, workspace)
    PassageVector.objects.filter(kind=MEMORY, ref=bare.pk).delete()
    Memory.objects.filter(pk=unused.pk).update(last_accessed_at=now)
    viewer = workspace.memberships.get(role="viewer").user
    save_memory(Draft("Somebody thinks so", workspace, viewer).to_review(), by=viewer, now=now)
    return workspace


def test_every_act_of_tidying_up_and_its_undo_by_keys(page: Page, owner: User) -> None:
    workspace = filled(owner)
    lists = {
        "duplicates": ["Keep the newer", "Keep the older", "Keep both"],
        "contradictions": ["Keep the older"],  # the same buttons as of duplicates
        "stale": ["Keep", "Forget"],
        "unused": ["Keep"],
        "unindexed": ["Forget"],
        "waiting": ["Approve", "Reject"],
    }
    for show, acts in lists.items():
        page.goto(f"/workspaces/{workspace.public_id}/tidy/?show={show}")
        rows = page.locator("#tidy article")
        before = rows.all_inner_texts()
        assert before
        assert not any("See ya" in text or "Later" in text for text in before if show == "contradictions")
        looked_at(page, f"tidy-{show}")
        for act in acts:
            rows.first.get_by_role("button", name=act, exact=True).press("Enter")
            expect(rows).to_have_count(len(before) - 1)
            expect(page.locator("#toasts")).to_have_count(1)  # the live region stays, and its text changes
            if act == acts[0]:
                looked_at(page, f"tidy-{show}-done")
            page.get_by_role("button", name="Undo").last.press("Enter")
            if (show, act) == ("stale", "Forget"):  # a restored memory counts as reviewed
                expect(page.get_by_role("button", name="Undo")).to_have_count(0)
                assert Memory.objects.filter(content__contains="Dunn", deleted_at=None).exists()
                continue
            expect(rows).to_have_count(len(before))
            page.reload()
            assert rows.all_inner_texts() == before, (show, act)
    page.goto(f"/workspaces/{workspace.public_id}/tidy/?show=unindexed")
    page.get_by_role("button", name="Index them now").press("Enter")
    expect(page.locator(".toast")).to_be_visible()


def test_a_question_is_kept_and_missed_once_the_threshold_is_higher(
    page: Page, owner: User, settings: Any
) -> None:
    workspace = make_workspace(owner=owner, name="Kitchen crew")
    for text in ("The launch is on March 15", "Olive plays the cello", "The kiosk closes at six"):
        make_memory(text, owner, workspace)
    page.goto(f"/workspaces/{workspace.public_id}/recall-test/")
    page.get_by_role("textbox", name="Question").press_sequentially("When is the launch?")
    choice = page.get_by_role("checkbox", name="The launch is on March 15")
    choice.press("Space")
    looked_at(page, "recall-test-new")
    page.get_by_role("button", name="Save question").press("Enter")
    expect(page.get_by_text("Nothing is missed")).to_be_visible()
    expect(page.get_by_role("region", name="Found")).to_contain_text("Used, place 1")
    settings.RECALL_THRESHOLD = 0.9999
    page.get_by_role("button", name="Run all now").press("Enter")
    missed = page.get_by_role("region", name="Missed")
    expect(missed).to_contain_text("Place 1, left out: not relevant enough")
    looked_at(page, "recall-test-missed")
    settings.RECALL_THRESHOLD = 0.57
    page.get_by_role("button", name="Run all now").press("Enter")
    expect(page.get_by_role("region", name="Found")).to_contain_text("Used, place 1")
    page.get_by_role("button", name="Remove “When is the launch?”").press("Enter")
    expect(page.get_by_text("Your questions will be here")).to_be_visible()
