"""The admin's overview: figures by permission, what staff may not see, and query counts."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import Failure

from memories.models import Asset, Extraction, Memory
from tests.admin_pages import figures, rows_scanned, run_action, staff
from tests.bench.bulk import insert_memories
from tests.conftest import Cast
from tests.factories import make_memory, make_node
from tests.fakes.embedder import FakeEmbedder
from workspaces.access import default_workspace
from workspaces.models import Workspace

HOME = "/admin/"
LIST = "/admin/memories/memory/"
MANY = 8_000
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


def text_of(client: Client, page: str = HOME) -> str:
    response = client.get(page)
    assert response.status_code == 200
    return response.content.decode()


def test_hostile_text_stays_text(cast: Cast, boss: Client) -> None:
    linked(cast, HOSTILE, f"{HOSTILE} and more")
    make_memory(HOSTILE, cast.editor, cast.workspace)
    Workspace.objects.filter(pk=cast.workspace.pk).update(name=HOSTILE[:50])
    failed = failed_extraction(cast, 1)
    Extraction.objects.filter(pk=failed.pk).update(error=HOSTILE)
    boxes = list(Memory.objects.values_list("pk", flat=True))
    asked = [
        boss.post(LIST, {"action": name, "_selected_action": boxes}) for name in ("forget", "replace_older")
    ]
    content = text_of(boss) + "".join(page.content.decode() for page in asked)
    assert "<script>alert" not in content
    assert "<img src=x" not in content


# Permissions


def test_each_figure_is_shown_to_who_may_see_its_list(cast: Cast, fake_embedder: FakeEmbedder) -> None:
    linked(cast, "Tea at ten", "Tea at nine")
    failed_extraction(cast, 1)
    failed_job()
    everything = figures(staff(is_superuser=True).get(HOME))
    assert {label for label, figure in everything.items() if figure.needs_attention} >= {
        "possible updates",
        "failed extractions",
        "failed jobs",
    }
    shown = []
    for permission in ("memory", "extraction", "document", "embeddingmodel", "workspace", "user", "modeluse"):
        shown += figures(staff(f"view_{permission}").get(HOME))
    assert {*shown, "failed jobs", "jobs in the queue"} == set(everything) and len(shown) == len(set(shown))
    assert list(figures(staff("view_failure").get(HOME))) == ["failed jobs"]
    nothing = staff().get(HOME)
    assert (
        figures(nothing) == {}
        if "groups" in nothing.context
        else "has no permissions" in str(nothing.content)
    )


def test_personal_memories_are_read_by_a_permission_of_its_own(
    cast: Cast, fake_embedder: FakeEmbedder
) -> None:
    """A private chat produces personal memories: not every moderator may read either."""
    older = make_memory("I plan to leave", cast.owner, scope="user")
    newer = make_memory("I plan to stay", cast.owner, scope="user")
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    pages = [
        LIST,
        f"{LIST}?q=plan",
        f"{LIST}?q={older.public_id}",
        f"{LIST}{older.pk}/change/",
        f"{LIST}{older.pk}/history/",
        f"{LIST}?state=replaces",
    ]
    everything = ("view_memory", "change_memory", "delete_memory")
    moderator, trusted = staff(*everything), staff(*everything, "read_personal_memory")
    for page in pages:
        assert "I plan" not in moderator.get(page, follow=True).content.decode(), page
        assert "I plan" in trusted.get(page, follow=True).content.decode(), page
    run_action(moderator, LIST, "forget", older, newer)
    assert Memory.objects.filter(deleted_at=None).count() == 2


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


def test_asking_costs_the_same_for_few_and_for_many(cast: Cast, boss: Client) -> None:
    def queries(pairs: list[tuple[Memory, Memory]]) -> int:
        with CaptureQueriesContext(connection) as captured:
            boss.post(LIST, {"action": "keep_both", "_selected_action": [newer.pk for _, newer in pairs]})
        return len(captured)

    pairs = [linked(cast, f"Tea {n} at ten", f"Tea {n} at nine") for n in range(20)]
    assert queries(pairs[:2]) == queries(pairs)


@pytest.mark.django_db(transaction=True)
def test_no_part_reads_the_whole_table(boss: Client, cast: Cast, fake_embedder: FakeEmbedder) -> None:
    """Queries scan at most the entries of an index, never all rows."""
    insert_memories(MANY, author=cast.owner, model="fake-64")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE memories_memory")  # index-only scans need the visibility map
    with CaptureQueriesContext(connection) as captured:
        boss.get(HOME)
    for statement in [q["sql"] for q in captured if "memories_memory" in q["sql"]]:
        # The count of memories without a vector joins the whole other table.
        if statement.startswith("SELECT") and "passagevector" not in statement:
            assert rows_scanned(statement) < MANY / 2, statement[:2000]
