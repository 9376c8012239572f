import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memories import evaluation
from memories.evaluation import (
    Conversation,
    Line,
    Malformed,
    Score,
    evaluate,
    load_conversation,
    read_conversations,
)
from memories.models import Memory
from tests.conftest import Cast
from tests.fakes.embedder import FakeEmbedder

SAID = "2026-03-05T10:00:00Z"


def memory(identifier: str, text: str, **fields: str) -> dict[str, Any]:
    return {"id": identifier, "text": text, "at": SAID, **fields}


def written(path: Path, *lines: Any) -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


GOOD = {"memories": [memory("a", "Anna has a cat")], "queries": [{"text": "cat?", "relevant": ["a"]}]}


def test_hit_recall_and_mrr_by_hand() -> None:
    score = Score(
        ranks=[[1, 7], [6], [], [3, 4, 5]],  # the rank of each question's relevant memories
        relevant=[2, 1, 2, 4],
    )
    assert score.hit(5) == 2 / 4
    assert score.hit(10) == 3 / 4
    assert score.recall(5) == pytest.approx((1 / 2 + 0 + 0 + 3 / 4) / 4)
    assert score.recall(10) == pytest.approx((2 / 2 + 1 / 1 + 0 + 3 / 4) / 4)
    assert score.mrr() == pytest.approx((1 + 1 / 6 + 0 + 1 / 3) / 4)


def test_reads_one_conversation_a_line_and_passes_over_blank_ones(tmp_path: Path) -> None:
    path = written(tmp_path / "file", {**GOOD, "name": "first"}, "", "  ", GOOD)
    assert [conversation.name for conversation in read_conversations(path)] == ["first", "4"]


def changed(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}


def test_error_names_the_malformed_line_and_the_problem(tmp_path: Path) -> None:
    cases: list[tuple[Any, str]] = [
        ("{", "not JSON"),
        ("[]", "memories must be a list of objects"),
        ("null", "memories must be a list of objects"),
        (changed(memories=[]), "memories must be a list of objects, not empty"),
        (changed(memories=["a"]), "memories must be a list of objects"),
        (changed(memories=[{"text": "x", "at": SAID}]), "a memory's id must be text"),
        (changed(memories=[memory("a", "")]), "a memory's text must be text"),
        (changed(memories=[memory("a", "x"), memory("a", "y")]), "two memories have the id 'a'"),
        (changed(memories=[memory("a", "x", at="yesterday")]), "yesterday"),
        (changed(memories=[memory("a", "x", at="2026-03-05T10:00:00")]), "no time zone"),
        (changed(memories=[{**memory("a", "x"), "source": 7}]), "a memory's source must be text"),
        (changed(queries=[]), "queries must be a list of objects, not empty"),
        (changed(queries=[{"text": "x", "relevant": []}]), "relevant must be a list"),
        (changed(queries=[{"text": "x", "relevant": "a"}]), "relevant must be a list"),
        (changed(queries=[{"text": "x", "relevant": ["z"]}]), "'z' is no memory's"),
        (changed(queries=[{"relevant": ["a"]}]), "a query's text must be text"),
    ]
    for line, problem in cases:
        path = written(tmp_path / "file", GOOD, "", line)
        with pytest.raises(Malformed) as caught:
            list(read_conversations(path))
        assert str(caught.value).startswith("Line 3"), problem
        assert problem in str(caught.value), problem


def test_a_file_that_is_no_text_is_malformed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Malformed, match="Line 1 or a later one is not UTF-8"):
        list(read_conversations(path))


@pytest.fixture
def embedder(fake_embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch) -> FakeEmbedder:
    monkeypatch.setattr(evaluation, "get_embedder", lambda: fake_embedder)
    return fake_embedder


def conversation(*memories: dict[str, Any], queries: list[dict[str, Any]] | None = None) -> Conversation:
    return Conversation("test", list(memories), queries or [])


def stored(cast: Cast, said: Conversation, **options: bool) -> dict[str, Memory]:
    ids = load_conversation(said, cast.workspace, cast.editor, lambda: None, **options)
    return {known_as: Memory.objects.get(pk=pk) for pk, known_as in ids.items()}


def test_memories_are_stored_as_they_were_said_twins_too(cast: Cast, embedder: FakeEmbedder) -> None:
    found = stored(
        cast,
        conversation(
            memory("a", "Anna has a cat", source="Ben: Do you?\nAnna: I have a cat"),
            *(memory(name, f"number {name}") for name in "bcde"),
            memory("f", "number e"),
        ),
    )
    assert len(found) == 6
    assert found["a"].source_excerpt == "Ben: Do you?\nAnna: I have a cat"
    assert found["d"].source_excerpt == "number b\nnumber c\nnumber d\nnumber e"
    assert found["f"].source_excerpt == "number d\nnumber e\nnumber e"
    assert {kept.created_at for kept in found.values()} == {datetime(2026, 3, 5, 10, tzinfo=UTC)}
    assert {kept.source_type for kept in found.values()} == {"import"}


def test_memories_can_be_stored_without_their_excerpts(cast: Cast, embedder: FakeEmbedder) -> None:
    found = stored(cast, conversation(memory("a", "one", source="two"), memory("b", "three")), excerpts=False)
    assert {kept.source_excerpt for kept in found.values()} == {""}


def test_what_the_gate_refuses_is_left_out(cast: Cast, embedder: FakeEmbedder) -> None:
    key = "sk-ant-" + "api03-" + "a1B2" * 20
    assert set(stored(cast, conversation(memory("a", f"my key is {key}"), memory("b", "fine")))) == {"b"}


def test_questions_are_asked_once_a_line_and_leave_no_trace(cast: Cast, embedder: FakeEmbedder) -> None:
    said = conversation(
        memory("cat", "Anna has a cat"),
        memory("dog", "Ben has a dog"),
        memory("sea", "We went to the sea"),
        queries=[
            {"text": "the sea", "relevant": ["sea"]},
            {"text": "Ben has a dog", "relevant": ["dog", "sea"]},
        ],
    )
    ids = load_conversation(said, cast.workspace, cast.editor, lambda: None)
    names = ("bm25", "vector", "hybrid", "semantic", "longterm", "lexical")
    scores = {Line(name, name): Score() for name in names}
    steps: list[int] = []
    seconds = evaluate(said, ids, cast.workspace, cast.editor, scores, 3, lambda: steps.append(1))
    assert len(seconds) == len(steps) == 2
    for score in scores.values():
        assert (score.hit(1), score.mrr(), score.relevant) == (1.0, 1.0, [1, 2])
        assert len(score.seconds) == 2
    assert not Memory.objects.exclude(last_accessed_at=None).exists()
