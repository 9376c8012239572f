from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from memories.models import Memory, Scope
from memories.recalling.recall import recall
from memories.writing.gate import delete_memory
from memoryhub.errors import Invalid, NotFound
from memoryhub.llm.base import Embedder
from tests.conftest import Cast
from tests.factories import HERE, make_memory, make_workspace
from tests.fakes.embedder import FakeEmbedder
from workspaces.access import default_workspace

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


def contents(query: str, cast: Cast, **options: object) -> list[str]:
    found = recall(query, cast.workspace, cast.editor, **{"now": timezone.now(), **options}, policy=HERE)  # type: ignore[arg-type]
    return [item.memory.content for item in found.items]


@pytest.fixture
def some(cast: Cast) -> Cast:
    for text in (
        "The project deadline is March 15",
        "I am vegetarian",
        "The office is in Lisbon",
        "My dog is Rufus",
    ):
        make_memory(text, cast.editor, cast.workspace)
    return cast


def test_finds_by_meaning_and_by_words(some: Cast) -> None:
    cases = [
        ("when is it due?", "The project deadline is March 15"),
        ("what should we cook for me tonight?", "I am vegetarian"),
        ("Rufus", "My dog is Rufus"),
        ("where do we work?", "The office is in Lisbon"),
    ]
    for query, expected in cases:
        assert contents(query, some)[0] == expected, query


def test_blank_query_or_limit_below_one_gives_nothing_and_embeds_nothing(
    some: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Embedder:
        raise AssertionError("the embedder was called")

    monkeypatch.setattr("workspaces.index.embedding.get_embedder", fail)
    for query, limit in (("", 5), ("   ", 5), ("\x00", 5), ("Rufus", 0), ("Rufus", -1)):
        assert contents(query, some, limit=limit) == [], (query, limit)


def test_an_unknown_ranking_names_the_allowed_ones(some: Cast) -> None:
    with pytest.raises(Invalid, match="hybrid"):
        recall("x", some.workspace, some.editor, ranking="magic", policy=HERE, now=timezone.now())


def test_a_stranger_finds_nothing_there(some: Cast) -> None:
    with pytest.raises(NotFound):
        recall("Rufus", some.workspace, some.stranger, policy=HERE, now=timezone.now())


def test_hides_deleted_expired_other_workspaces_and_other_peoples_personal_memories(some: Cast) -> None:
    gone = make_memory("Rufus is deleted", some.editor, some.workspace)
    delete_memory(gone, by=some.editor, now=NOW)
    make_memory("Rufus is expired", some.editor, some.workspace, expires_at=NOW - timedelta(days=1))
    elsewhere = make_workspace(owner=some.editor, name="Elsewhere")
    make_memory("Rufus lives elsewhere", some.editor, elsewhere)
    make_memory("Rufus is my own business", some.owner, scope=Scope.USER)
    make_memory("Rufus in my default workspace, not personal", some.editor, default_workspace(some.editor))
    make_memory("Rufus is what I call my car", some.editor, scope=Scope.USER)
    found = contents("Rufus", some, limit=50)
    assert {text for text in found if "Rufus" in text} == {"My dog is Rufus", "Rufus is what I call my car"}


def test_paging_walks_the_same_order(some: Cast) -> None:
    whole = contents("the office", some, limit=4)
    assert contents("the office", some, limit=2) + contents("the office", some, limit=2, offset=2) == whole


def test_semantic_drops_what_is_below_the_threshold(some: Cast) -> None:
    assert contents("quantum chromodynamics", some, ranking="semantic", threshold=0.5) == []


def test_lexical_takes_wildcards_literally_and_finds_parts_of_words(cast: Cast) -> None:
    make_memory("Discount of 50% on plan_b", cast.editor, cast.workspace)
    make_memory("Discount of 50 euros on planb", cast.editor, cast.workspace)
    assert contents("50%", cast, ranking="lexical")[0].startswith("Discount")
    assert contents("lan_", cast, ranking="lexical") == ["Discount of 50% on plan_b"]
    assert contents("%", cast, ranking="lexical") == ["Discount of 50% on plan_b"]


def test_hostile_queries_are_only_words(some: Cast) -> None:
    for query in ("'); DROP TABLE x; --", "a & | ! ( ) <-> :*", "''' \\ \"", "🦊" * 3000, "ws:1 | x"):
        for ranking in ("hybrid", "lexical"):
            recall(query, some.workspace, some.editor, ranking=ranking, policy=HERE, now=timezone.now())
        assert Memory.objects.count() == 4


def test_vectors_of_another_model_are_never_compared(
    some: Cast, use_embedder: Callable[[Embedder], None]
) -> None:
    another = FakeEmbedder(384, name="another")
    use_embedder(another)
    assert contents("when is it due?", some, ranking="semantic")[0] == "The project deadline is March 15"
    assert another.calls == []


def test_bumps_what_it_returns_and_never_a_deleted_row(some: Cast) -> None:
    recall("Rufus", some.workspace, some.editor, limit=1, now=NOW, policy=HERE)
    assert Memory.objects.get(content="My dog is Rufus").last_accessed_at == NOW
    assert Memory.objects.filter(last_accessed_at=None).count() == 3
