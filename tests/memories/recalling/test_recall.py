from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.models import Memory, Scope
from memories.recalling.ranking import recency
from memories.recalling.recall import recall
from memories.writing.drafts import Draft
from memories.writing.gate import delete_memory
from memoryhub.errors import Invalid, NotFound
from memoryhub.llm.base import Embedder
from memoryhub.llm.bundled_embedder import TwoEncoders
from memoryhub.llm.errors import EmbedderUnavailable
from tests.bulk import save_memories
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


def test_scores_of_every_ranking_are_the_sum_of_their_parts_best_first(some: Cast) -> None:
    for ranking in ("hybrid", "semantic", "longterm", "lexical"):
        how: dict[str, Any] = {"ranking": ranking, "policy": HERE, "now": timezone.now()}
        found = recall("the project deadline", some.workspace, some.editor, **how)
        assert found.items[0].memory.content == "The project deadline is March 15", ranking
        scores = [item.score for item in found.items]
        assert scores == sorted(scores, reverse=True), ranking
        assert all(item.score == pytest.approx(sum(item.parts.values())) for item in found.items), ranking


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


def test_longterm_lifts_an_old_important_memory_that_cosine_alone_would_lose(
    cast: Cast, use_embedder: Callable[[Embedder], None]
) -> None:
    use_embedder(FakeEmbedder(32))
    old = [
        Draft(f"apple number {number}", cast.workspace, cast.editor, importance=0.0) for number in range(150)
    ]
    save_memories(old, by=cast.editor, now=NOW - timedelta(days=365), dedupe="create")
    fresh = make_memory("something unrelated", cast.editor, cast.workspace, importance=1.0, now=NOW)
    found = recall("apple", cast.workspace, cast.editor, ranking="longterm", limit=50, now=NOW, policy=HERE)
    expected = sorted(
        (
            (0.7 * cosine + 0.2 * recency(m.created_at, None, NOW) + 0.1 * m.importance, m.pk)
            for m, cosine in _cosines("apple", FakeEmbedder(32))
        ),
        reverse=True,
    )
    assert fresh.pk in {pk for _, pk in expected[:50]}
    assert [item.memory.pk for item in found.items][:1] == [expected[0][1]]
    assert fresh.pk in {item.memory.pk for item in found.items}


def _cosines(query: str, embedder: FakeEmbedder) -> list[tuple[Memory, float]]:
    memories = list(Memory.objects.all())
    vectors = embedder.embed([query, *(m.content for m in memories)])
    return [(m, float(vectors[0] @ v)) for m, v in zip(memories, vectors[1:], strict=True)]


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


def test_falls_back_to_words_and_says_so(some: Cast, use_embedder: Callable[[Embedder | None], None]) -> None:
    broken = FakeEmbedder(TwoEncoders.dimension, name=TwoEncoders.name)
    broken.error = EmbedderUnavailable()
    for embedder, reason in ((broken, "did not answer"), (None, "no embedder")):
        use_embedder(embedder)
        for ranking in ("hybrid", "semantic", "longterm"):
            found = recall(
                "Rufus", some.workspace, some.editor, ranking=ranking, policy=HERE, now=timezone.now()
            )
            assert found.items[0].memory.content == "My dog is Rufus"
            assert reason in found.degraded


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
