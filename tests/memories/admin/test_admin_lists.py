"""The admin's lists of memories: contents, filters, search, and query counts."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.models import Memory
from memories.writing import gate
from memoryhub.llm.base import Embedder
from tests.admin_pages import rows_scanned, staff
from tests.bench.bulk import insert_memories
from tests.conftest import Cast
from tests.factories import make_memory, make_user
from tests.fakes.embedder import FakeEmbedder
from workspaces.index import reembedding

LIST = "/admin/memories/memory/"
MANY = 20_000
pytestmark = pytest.mark.django_db


def shown(client: Client, query: str = "") -> set[str]:
    response = client.get(f"{LIST}?{query}")
    assert response.status_code == 200
    return {memory.content for memory in response.context["cl"].result_list}


def test_filters_show_what_they_say(boss: Client, cast: Cast, fake_embedder: FakeEmbedder) -> None:
    now, ws = timezone.now(), cast.workspace
    make_memory("plain", cast.owner, ws)
    make_memory("fact", cast.owner, ws, category="fact", source_type="auto_chat")
    make_memory("recipe", cast.owner, ws, category="recipe", source_type="zotero")
    make_memory("elsewhere", cast.stranger, pinned=True)
    expired = make_memory("expired", cast.owner, ws, expires_at=now - timedelta(days=1))
    gone = make_memory("gone", cast.owner, ws)
    gate.delete_memory(gone, by=None, now=now)
    bare = make_memory("bare", cast.owner, ws)
    bare.embeddings.all().delete()
    Memory.objects.filter(pk=bare.pk).update(embedding_failed_at=now, may_replace=expired)
    live = {"plain", "fact", "recipe", "elsewhere", "bare"}
    assert shown(boss) == live | {"gone", "expired"}
    assert shown(boss, "state=live") == live
    assert shown(boss, "state=deleted") == {"gone"}
    assert shown(boss, "state=expired") == {"expired"}
    assert shown(boss, f"workspace={ws.pk}&state=live") == live - {"elsewhere"}
    assert shown(boss, "source=auto_chat") == {"fact"}
    assert shown(boss, "source=other") == {"recipe"}
    assert shown(boss, "state=live&vector=with") == live - {"bare"}
    assert shown(boss, "state=live&vector=without") == {"bare"}
    assert shown(boss, "state=live&vector=failed") == {"bare"}
    assert shown(boss, "state=replaces") == {"bare"}
    assert shown(boss, "pinned__exact=1") == {"elsewhere"}
    assert shown(boss, f"workspace={ws.pk}&state=live&source=auto_chat") == {"fact"}


def test_the_vector_filter_asks_for_the_model_that_recall_compares(
    boss: Client, cast: Cast, use_embedder: Callable[[Embedder | None], None]
) -> None:
    make_memory("old model", cast.owner, cast.workspace)
    use_embedder(FakeEmbedder(8, name="newer"))
    assert shown(boss, "vector=with") == {"old model"}
    reembedding.start()
    assert reembedding.advance(seconds=60) == "switched"
    late = make_memory("by nobody yet", cast.owner, cast.workspace)
    late.embeddings.all().delete()
    assert shown(boss, "vector=with") == {"old model"}
    assert shown(boss, "vector=without") == {"by nobody yet"}


def test_search_by_words(boss: Client, cast: Cast) -> None:
    make_memory("The green kettle whistles", cast.owner, cast.workspace)
    make_memory("Wool 100% pure", cast.owner, cast.workspace)
    make_memory("A piano", cast.owner, cast.workspace)
    for text, found in (
        ("kettle", {"The green kettle whistles"}),
        ("KETT", {"The green kettle whistles"}),
        ("whistle green", {"The green kettle whistles"}),
        ("green piano", set()),
        ("histl", {"The green kettle whistles"}),
        ("100%", {"Wool 100% pure"}),
        ("the", {"The green kettle whistles"}),
        ("!!!", set()),
    ):
        response = boss.get(LIST, {"q": text})
        assert {memory.content for memory in response.context["cl"].result_list} == found


def test_a_search_asks_only_what_may_be_read(cast: Cast) -> None:
    """Otherwise a match at the beginning of a personal memory would hide matches inside other memories."""
    make_memory("The overheliotropes bloom", cast.owner, cast.workspace)
    make_memory("My heliotrope is dying", cast.owner, scope="user")
    assert shown(staff("view_memory"), "q=heliotrope") == {"The overheliotropes bloom"}


def test_search_by_id(boss: Client, cast: Cast) -> None:
    origin = {"source_chat_id": "chat_" + "b" * 24, "source_message_id": "msg_" + "c" * 24}
    memory = make_memory("with an origin", cast.owner, cast.workspace, **origin)
    make_memory("without", cast.stranger)
    for public_id in (memory.public_id, *origin.values(), cast.workspace.public_id, cast.owner.public_id):
        assert shown(boss, f"q={public_id}") == {"with an origin"}


def test_a_list_leaves_long_texts_in_the_database(boss: Client, cast: Cast) -> None:
    make_memory("start " + "x" * 1500, cast.owner, cast.workspace, source_excerpt="far away " * 100)
    with CaptureQueriesContext(connection) as captured:
        content = boss.get(LIST).content.decode()
    assert "x" * 100 in content
    assert "x" * 200 not in content
    listed = next(q["sql"] for q in captured if "has_vector" in q["sql"])
    columns = listed.split(" FROM ")[0]
    assert "source_excerpt" not in columns
    assert '"memories_memory"."search"' not in columns


PLANNED = [
    "",
    "state=live",
    "p=5",
    "workspace={workspace}",
    "workspace={workspace}&state=live",
    "source=auto_chat",
    "source=other",
    "vector=with",
    "state=deleted",
    "state=expired",
    "vector=failed",
    "pinned__exact=1",
    "state=replaces",
    "q=house",
    "q=red kettle",
    "q=xyzzyplugh",
    "q={id}",
]


@pytest.fixture
def many(boss: Client) -> dict[str, Any]:
    author = make_user("author")
    workspaces = insert_memories(MANY, author=author, model="fake-64")
    return {"workspace": workspaces[0].pk, "id": Memory.objects.order_by("pk")[MANY // 2].public_id}


def test_no_list_reads_the_whole_table(
    boss: Client, many: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scan that stops at the limit of a count is fine; one of every row is not."""
    monkeypatch.setattr("memories.admin.memory.PARTS_AMONG_NEWEST", MANY // 10)
    for query in PLANNED:
        with CaptureQueriesContext(connection) as captured:
            assert boss.get(f"{LIST}?{query.format(**many)}").status_code == 200
        for statement in [q["sql"] for q in captured if "memories_memory" in q["sql"]]:
            if statement.startswith("SELECT"):
                assert rows_scanned(statement) < MANY / 2, f"{query}: {statement[:2000]}"
