"""The admin's dashboard: contents by permission, the workspace filter, and query counts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import Failure

from memories.admin import activity
from memories.models import Asset, Extraction, Memory, Refusal
from memories.writing import gate
from tests.admin_pages import rows_scanned, run_action, staff
from tests.bench.bulk import insert_memories
from tests.conftest import Cast
from tests.factories import make_memory, make_node
from tests.fakes.embedder import FakeEmbedder
from workspaces.access import default_workspace
from workspaces.models import Workspace

HOME = "/admin/"
LIST = "/admin/memories/memory/"
PAIRS = f"{LIST}pairs/"
MANY = 20_000
HOSTILE = "<script>alert('x')</script> & <img src=x onerror=alert(1)>"
pytestmark = pytest.mark.django_db


def linked(cast: Cast, before: str, after: str, workspace: Workspace | None = None) -> tuple[Memory, Memory]:
    older = make_memory(before, cast.owner, workspace or cast.workspace)
    newer = make_memory(after, cast.editor, workspace or cast.workspace)
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    return older, newer


def failed_extraction(cast: Cast, number: int, workspace: Workspace | None = None) -> Extraction:
    return Extraction.objects.create(
        workspace=workspace or cast.workspace,
        user=cast.owner,
        chat_id=f"chat_{number:024d}",
        message_id=f"msg_{number:024d}",
        source_type="auto_chat",
        status="failed",
        attempts=5,
        error="The model did not answer in time.",
        next_attempt_at=timezone.now(),
    )


def failed_job(number: int = 1) -> Failure:
    now = timezone.now()
    return Failure.objects.create(
        id=f"{number:032d}",
        name="make room",
        func="memories.tasks.evict",
        kwargs={"workspace_id": 1, "owner_id": None},
        started=now,
        stopped=now,
        success=False,
        result="OperationalError in evict\n  a traceback",
    )


def figures(response: Any) -> dict[str, str]:
    return {figure.label: figure.value for group in response.context["groups"] for figure in group.figures}


def text_of(client: Client, page: str = HOME) -> str:
    response = client.get(page)
    assert response.status_code == 200
    return response.content.decode()


# Contents


def test_saved_memories_are_counted_by_day_and_origin(cast: Cast, boss: Client) -> None:
    now = timezone.now()
    for source, ago in (("user", 0), ("auto_chat", 0), ("auto_research", 1), ("zotero", 29), ("user", 31)):
        memory = make_memory(f"{source} {ago}", cast.owner, cast.workspace, source_type=source)
        Memory.objects.filter(pk=memory.pk).update(created_at=now - timedelta(days=ago))
    gone = make_memory("gone since", cast.owner, cast.workspace)
    gate.delete_memory(gone, by=cast.owner, now=now)
    chart = activity.saved(now)
    assert {series.name: series.total for series in chart.series} == {
        activity.PERSON: 2,
        activity.NOTICED: 2,
        activity.OTHERS: 1,
    }
    assert [day.total for day in (chart.days[0], chart.days[-2], chart.days[-1])] == [1, 1, 3]
    assert activity.saved(now, default_workspace(cast.stranger).pk).total == 0
    content = text_of(boss)
    assert "<strong>5</strong> in 30 days" in " ".join(content.split())
    assert "As a table" in content


def test_refusals_are_shown_by_reason_and_kind(cast: Cast, boss: Client) -> None:
    today = timezone.now().date()
    rows = [
        ("openai", "user", 7),
        ("github", "auto_chat", 2),
        ("forgotten", "auto_chat", 3),
        ("invalid", "user", 1),
    ]
    for kind, source, number in rows:
        Refusal.objects.create(
            day=today, workspace=cast.workspace, source_type=source, kind=kind, number=number
        )
    Refusal.objects.create(
        day=today - timedelta(days=40), workspace=cast.workspace, source_type="user", kind="aws", number=9
    )
    chart, kinds = activity.refused(timezone.now())
    assert {series.name: series.total for series in chart.series} == {
        activity.CREDENTIALS: 9,
        activity.FORGOTTEN: 3,
        activity.BROKEN: 1,
    }
    assert [(kind.name, kind.number, kind.share) for kind in kinds] == [("OpenAI", 7, 100), ("GitHub", 2, 28)]
    assert "OpenAI" in text_of(boss)
    listed = text_of(boss, "/admin/memories/refusal/")
    assert "OpenAI" in listed and "Forgotten for good before" in listed and "AWS" in listed
    assert "AWS" not in text_of(boss, "/admin/memories/refusal/?reason=forgotten")


def test_everything_can_be_narrowed_to_a_workspace(cast: Cast, boss: Client) -> None:
    elsewhere = default_workspace(cast.stranger)
    linked(cast, "Tea at ten", "Tea at nine")
    linked(cast, "Coffee at ten", "Coffee at nine", elsewhere)
    for number in range(3):
        failed_extraction(cast, number, elsewhere if number else None)
    failed_job()
    Refusal.objects.create(
        day=timezone.now().date(), workspace=elsewhere, source_type="user", kind="openai", number=4
    )
    everything = boss.get(HOME)
    assert figures(everything)["possible updates"] == "2"
    assert figures(everything)["failed jobs"] == "1"
    one = boss.get(f"{HOME}?workspace={cast.workspace.pk}")
    shown = figures(one)
    assert (shown["possible updates"], shown["failed extractions"], shown["memories in use"]) == (
        "1",
        "1",
        "2",
    )
    assert not shown.keys() & {"failed jobs", "people", "workspaces", "jobs in the queue"}
    content = one.content.decode()
    assert "Tea" in content and "Coffee" not in content
    assert f"{LIST}?workspace={cast.workspace.pk}" in content
    assert "Nothing was refused" in content
    assert "Coffee" not in text_of(boss, f"{PAIRS}?workspace={cast.workspace.pk}")
    page = text_of(boss, f"/admin/workspaces/workspace/{cast.workspace.pk}/change/")
    assert f'href="/admin/?workspace={cast.workspace.pk}"' in page


def test_nonsense_means_all_workspaces(cast: Cast, boss: Client) -> None:
    for asked in ("x", "-1", "9" * 30, "²", "0", "1 OR 1=1"):
        response = boss.get(HOME, {"workspace": asked})
        assert response.status_code == 200
        assert "Everything in all workspaces" in response.content.decode()
        assert boss.get(PAIRS, {"workspace": asked, "p": asked, "kind": asked}).status_code == 200


def test_hostile_text_stays_text(cast: Cast, boss: Client) -> None:
    linked(cast, HOSTILE, f"{HOSTILE} and more")
    make_memory(HOSTILE, cast.editor, cast.workspace)
    Workspace.objects.filter(pk=cast.workspace.pk).update(name=HOSTILE[:50])
    failed = failed_extraction(cast, 1)
    Extraction.objects.filter(pk=failed.pk).update(error=HOSTILE)
    pages = [HOME, f"{HOME}?workspace={cast.workspace.pk}", PAIRS, f"{PAIRS}?kind=equal"]
    content = "".join(text_of(boss, page) for page in pages)
    content += boss.post(
        LIST, {"action": "forget", "_selected_action": list(Memory.objects.values_list("pk", flat=True))}
    ).content.decode()
    assert "<script>alert" not in content
    assert "<img src=x" not in content


# Permissions


def test_each_part_is_shown_to_who_may_see_its_list(cast: Cast, fake_embedder: FakeEmbedder) -> None:
    linked(cast, "Tea at ten", "Tea at nine")
    failed_extraction(cast, 1)
    failed_job()
    nothing = text_of(staff())
    assert "Nothing to look after yet" in nothing
    assert not any(word in nothing for word in ("Tea", "Memories saved", "Not stored", "Failed"))
    looks = text_of(staff("view_memory"))
    assert "Memories saved" in looks and "Tea" in looks
    assert not any(word in looks for word in ("Not stored", "Failed jobs", "Failed extractions", "Keep both"))
    refusals = text_of(staff("view_refusal"))
    assert "Not stored" in refusals and "Memories saved" not in refusals
    jobs = text_of(staff("view_failure"))
    assert "Failed jobs" in jobs and "Retry" not in jobs
    assert "Retry" in text_of(staff("view_failure", "change_failure"))
    changes = text_of(staff("view_memory", "change_memory"))
    assert "Keep both" in changes and "Replace the older" in changes
    deletes = text_of(staff("view_memory", "delete_memory"))
    assert "Replace the older" not in deletes and "Keep both" not in deletes


def test_the_page_of_pairs_needs_the_right_to_look_at_memories(
    cast: Cast, fake_embedder: FakeEmbedder
) -> None:
    linked(cast, "Tea at ten", "Tea at nine")
    assert staff("view_chat").get(PAIRS).status_code == 403
    assert Client().get(PAIRS).status_code == 302
    looks = text_of(staff("view_memory"), PAIRS)
    assert "Tea" in looks and "Keep both" not in looks and "Replace the older" not in looks


def test_workspaces_are_chosen_by_who_may_look_at_them(cast: Cast, fake_embedder: FakeEmbedder) -> None:
    page = f"{HOME}?workspace={cast.workspace.pk}"
    blind = text_of(staff("view_memory"), page)
    assert "Everything in all workspaces" in blind and "choose-workspace" not in blind
    assert "choose-workspace" in text_of(staff("view_memory", "view_workspace"), page)


def test_personal_memories_are_read_by_a_permission_of_its_own(
    cast: Cast, fake_embedder: FakeEmbedder
) -> None:
    """A private chat produces personal memories: not every moderator may read either."""
    older = make_memory("I plan to leave", cast.owner, scope="user")
    newer = make_memory("I plan to stay", cast.owner, scope="user")
    copy = make_memory("I plan to leave", cast.owner, scope="user")
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    pages = [
        LIST,
        f"{LIST}?state=every",
        f"{LIST}?q=plan",
        f"{LIST}?q={older.public_id}",
        f"{LIST}{older.pk}/change/",
        f"{LIST}{older.pk}/delete/",
        f"{LIST}{older.pk}/history/",
        HOME,
        PAIRS,
        f"{PAIRS}?kind=equal",
    ]
    everything = ("view_memory", "change_memory", "delete_memory")
    moderator, trusted = staff(*everything), staff(*everything, "read_personal_memory")
    for page in pages:
        assert "I plan" not in moderator.get(page, follow=True).content.decode(), page
        assert "I plan" in trusted.get(page, follow=True).content.decode(), page
    run_action(moderator, f"{LIST}?state=every", "forget", older, newer, copy)
    assert Memory.objects.filter(deleted_at=None).count() == 3


def test_files_of_personal_memories_are_as_private_as_they_are(
    cast: Cast, fake_embedder: FakeEmbedder
) -> None:
    memory = make_memory("I plan to leave", cast.owner, scope="user")
    file = Asset.objects.create(
        memory=memory,
        name="notice.pdf",
        content_type="application/pdf",
        size=1,
        sha256="0" * 64,
        file_name="x",
        created_by=cast.owner,
    )
    listed, page = "/admin/memories/asset/", f"/admin/memories/asset/{file.pk}/change/"
    moderator, trusted = staff("view_asset"), staff("view_asset", "read_personal_memory")
    for address in (listed, page, f"{listed}?q={file.public_id}"):
        content = moderator.get(address, follow=True).content.decode()
        assert "notice.pdf" not in content and "I plan" not in content
    assert "notice.pdf" in text_of(trusted, listed)
    assert "I plan" in text_of(trusted, page)


def test_topics_of_one_person_are_for_staff_who_may_read_personal_memories(cast: Cast) -> None:
    make_memory("Zelda owes me ten euros", cast.owner, scope="user")
    own = default_workspace(cast.owner)
    topic = make_node(cast.owner, own, name="Zelda", gathers_by_name=True)
    shared = make_node(cast.owner, cast.workspace, name="Apollo")
    moderator, trusted = staff("view_memorynode"), staff("view_memorynode", "read_personal_memory")
    listed = "/admin/memories/memorynode/"
    for address in (listed, f"{listed}{topic.pk}/change/", f"{listed}?q={topic.public_id}"):
        assert "Zelda" not in moderator.get(address, follow=True).content.decode()
    assert shared.name in text_of(moderator, listed)
    assert "Zelda" in text_of(trusted, listed)


# Query counts


@pytest.mark.django_db(transaction=True)
def test_no_part_reads_the_whole_table(boss: Client, cast: Cast, fake_embedder: FakeEmbedder) -> None:
    """Queries scan at most the entries of an index, never all rows."""
    insert_memories(MANY, author=cast.owner, model="fake-64")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE memories_memory")  # index-only scans need the visibility map
    for page in (HOME, f"{HOME}?workspace={cast.workspace.pk}", PAIRS, f"{PAIRS}?kind=equal"):
        with CaptureQueriesContext(connection) as captured:
            boss.get(page)
        for statement in [q["sql"] for q in captured if "memories_memory" in q["sql"]]:
            # The count of memories without a vector joins the whole other table.
            if statement.startswith("SELECT") and "passagevector" not in statement:
                assert rows_scanned(statement) < MANY / 2, f"{page}: {statement[:2000]}"
