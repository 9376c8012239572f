"""The admin as a dashboard: what it shows to whom, narrowed to a workspace, at what cost, and what it can set right."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import Failure, OrmQ

from memories import gate
from memories.admin import activity
from memories.admin.pairs import pair
from memories.models import Asset, Extraction, Memory, Refusal
from tests.admin_pages import run_action, said
from tests.bench.bulk import insert_memories
from tests.conftest import Cast
from tests.factories import make_memory, make_user
from tests.fakes.embedder import FakeEmbedder
from workspaces.access import default_workspace
from workspaces.models import AuditEvent, Workspace

HOME = "/admin/"
LIST = "/admin/memories/memory/"
PAIRS = f"{LIST}pairs/"
MANY = 20_000
HOSTILE = "<script>alert('x')</script> & <img src=x onerror=alert(1)>"
pytestmark = pytest.mark.django_db


def staff(*codenames: str, **fields: Any) -> Client:
    client, user = Client(), make_user(is_staff=True, **fields)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    return client


@pytest.fixture
def boss(fake_embedder: FakeEmbedder) -> Client:
    return staff(is_superuser=True)


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


# What is shown


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


@pytest.mark.parametrize("asked", ["x", "-1", "9" * 30, "²", "0", "1 OR 1=1"])
def test_nonsense_means_all_workspaces(cast: Cast, boss: Client, asked: str) -> None:
    response = boss.get(HOME, {"workspace": asked})
    assert response.status_code == 200
    assert "Everything in all workspaces" in response.content.decode()
    assert boss.get(PAIRS, {"workspace": asked, "p": asked, "kind": asked}).status_code == 200


def test_an_empty_installation_says_so(boss: Client) -> None:
    content = text_of(boss)
    assert "Nothing was saved in the last 30 days." in content
    assert "Nothing was refused in the last 30 days." in content
    assert "Nothing stands side by side" in text_of(boss, PAIRS)
    assert "No text is stored twice here." in text_of(boss, f"{PAIRS}?kind=equal")


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


# Who may see and do what


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
    assert "Keep both" in changes and "Replace the older" not in changes
    deletes = text_of(staff("view_memory", "delete_memory"))
    assert "Replace the older" in deletes and "Keep both" not in deletes


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
    """What is said in a private chat becomes a personal memory: neither is for every moderator's eyes."""
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


# Setting things right


def test_replacing_asks_first_is_noted_and_can_be_undone(cast: Cast, boss: Client) -> None:
    older, newer = linked(cast, "Tea at ten", "Tea at nine")
    asked = boss.post(
        f"{LIST}?state=every", {"action": "replace_older", "_selected_action": [newer.pk], "next": PAIRS}
    )
    page = asked.content.decode()
    assert "1 memory?" in page and "Tea at nine" in page and f"1 in {cast.workspace.name}" in page
    assert Memory.objects.filter(deleted_at=None).count() == 2
    assert not AuditEvent.objects.filter(verb="admin_action").exists()

    answer = {"action": "replace_older", "_selected_action": [newer.pk], "next": PAIRS}
    done = boss.post(f"{LIST}?state=every", answer | {"confirmed": asked.context["confirmed"]}, follow=True)
    assert done.redirect_chain == [(PAIRS, 302)]
    assert said(done) == ["1 memory replaced an older one."]
    older.refresh_from_db()
    assert older.deleted_at is not None
    event = AuditEvent.objects.get(verb="admin_action")
    assert event.target == newer.public_id
    assert "Tea" not in str(event.details)

    undo = boss.session["admin_undo"]
    assert ">Undo</button>" in done.content.decode()
    boss.post(
        undo["url"],
        {"action": undo["action"], "_selected_action": undo["key"], "confirmed": undo["confirmed"]},
    )
    older.refresh_from_db()
    assert older.deleted_at is None


def test_keeping_both_takes_the_pair_off_the_page(cast: Cast, boss: Client) -> None:
    _, newer = linked(cast, "Tea at ten", "Tea at nine")
    run_action(boss, f"{LIST}?state=every", "keep_both", newer)
    assert "Nothing stands side by side" in text_of(boss, PAIRS)
    assert Memory.objects.filter(deleted_at=None).count() == 2


def test_what_is_done_is_what_was_asked_about(cast: Cast, boss: Client) -> None:
    """Signed: for these rows, this action and this person."""
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
    # Whatever stands in the form beside it, the signed rows are the ones.
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
    client = staff("view_memory", "delete_memory")  # restoring needs the right to change
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
    assert not Extraction.objects.filter(status="failed").exists()
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
    make_memory("The office closes at six", cast.owner, scope="user")  # another place, and one of its own
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


# What it costs


def test_pages_cost_the_same_queries_for_few_and_for_many(cast: Cast, boss: Client) -> None:
    pages = (
        HOME,
        f"{HOME}?workspace={cast.workspace.pk}",
        PAIRS,
        f"{PAIRS}?kind=equal",
        "/admin/memories/refusal/",
    )

    def queries(page: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert boss.get(page).status_code == 200
        return len(captured)

    def more(start: int, number: int) -> None:
        for n in range(start, start + number):
            linked(cast, f"Tea {n} at ten", f"Tea {n} at nine")
            for _ in range(2):
                make_memory(f"Twice {n}", make_user(), cast.workspace)
            failed_extraction(cast, n)
            failed_job(n)
            Refusal.objects.create(
                day=timezone.now().date() - timedelta(days=n),
                workspace=cast.workspace,
                source_type="user",
                kind="openai",
            )

    more(0, 6)
    first = [queries(page) for page in pages]
    more(6, 15)
    assert [queries(page) for page in pages] == first
    assert max(first) <= 34
    assert max(first[2:]) <= 9


def test_asking_costs_the_same_for_few_and_for_many(cast: Cast, boss: Client) -> None:
    def queries(memories: list[Memory]) -> int:
        with CaptureQueriesContext(connection) as captured:
            boss.post(LIST, {"action": "forget", "_selected_action": [memory.pk for memory in memories]})
        return len(captured)

    memories = [make_memory(f"Memory {n}", make_user(), cast.workspace) for n in range(30)]
    assert queries(memories[:2]) == queries(memories)


@pytest.mark.django_db(transaction=True)
def test_no_part_reads_the_whole_table(boss: Client, cast: Cast, fake_embedder: FakeEmbedder) -> None:
    """At most the entries of an index are walked, never all the rows."""
    insert_memories(MANY, author=cast.owner, model="fake-64")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE memories_memory")  # days are read off the index where rows are settled
    for page in (HOME, f"{HOME}?workspace={cast.workspace.pk}", PAIRS, f"{PAIRS}?kind=equal"):
        with CaptureQueriesContext(connection) as captured:
            boss.get(page)
        for statement in [q["sql"] for q in captured if "memories_memory" in q["sql"]]:
            # Which have no vector is asked of all: the other table is looked at beside this one.
            if statement.startswith("SELECT") and "memoryembedding" not in statement:
                assert rows_scanned(statement) < MANY / 2, f"{page}: {statement[:2000]}"


def rows_scanned(statement: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + statement)
        nodes, read = [cursor.fetchone()[0][0]["Plan"]], 0
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] == "memories_memory":
            read += (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return read
