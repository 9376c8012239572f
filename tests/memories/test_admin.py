"""Moderating memories: what lists show and cost, what forms and actions do, and that all of it passes the gate."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.contrib.messages import get_messages
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from memories import gate, reembedding
from memories.models import Extraction, Memory, Receipt
from memoryhub.llm.base import Embedder
from tests.admin_pages import run_action, said
from tests.bench.bulk import insert_memories
from tests.conftest import Cast
from tests.factories import make_memory, make_user
from tests.fakes.embedder import FakeEmbedder

LIST = "/admin/memories/memory/"
MANY = 20_000
HOSTILE = "<script>alert('x')</script> & <img src=x onerror=alert(1)>"
pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_client(fake_embedder: FakeEmbedder) -> Client:
    client = Client()
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    return client


def staff_with(*codenames: str) -> Client:
    user = make_user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


def run(client: Client, action: str, *rows: Any, at: str = LIST) -> list[str]:
    """Run an action on these rows; the sentences it says."""
    page = f"{at}?state=every" if at == LIST else at
    return said(run_action(client, page, action, *rows))


def shown(client: Client, query: str = "") -> set[str]:
    response = client.get(f"{LIST}?{query}")
    assert response.status_code == 200
    return {memory.start for memory in response.context["cl"].result_list}


# Lists


def test_the_list_shows_live_memories_escaped(admin_client: Client, cast: Cast) -> None:
    make_memory(HOSTILE, cast.owner, cast.workspace, category="<b>bold</b>", source_type="<i>odd</i>")
    content = admin_client.get(LIST).content.decode()
    assert "<script>alert" not in content
    assert "<img src=x" not in content
    assert "<b>bold" not in content
    assert "<i>odd" not in content
    assert "&lt;script&gt;alert" in content


def test_the_page_of_a_memory_escapes_it_everywhere(admin_client: Client, cast: Cast) -> None:
    older = make_memory(HOSTILE, cast.owner, cast.workspace, source_excerpt=HOSTILE)
    newer = make_memory("Plain", cast.owner, cast.workspace)
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    gate.edit_memory(older, by=cast.owner, now=timezone.now(), content=HOSTILE + " again")
    for memory in (older, newer):
        for page in ("change/", "delete/", "history/"):
            content = admin_client.get(f"{LIST}{memory.pk}/{page}").content.decode()
            assert "<script>alert" not in content
            assert "<img src=x" not in content


def test_filters_show_what_they_say(admin_client: Client, cast: Cast, fake_embedder: FakeEmbedder) -> None:
    now, ws = timezone.now(), cast.workspace
    make_memory("plain", cast.owner, ws)
    make_memory("fact", cast.owner, ws, category="fact", source_type="auto_chat")
    make_memory("recipe", cast.owner, ws, category="recipe", source_type="zotero")
    make_memory("elsewhere", cast.stranger, pinned=True)
    expired = make_memory("expired", cast.owner, ws, expires_at=now - timedelta(days=1))
    gone = make_memory("gone", cast.owner, ws)
    gate.delete_memory(gone, by=None, now=now)
    bare = make_memory("bare", cast.owner, ws, source_chat_id="chat_" + "a" * 24)
    bare.embeddings.all().delete()
    Memory.objects.filter(pk=bare.pk).update(embedding_failed_at=now, may_replace=expired)
    Extraction.objects.create(
        workspace=ws,
        user=cast.owner,
        chat_id="chat_" + "a" * 24,
        message_id="msg_" + "a" * 24,
        source_type="auto_chat",
        status="failed",
        next_attempt_at=now,
    )
    live = {"plain", "fact", "recipe", "elsewhere", "bare"}
    assert shown(admin_client) == live
    assert shown(admin_client, "state=deleted") == {"gone"}
    assert shown(admin_client, "state=expired") == {"expired"}
    assert shown(admin_client, "state=every") == live | {"gone", "expired"}
    assert shown(admin_client, f"workspace={ws.pk}") == live - {"elsewhere"}
    assert shown(admin_client, f"author={cast.stranger.pk}") == {"elsewhere"}
    assert shown(admin_client, "category=fact") == {"fact"}
    assert shown(admin_client, "category=other") == {"recipe"}
    assert shown(admin_client, "category=none") == {"plain", "elsewhere", "bare"}
    assert shown(admin_client, "source=auto_chat") == {"fact"}
    assert shown(admin_client, "source=other") == {"recipe"}
    assert shown(admin_client, "vector=with") == live - {"bare"}
    assert shown(admin_client, "vector=without") == {"bare"}
    assert shown(admin_client, "vector=failed") == {"bare"}
    assert shown(admin_client, "review=replaces") == {"bare"}
    assert shown(admin_client, "review=extraction-failed") == {"bare"}
    assert shown(admin_client, "review=pinned") == {"elsewhere"}
    assert shown(admin_client, f"workspace={ws.pk}&state=every&category=fact") == {"fact"}


def test_the_vector_filter_asks_for_the_model_that_recall_compares(
    admin_client: Client, cast: Cast, use_embedder: Callable[[Embedder | None], None]
) -> None:
    make_memory("old model", cast.owner, cast.workspace)
    use_embedder(FakeEmbedder(8, name="newer"))
    assert shown(admin_client, "vector=with") == {"old model"}
    reembedding.start()
    assert reembedding.advance(seconds=60) == "switched"
    late = make_memory("by nobody yet", cast.owner, cast.workspace)
    late.embeddings.all().delete()
    assert shown(admin_client, "vector=with") == {"old model"}
    assert shown(admin_client, "vector=without") == {"by nobody yet"}


def test_a_filter_keeps_the_search_and_the_other_filters(admin_client: Client, cast: Cast) -> None:
    make_memory("The kettle is green", cast.owner, cast.workspace, category="fact")
    content = admin_client.get(f"{LIST}?q=kettle&category=fact").content.decode()
    form = content.split('class="filter-search"')[1].split("</form>")[0]
    assert 'name="q" value="kettle"' in form
    assert 'name="category" value="fact"' in form


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("kettle", {"The green kettle whistles"}),
        ("KETT", {"The green kettle whistles"}),
        ("whistle green", {"The green kettle whistles"}),
        ("green piano", set()),
        ("histl", {"The green kettle whistles"}),
        ("100%", {"Wool 100% pure"}),
        ("the", {"The green kettle whistles"}),
        ("!!!", set()),
    ],
)
def test_search_by_words(admin_client: Client, cast: Cast, text: str, found: set[str]) -> None:
    make_memory("The green kettle whistles", cast.owner, cast.workspace)
    make_memory("Wool 100% pure", cast.owner, cast.workspace)
    make_memory("A piano", cast.owner, cast.workspace)
    response = admin_client.get(LIST, {"q": text})
    assert {memory.start for memory in response.context["cl"].result_list} == found


def test_search_by_id(admin_client: Client, cast: Cast) -> None:
    origin = {"source_chat_id": "chat_" + "b" * 24, "source_message_id": "msg_" + "c" * 24}
    memory = make_memory("with an origin", cast.owner, cast.workspace, **origin)
    make_memory("without", cast.stranger)
    for public_id in (memory.public_id, *origin.values(), cast.workspace.public_id, cast.owner.public_id):
        assert shown(admin_client, f"q={public_id}") == {"with an origin"}


def test_lists_cost_the_same_queries_for_five_and_for_fifty(admin_client: Client, cast: Cast) -> None:
    def queries(page: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert admin_client.get(page).status_code == 200
        return len(captured)

    def more(number: int) -> None:
        for n in range(number):
            memory = make_memory(f"{n} " + "long " * 100, make_user(), cast.workspace)
            place = {"workspace": cast.workspace, "user": cast.owner, "message_id": memory.public_id}
            Extraction.objects.create(
                **place, chat_id="c", source_type="auto_chat", next_attempt_at=timezone.now()
            )
            Receipt.objects.create(**place, ranking="hybrid", threshold=0.3)

    pages = (LIST, f"{LIST}?q=long", "/admin/memories/extraction/", "/admin/memories/receipt/")
    more(5)
    first = [queries(page) for page in pages]
    more(45)
    assert [queries(page) for page in pages] == first
    assert max(first) <= 12


def test_a_list_leaves_long_texts_in_the_database(admin_client: Client, cast: Cast) -> None:
    make_memory("start " + "x" * 1500, cast.owner, cast.workspace, source_excerpt="far away " * 100)
    with CaptureQueriesContext(connection) as captured:
        content = admin_client.get(LIST).content.decode()
    assert "x" * 100 in content
    assert "x" * 200 not in content
    listed = next(q["sql"] for q in captured if "has_vector" in q["sql"])
    columns = listed.split(" FROM ")[0]
    assert "source_excerpt" not in columns
    assert '"memories_memory"."search"' not in columns


PLANNED = [
    "",
    "state=every",
    "p=5",
    "workspace={workspace}",
    "workspace={workspace}&state=every",
    "category=fact",
    "category=other",
    "category=none",
    "source=auto_chat",
    "source=other",
    "vector=with",
    "state=deleted",
    "state=expired",
    "vector=failed",
    "review=pinned",
    "review=replaces",
    "review=extraction-failed",
    "q=house",
    "q=red kettle",
    "q=xyzzyplugh",
    "q={id}",
]


@pytest.fixture
def many(admin_client: Client) -> dict[str, Any]:
    author = make_user("author")
    workspaces = insert_memories(MANY, author=author, model="fake-64")
    return {"workspace": workspaces[0].pk, "id": Memory.objects.order_by("pk")[MANY // 2].public_id}


def test_no_list_reads_the_whole_table(
    admin_client: Client, many: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scan that stops at the bound of a count is fine; one that goes through every row is not."""
    monkeypatch.setattr("memories.admin.search.PARTS_AMONG_NEWEST", MANY // 10)
    for query in PLANNED:
        with CaptureQueriesContext(connection) as captured:
            assert admin_client.get(f"{LIST}?{query.format(**many)}").status_code == 200
        for statement in [q["sql"] for q in captured if "memories_memory" in q["sql"]]:
            if statement.startswith("SELECT"):
                assert rows_scanned(statement) < MANY / 2, f"{query}: {statement[:2000]}"


def rows_scanned(statement: str) -> int:
    """How many rows of memories sequential scans of this statement really read."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + statement)
        nodes, read = [cursor.fetchone()[0][0]["Plan"]], 0
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] == "memories_memory":
            read += (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return read


# Forms


FORM = {
    "content": "The kettle is green",
    "importance": "0.5",
    "tags": "",
    "expires_at_0": "",
    "expires_at_1": "",
    "revisions-TOTAL_FORMS": "0",
    "revisions-INITIAL_FORMS": "0",
}


def test_adding_goes_through_the_gate(admin_client: Client, cast: Cast) -> None:
    values = FORM | {
        "workspace": cast.workspace.pk,
        "content": "  The kettle is green ",
        "tags": "tea, kitchen",
    }
    response = admin_client.post(f"{LIST}add/", values)
    assert response.status_code == 302
    memory = Memory.objects.get()
    assert (memory.content, memory.tags, memory.category) == ("The kettle is green", ["tea", "kitchen"], None)
    assert memory.author is not None
    assert memory.author.username == "root"
    assert memory.embeddings.count() == 1
    assert memory.revisions.get().by == memory.author


def test_adding_what_is_known_leads_to_the_memory_that_says_it(admin_client: Client, cast: Cast) -> None:
    known = make_memory("The kettle is green", cast.owner, cast.workspace)
    response = admin_client.post(f"{LIST}add/", FORM | {"workspace": cast.workspace.pk})
    assert response["Location"] == f"{LIST}{known.pk}/change/"
    assert "known already" in str(next(iter(get_messages(response.wsgi_request))))
    assert Memory.objects.count() == 1


@pytest.mark.parametrize("page", ["add/", "{pk}/change/"])
@pytest.mark.parametrize(
    ("values", "field", "sentence"),
    [
        ({"content": "api_key = 'sk-proj-" + "a1B2c3D4" * 5 + "'"}, "content", "Looks like a credential."),
        ({"tags": "x" * 51}, "tags", "50"),
        ({"content": "   "}, "content", "required"),
        ({"content": "x" * 2001}, "content", "2000"),
        ({"importance": "7"}, "importance", "1"),
    ],
)
def test_refusals_are_shown_at_the_field(
    admin_client: Client, cast: Cast, page: str, values: dict[str, str], field: str, sentence: str
) -> None:
    memory = make_memory("Untouched", cast.owner, cast.workspace)
    response = admin_client.post(
        LIST + page.format(pk=memory.pk), FORM | {"workspace": cast.workspace.pk} | values
    )
    assert response.status_code == 200
    assert sentence in " ".join(response.context["adminform"].form.errors[field])
    assert list(Memory.objects.values_list("content", flat=True)) == ["Untouched"]


def test_a_key_that_is_taken_is_said_in_the_form(admin_client: Client, cast: Cast) -> None:
    make_memory("Tea", cast.owner, cast.workspace, key="drink")
    other = make_memory("Coffee", cast.owner, cast.workspace)
    response = admin_client.post(f"{LIST}{other.pk}/change/", FORM | {"content": "Coffee", "key": "drink"})
    assert response.status_code == 200
    assert "Is taken." in response.context["adminform"].form.errors["key"]


def test_editing_leaves_a_revision_and_a_new_vector(admin_client: Client, cast: Cast) -> None:
    memory = make_memory("The kettle is green", cast.owner, cast.workspace, source_excerpt="somebody said so")
    values = FORM | {"content": "The kettle is red", "category": "fact", "pinned": "on"}
    assert admin_client.post(f"{LIST}{memory.pk}/change/", values).status_code == 302
    memory.refresh_from_db()
    assert (memory.content, memory.category, memory.pinned) == ("The kettle is red", "fact", True)
    assert memory.source_excerpt == ""
    revision = memory.revisions.first()
    assert revision is not None
    assert revision.by is not None
    assert (revision.action, revision.by.username) == ("edit", "root")
    assert revision.before["content"] == "The kettle is green"


def test_saving_without_a_change_changes_nothing(admin_client: Client, cast: Cast) -> None:
    memory = make_memory("The kettle is green", cast.owner, cast.workspace, summary="green", tags=["tea"])
    page = admin_client.get(f"{LIST}{memory.pk}/change/")
    initial = page.context["adminform"].form.initial
    values = FORM | {"summary": initial["summary"], "tags": "tea"}
    assert admin_client.post(f"{LIST}{memory.pk}/change/", values).status_code == 302
    assert memory.revisions.count() == 1


def test_a_forgotten_memory_is_shown_but_not_edited(admin_client: Client, cast: Cast) -> None:
    memory = gate.delete_memory(make_memory("Gone", cast.owner, cast.workspace), by=None, now=timezone.now())
    page = f"{LIST}{memory.pk}/change/"
    assert b"forgotten" in admin_client.get(page).content
    assert admin_client.post(page, FORM).status_code == 403
    assert admin_client.post(f"{LIST}{memory.pk}/delete/", {"post": "yes"}).status_code == 403


def test_the_delete_page_forgets_softly(admin_client: Client, cast: Cast) -> None:
    memory = make_memory("Here", cast.owner, cast.workspace)
    page = admin_client.get(f"{LIST}{memory.pk}/delete/")
    assert b"can be restored" in page.content
    assert admin_client.post(f"{LIST}{memory.pk}/delete/", {"post": "yes"}).status_code == 302
    memory.refresh_from_db()
    assert memory.deleted_at is not None
    assert memory.content == "Here"


# Actions


def test_forget_says_how_many_and_how_many_were_already(admin_client: Client, cast: Cast) -> None:
    memories = [make_memory(f"Memory {n}", cast.owner, cast.workspace) for n in range(4)]
    gate.delete_memory(memories[0], by=cast.owner, now=timezone.now())
    assert run(admin_client, "forget", *memories) == ["3 memories forgotten, 1 was already."]
    assert Memory.objects.filter(deleted_at=None).count() == 0
    revision = memories[3].revisions.first()
    assert revision is not None
    assert revision.by is not None
    assert (revision.action, revision.by.username) == ("delete", "root")


def test_restore_brings_them_back(admin_client: Client, cast: Cast) -> None:
    gone, here = (make_memory(text, cast.owner, cast.workspace) for text in ("Gone", "Here"))
    gate.delete_memory(gone, by=None, now=timezone.now())
    assert run(admin_client, "restore", gone, here) == ["1 memory restored, 1 was not forgotten."]
    assert shown(admin_client) == {"Gone", "Here"}


def test_embed_anew_queues_a_job(
    admin_client: Client, cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    memory = make_memory("Embed me", cast.owner, cast.workspace)
    Memory.objects.filter(pk=memory.pk).update(embedding_failed_at=timezone.now())
    with django_capture_on_commit_callbacks(execute=True):
        assert run(admin_client, "embed_anew", memory) == ["1 memory queued to be embedded anew."]
    assert [job.task["kwargs"] for job in OrmQ.objects.all()] == [{"memory_ids": [memory.pk]}]
    memory.refresh_from_db()
    assert memory.embedding_failed_at is None


def test_embed_anew_without_an_embedder_says_so(
    admin_client: Client, cast: Cast, use_embedder: Callable[[Embedder | None], None]
) -> None:
    memory = make_memory("Embed me", cast.owner, cast.workspace)
    use_embedder(None)
    assert run(admin_client, "embed_anew", memory) == ["No embedder is configured, so nothing was queued."]
    assert b"no embedder" in admin_client.get(LIST).content


def test_extract_anew_queues_those_with_a_source(
    admin_client: Client, cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    sourced = make_memory("Said", cast.owner, cast.workspace, source_message_id="msg_" + "d" * 24)
    typed = make_memory("Typed", cast.owner, cast.workspace)
    with django_capture_on_commit_callbacks(execute=True):
        done, refused = run(admin_client, "extract_anew", sourced, typed)
    assert done == "1 memory queued to be extracted anew."
    assert refused.startswith("1 was refused.")
    assert typed.public_id in refused
    assert OrmQ.objects.count() == 1


def test_a_possible_update_is_decided(admin_client: Client, cast: Cast) -> None:
    older, newer, other = (
        make_memory(text, cast.owner, cast.workspace) for text in ("Older", "Newer", "Other")
    )
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    assert run(admin_client, "replace_older", newer, other) == ["1 memory replaced an older one."]
    assert shown(admin_client) == {"Newer", "Other"}
    Memory.objects.filter(pk=newer.pk).update(may_replace=other)
    assert run(admin_client, "keep_both", newer) == ["1 memory kept beside the older one."]
    assert shown(admin_client, "review=replaces") == set()


def test_a_huge_selection_is_refused(
    admin_client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryhub.admin_actions.AT_ONCE", 2)
    memories = [make_memory(f"Memory {n}", cast.owner, cast.workspace) for n in range(3)]
    response = admin_client.post(
        LIST, {"action": "forget", "select_across": "1", "_selected_action": [memories[0].pk]}
    )
    assert "nothing was done" in str(next(iter(get_messages(response.wsgi_request))))
    assert Memory.objects.filter(deleted_at=None).count() == 3


def test_actions_need_the_permission_they_name(fake_embedder: FakeEmbedder, cast: Cast) -> None:
    memory = make_memory("Stays", cast.owner, cast.workspace)
    looker = staff_with("view_memory")
    run(looker, "forget", memory)
    changer = staff_with("view_memory", "change_memory")
    run(changer, "forget", memory)
    memory.refresh_from_db()
    assert memory.deleted_at is None
    offered = changer.get(LIST).content.decode()
    assert 'value="restore"' in offered
    assert 'value="forget"' not in offered
    deleter = staff_with("view_memory", "delete_memory")
    assert run(deleter, "forget", memory) == ["1 memory forgotten."]


def test_failed_extractions_are_retried(
    admin_client: Client, cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    place = {"workspace": cast.workspace, "user": cast.owner, "chat_id": "c", "source_type": "auto_chat"}
    rows = [
        Extraction.objects.create(
            **place,
            message_id=f"msg_{status}",
            status=status,
            attempts=5,
            error="broke",
            next_attempt_at=timezone.now(),
        )
        for status in ("failed", "done")
    ]
    with django_capture_on_commit_callbacks(execute=True):
        said = run(admin_client, "retry", *rows, at="/admin/memories/extraction/")
    assert said == ["1 extraction queued again, 1 had not failed."]
    rows[0].refresh_from_db()
    assert (rows[0].status, rows[0].attempts) == ("pending", 0)
    assert OrmQ.objects.count() == 1
    listed = admin_client.get("/admin/memories/extraction/?status=done").context["cl"].result_list
    assert [row.message_id for row in listed] == ["msg_done"]
