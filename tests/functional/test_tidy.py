"""Tidying up and the recall test in a browser, by the keyboard alone: the list follows each click and its Undo."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from memories.models import Memory
from tests.factories import make_memory, make_user, make_workspace
from tests.functional.conftest import SIZES, Open, shoot
from workspaces.models import User, Workspace

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("database_beside_the_browser")]


def looked_at(page: Page, name: str) -> None:
    """Check at both widths that nothing overflows, and take screenshots."""
    for size, (width, height) in reversed(SIZES.items()):
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        shoot(page, f"{name}-{size}")


def filled(owner: User) -> Workspace:
    """Create a pair of duplicates and a memory that was not used lately."""
    workspace, now = make_workspace(owner=owner, name="Kitchen crew"), timezone.now()
    for text in ("The launch is on March 15, 2026", "The launch is on the 15th of March 2026"):
        make_memory(text, owner, workspace)
    stale = make_memory("The boiler was serviced by Dunn", owner, workspace, now=now - timedelta(days=300))
    Memory.objects.filter(pk=stale.pk).update(last_accessed_at=now - timedelta(days=200))
    return workspace


def test_memories_are_tidied_up_and_a_question_is_kept(open_as: Open) -> None:
    """The other buttons and what they do: tests/memories/tidying; missed questions: test_recall_test."""
    owner = make_user("tess")
    workspace, page = filled(owner), open_as(owner)
    rows = page.locator("#tidy article")
    undo = page.get_by_role("button", name="Undo").last
    for show, acts in (("duplicates", ("Keep the newer", "Keep both")), ("stale", ("Keep", "Forget"))):
        page.goto(f"/workspaces/{workspace.public_id}/tidy/?show={show}")
        before = rows.all_inner_texts()
        assert len(before) == 1
        looked_at(page, f"tidy-{show}")
        for act in acts:
            rows.first.get_by_role("button", name=act, exact=True).press("Enter")
            expect(rows).to_have_count(0)
            expect(page.locator("#toasts")).to_have_count(1)  # the live region stays, and its text changes
            undo.press("Enter")
            if act == "Forget":  # a restored memory counts as reviewed
                expect(page.get_by_role("button", name="Undo")).to_have_count(0)
                assert Memory.objects.filter(content__contains="Dunn", deleted_at=None).exists()
                continue
            expect(rows).to_have_count(1)
            assert rows.all_inner_texts() == before, (show, act)

    page.goto(f"/workspaces/{workspace.public_id}/recall-test/")
    page.get_by_role("textbox", name="Question").press_sequentially("When is the launch?")
    page.get_by_role("checkbox", name="The launch is on March 15").press("Space")
    looked_at(page, "recall-test")
    page.get_by_role("button", name="Save question").press("Enter")
    expect(page.get_by_role("region", name="Found")).to_contain_text("Used, place")
