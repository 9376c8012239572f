"""Repairs on the admin's dashboard: pairs, failed work, stale memories."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from django_q.models import Failure, OrmQ

from memories.admin.side_by_side import PER_PAGE, pair
from memories.models import Extraction, Memory
from tests.admin_pages import run_action, said, staff
from tests.conftest import Cast
from tests.factories import make_memory
from tests.fakes.embedder import FakeEmbedder
from tests.memories.admin.test_admin_dashboard import (
    failed_extraction,
    failed_job,
    figures,
)

HOME = "/admin/"
LIST = "/admin/memories/memory/"
PAIRS = f"{LIST}pairs/"
pytestmark = pytest.mark.django_db


def test_what_is_done_is_what_was_asked_about(cast: Cast, boss: Client) -> None:
    """The confirmation is signed for its rows, action and user."""
    first, second = (make_memory(text, cast.owner, cast.workspace) for text in ("Tea", "Coffee"))
    asked = boss.post(LIST, {"action": "forget", "_selected_action": [first.pk]})
    confirmed = asked.context["confirmed"]
    forged = [
        {"action": "forget", "_selected_action": [second.pk], "confirmed": "yes"},
        {"action": "forget", "_selected_action": [second.pk], "confirmed": confirmed[:-2] + "xx"},
        {"action": "keep_both", "_selected_action": [second.pk], "confirmed": confirmed},
    ]
    for form in forged:
        assert "too old" in said(boss.post(LIST, form, follow=True))[0]
    other = staff(is_superuser=True)
    form = {"action": "forget", "_selected_action": [first.pk], "confirmed": confirmed}
    assert "too old" in said(other.post(LIST, form, follow=True))[0]
    assert Memory.objects.filter(deleted_at=None).count() == 2
    # The signed rows count, not those in the form.
    boss.post(LIST, {"action": "forget", "_selected_action": [second.pk], "confirmed": confirmed})
    assert list(Memory.objects.filter(deleted_at=None)) == [second]


def test_the_way_back_leads_nowhere_else(cast: Cast, boss: Client) -> None:
    memory = make_memory("Tea", cast.owner, cast.workspace)
    for place in (
        "https://evil.example/",
        "//evil.example/admin/",
        "/accounts/logout/",
        "javascript:alert(1)",
    ):
        asked = boss.post(LIST, {"action": "restore", "_selected_action": [memory.pk], "next": place})
        assert place not in asked.content.decode()
        form = {"action": "restore", "_selected_action": [memory.pk], "confirmed": asked.context["confirmed"]}
        assert boss.post(LIST, form | {"next": place})["Location"] == LIST


def test_undo_is_offered_only_to_who_may(cast: Cast, fake_embedder: FakeEmbedder) -> None:
    memory = make_memory("Tea", cast.owner, cast.workspace)
    client = staff("view_memory", "delete_memory")  # restoring requires the change permission
    assert ">Undo</button>" not in run_action(client, LIST, "forget", memory).content.decode()
    memory.refresh_from_db()
    assert memory.deleted_at is not None


def test_failed_work_is_retried_one_by_one_and_all_at_once(cast: Cast, boss: Client) -> None:
    rows = [failed_extraction(cast, number) for number in range(4)]
    listed = "/admin/memories/extraction/?status=failed"
    run_action(boss, listed, "retry", rows[0])
    assert Extraction.objects.filter(status="failed").count() == 3
    answer = run_action(boss, listed, "retry", rows[1], select_across="1")
    assert said(answer) == ["3 extractions queued again."]
    assert set(Extraction.objects.values_list("status", "attempts")) == {("pending", 0)}
    jobs = [failed_job(number) for number in range(3)]
    run_action(boss, "/admin/django_q/failure/", "run_again", jobs[0], select_across="1")
    assert (Failure.objects.count(), OrmQ.objects.filter(key="memoryhub").count() >= 3) == (0, True)


def test_memories_that_nobody_was_reminded_of_are_found(cast: Cast, boss: Client) -> None:
    now = timezone.now()
    for text, created, recalled in (
        ("new", 1, None),
        ("never in 40", 40, None),
        ("never in 100", 100, None),
        ("long ago", 200, 120),
        ("of use", 200, 2),
    ):
        memory = make_memory(text, cast.owner, cast.workspace)
        Memory.objects.filter(pk=memory.pk).update(
            created_at=now - timedelta(days=created),
            last_accessed_at=now - timedelta(days=recalled) if recalled else None,
        )

    def shown(which: str) -> set[str]:
        rows = boss.get(f"{LIST}?recalled={which}").context["cl"].result_list
        return {memory.start for memory in rows}

    assert shown("never-30") == {"never in 40", "never in 100"}
    assert shown("never-90") == {"never in 100"}
    assert shown("stale-90") == {"long ago"}
    counted = figures(boss.get(HOME))
    assert (counted["never recalled"], counted["not recalled for long"]) == ("2", "1")


def test_equal_texts_stand_beside_each_other_where_they_are_one_place(cast: Cast, boss: Client) -> None:
    for author in (cast.owner, cast.editor, cast.owner):
        make_memory("The office closes at six", author, cast.workspace)
    make_memory("The office closes at six", cast.owner, scope="user")  # in other scopes
    make_memory("The office opens at nine", cast.owner, cast.workspace)
    response = boss.get(f"{PAIRS}?kind=equal")
    pairs = response.context["pairs"]
    assert len(pairs) == 2
    assert {each.older.pk for each in pairs} == {Memory.objects.order_by("pk")[0].pk}
    run_action(boss, f"{LIST}?state=every", "forget", *[each.newer for each in pairs])
    assert boss.get(f"{PAIRS}?kind=equal").context["pairs"] == []


def test_what_differs_is_marked() -> None:
    older, newer = Memory(content="Tea at ten in room 4"), Memory(content="Tea at half nine in room 4")
    side_by_side = pair(older, newer)
    assert side_by_side.older_words == [("Tea at", False), ("ten", True), ("in room 4", False)]
    assert side_by_side.newer_words == [("Tea at", False), ("half nine", True), ("in room 4", False)]


def test_long_texts_stand_side_by_side_without_marks() -> None:
    """A word diff of this pair would take seconds."""
    older, newer = Memory(content="a " * 1000), Memory(content="a b " * 500)
    before = time.process_time()
    side_by_side = pair(older, newer)
    assert time.process_time() - before < 0.5
    assert side_by_side.older_words == [(older.content, False)]
    assert side_by_side.newer_words == [(newer.content, False)]


def test_copies_of_one_text_come_in_pages(cast: Cast, boss: Client) -> None:
    rows = [make_memory("The office closes at six", cast.owner, cast.workspace) for _ in range(30)]
    own = [
        make_memory("The office closes at six", cast.editor, cast.workspace, scope="user") for _ in range(2)
    ]
    shown = []
    for page in (1, 2):
        pairs = boss.get(f"{PAIRS}?kind=equal&p={page}").context["pairs"]
        assert 0 < len(pairs) <= PER_PAGE
        shown += [(each.older.pk, each.newer.pk) for each in pairs]
    assert sorted(shown) == [*((rows[0].pk, row.pk) for row in rows[1:]), (own[0].pk, own[1].pk)]
    pairs = staff("view_memory").get(f"{PAIRS}?kind=equal").context["pairs"]
    assert [each.newer.pk for each in pairs] == [row.pk for row in rows[1 : PER_PAGE + 1]]
