"""Exact rankings end to end on Postgres, with vectors chosen so that each score can be computed by hand."""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from memories.models import Memory
from memories.recalling.ranking import WEIGHTS
from memories.recalling.recall import Recall, recall
from memories.writing.drafts import Draft
from memoryhub.llm.base import Embedder, Vectors
from tests.bulk import save_memories
from tests.conftest import Cast
from tests.factories import HERE, make_memory
from tests.fakes.embedder import FakeEmbedder

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
ROUNDING = 2e-3  # vectors are stored as half floats


class ChosenVectors(FakeEmbedder):
    """An embedder whose vectors have the cosine to ``query`` that the text ends with: "a bike 0.8" has 0.8."""

    def __init__(self) -> None:
        super().__init__(2, name="chosen-2")

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        return np.array([self._at(text) for text in texts], dtype=np.float32).reshape(-1, 2)

    @staticmethod
    def _at(text: str) -> tuple[float, float]:
        last = text.split()[-1]
        cosine = float(last) if "." in last else 1.0
        return cosine, math.sqrt(1 - cosine * cosine)


@pytest.fixture(autouse=True)
def chosen(use_embedder: Callable[[Embedder], None]) -> ChosenVectors:
    embedder = ChosenVectors()
    use_embedder(embedder)
    return embedder


def remember(cast: Cast, text: str, days: float = 0.0, importance: float = 0.0, **fields: object) -> Memory:
    now = NOW - timedelta(days=days)
    return make_memory(text, cast.editor, cast.workspace, now=now, importance=importance, **fields)


def asked(cast: Cast, ranking: str, query: str = "query", **options: object) -> Recall:
    return recall(query, cast.workspace, cast.editor, ranking=ranking, now=NOW, **options, policy=HERE)  # type: ignore[arg-type]


def order(found: Recall) -> list[tuple[str, float]]:
    return [(item.memory.content, item.score) for item in found.items]


def is_in_order(found: Recall, expected: list[tuple[str, float]]) -> bool:
    return [text for text, _ in order(found)] == [text for text, _ in expected] and [
        score for _, score in order(found)
    ] == pytest.approx([score for _, score in expected], abs=ROUNDING)


def test_semantic_is_cosine_and_drops_below_the_threshold(cast: Cast) -> None:
    for text in ("far 0.28", "middle 0.6", "same 1.0", "opposite -0.6", "near 0.8", "edge 0.31"):
        remember(cast, text, days=400, importance=0.5)
    expected = [("same 1.0", 1.0), ("near 0.8", 0.8), ("middle 0.6", 0.6), ("edge 0.31", 0.31)]
    assert is_in_order(asked(cast, "semantic"), expected)
    expected += [("far 0.28", 0.28), ("opposite -0.6", -0.6)]
    assert is_in_order(asked(cast, "semantic", threshold=-1.0, limit=6), expected)


def test_longterm_is_cosine_recency_and_importance(cast: Cast) -> None:
    remember(cast, "nearest 1.0", days=90, importance=0.0)  # 0.7 + 0.2/8 + 0
    remember(cast, "important 0.8", days=30, importance=1.0)  # 0.56 + 0.1 + 0.1
    remember(cast, "fresh 0.6", days=0, importance=0.5)  # 0.42 + 0.2 + 0.05
    accessed = remember(cast, "accessed 0.28", days=300, importance=1.0)  # 0.196 + 0.2 + 0.1
    remember(cast, "opposite -0.6", days=30, importance=0.0)  # -0.42 + 0.1
    Memory.objects.filter(pk=accessed.pk).update(last_accessed_at=NOW)
    expected = [
        ("important 0.8", 0.76),
        ("nearest 1.0", 0.725),
        ("fresh 0.6", 0.67),
        ("accessed 0.28", 0.496),
        ("opposite -0.6", -0.32),
    ]
    found = asked(cast, "longterm")
    assert is_in_order(found, expected)
    assert found.items[1].parts == pytest.approx(
        {"meaning": 0.7, "recency": 0.025, "importance": 0.0}, abs=ROUNDING
    )


def test_longterm_is_exact_where_any_cut_by_cosine_would_lose(cast: Cast) -> None:
    """More memories than any candidate list holds are nearer, but old and unimportant: the fresh, important
    one leads.
    """
    notes = [
        Draft(f"old note {number} 0.8", cast.workspace, cast.editor, importance=0.0) for number in range(220)
    ]
    save_memories(notes, by=cast.editor, now=NOW - timedelta(days=3650), dedupe="create")
    fresh = remember(cast, "fresh 0.6", importance=1.0)
    found = asked(cast, "longterm", limit=3)
    assert found.items[0].memory == fresh
    scores = [item.score for item in found.items]
    assert scores == pytest.approx([0.42 + 0.2 + 0.1, 0.56, 0.56], abs=ROUNDING)
    whole = [item.memory.pk for offset in range(0, 221, 50) for item in asked_page(cast, offset).items]
    assert len(whole) == len(set(whole)) == 221


def asked_page(cast: Cast, offset: int) -> Recall:
    return asked(cast, "longterm", limit=50, offset=offset)


def test_equal_scores_are_ordered_by_newest_id(cast: Cast) -> None:
    ids = [remember(cast, f"twin {letter} 0.8").pk for letter in "abcdef"]
    for ranking in ("semantic", "longterm", "hybrid"):
        found = asked(cast, ranking, limit=4)
        assert [item.memory.pk for item in found.items] == ids[:1:-1], ranking
        rest = asked(cast, ranking, limit=4, offset=4)
        assert [item.memory.pk for item in rest.items] == ids[1::-1], ranking


def test_lexical_is_cover_density_over_the_logarithm_of_the_length(cast: Cast) -> None:
    """0.1 for each occurrence of a query word, over log(1 + words), the scope's own lexeme included."""
    remember(cast, "apple")
    remember(cast, "apple pie crust")
    remember(cast, "apple banana apple")
    remember(cast, "cherry")
    remember(cast, "sugar sugar", tags=("banana",))
    expected = [
        ("apple banana apple", 0.3 / math.log(1 + 4)),
        ("apple", 0.1 / math.log(1 + 2)),
        ("sugar sugar", 0.1 / math.log(1 + 4)),
        ("apple pie crust", 0.1 / math.log(1 + 4)),
    ]
    found = asked(cast, "lexical", query="banana apples")
    assert [text for text, _ in order(found)][:2] == [text for text, _ in expected][:2]
    assert dict(order(found)) == pytest.approx(dict(expected), abs=1e-6)


def test_lexical_ties_go_to_pinned_then_important_then_changed_then_newest(cast: Cast) -> None:
    def apple(name: str, **fields: object) -> str:
        return remember(cast, f"apple {name}", **fields).content  # type: ignore[arg-type]

    old = apple("alpha", days=9)
    older = apple("beta", days=10)
    twin, later_twin = apple("gamma", days=9.5), apple("delta", days=9.5)
    important = apple("epsilon", days=20, importance=0.9)
    pinned = apple("zeta", days=30, pinned=True)
    found = [text for text, _ in order(asked(cast, "lexical", query="apple", limit=9))]
    assert found == [pinned, important, old, later_twin, twin, older]


def test_hybrid_is_the_sum_of_its_signals(cast: Cast) -> None:
    october = datetime(2026, 10, 2, 12, 0, tzinfo=UTC)  # 30 days ago
    memory = make_memory(
        "Anna sold 3 boats yesterday at 0.8",
        cast.editor,
        cast.workspace,
        now=october,
        importance=0.5,
    )
    make_memory("Did Ben sell the house? at 0.6", cast.editor, cast.workspace, now=NOW, importance=1.0)
    query = "When did Anna sell boats on October 2?"
    found = asked(cast, "hybrid", query=query)
    # The query and its gist end without a cosine: their vectors are (1, 0).
    share = found.items[0].parts["words"] / 0.35
    assert found.items[0].memory == memory
    assert 0.5 < share <= 1
    assert found.items[0].parts == pytest.approx(
        {
            "meaning": 0.7 * 0.8,
            "words": 0.35 * share,  # tests of words.py cover BM25's share
            "date": 0.2,
            "time": 0.1,
            "person": 0.15,
            "recency": 0.02 * 0.5,
            "importance": 0.02 * 0.5,
        },
        abs=ROUNDING,
    )
    assert found.items[1].parts["recency"] == pytest.approx(0.02)
    assert "person" not in found.items[1].parts
    assert found.items[0].score == pytest.approx(sum(found.items[0].parts.values()))


def test_hybrid_takes_a_little_from_what_only_asks_and_gives_to_numbers_where_asked_how_many(
    cast: Cast,
) -> None:
    remember(cast, "There were boats 0.5")
    remember(cast, "Were there boats at all?", importance=0.0)
    query = "how many boats were there"
    parts = {item.memory.content: item.parts for item in asked(cast, "hybrid", query=query).items}
    assert parts["There were boats 0.5"]["number"] == pytest.approx(0.07)
    assert parts["Were there boats at all?"]["asking"] == pytest.approx(-0.07)
    assert "number" not in parts["Were there boats at all?"]


def test_hybrid_without_the_gist_embeds_the_question_alone(cast: Cast, chosen: ChosenVectors) -> None:
    remember(cast, "Anna sold it 0.8")
    chosen.calls.clear()
    asked(cast, "hybrid", query="When did Anna sell it?")
    assert chosen.calls == [["When did Anna sell it?", "sell it"]]
    chosen.calls.clear()
    asked(cast, "hybrid", query="When did Anna sell it?", weights=WEIGHTS.without("gist"))
    assert chosen.calls == [["When did Anna sell it?"]]


def test_hybrid_favours_the_one_person_named_in_a_question(cast: Cast) -> None:
    cases = [
        ("Where do I keep the boat?", "eddie"),  # the asker is eddie, the author of "I …"
        ("Where does Anna keep the boat?", "anna"),
        ("Do I like Thai boats?", "eddie"),  # a capitalized word that is no name here
        ("Where do Anna and Ben keep the boat?", ""),  # two people: neither is preferred
        ("Where is the boat?", ""),
    ]
    whose = {
        remember(cast, "I keep the boat here 0.8").pk: "eddie",
        remember(cast, "Anna keeps the boat here 0.8").pk: "anna",
        remember(cast, "Ben keeps the boat here 0.8").pk: "ben",
    }
    for query, about in cases:
        found = asked(cast, "hybrid", query=query)
        favoured = {whose[item.memory.pk] for item in found.items if "person" in item.parts}
        assert favoured == ({about} if about else set()), query
