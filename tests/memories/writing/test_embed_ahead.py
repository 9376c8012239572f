"""A turn's question is embedded while the turn is stored, if the embedder caches."""

from collections.abc import Callable, Sequence
from concurrent.futures import wait

import pytest
from django.utils import timezone

from chat.turns import services
from chat.turns.services import begin_turn
from memories.recalling.recall import prefetch_query_vector, recall
from memoryhub.llm.base import Embedder, Vectors
from memoryhub.llm.errors import EmbedderError
from tests.conftest import Cast
from tests.factories import HERE, make_chat, make_memory
from tests.fakes.embedder import FakeEmbedder
from workspaces.index import embedding

QUESTION = "When does Anna's train leave?"


class Keeping(FakeEmbedder):
    """A caching embedder, as the embedded one is, which records its calls."""

    keeps_recent = True

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        return super().embed(texts)


def finish() -> None:
    wait([embedding._ahead.submit(int)])


def test_what_is_begun_with_is_what_recall_asks_for(
    cast: Cast, use_embedder: Callable[[Embedder | None], None]
) -> None:
    keeping = Keeping()
    use_embedder(keeping)
    make_memory("Anna's train leaves at 7", cast.owner, cast.workspace)
    keeping.asked.clear()
    prefetch_query_vector(f" {QUESTION}\x00", now=timezone.now())
    finish()
    recall(f" {QUESTION}\x00", cast.workspace, cast.owner, policy=HERE, now=timezone.now())
    begun, asked = keeping.asked
    assert begun == asked and len(begun) == 2, "the question and its gist"


def test_blank_query_is_not_embedded_ahead(
    cast: Cast, use_embedder: Callable[[Embedder | None], None]
) -> None:
    for query in ("", "  ", "\x00"):
        keeping = Keeping()
        use_embedder(keeping)
        prefetch_query_vector(query, now=timezone.now())
        finish()
        assert keeping.asked == [], query


def test_an_embedder_that_keeps_nothing_is_asked_once(
    cast: Cast, use_embedder: Callable[[Embedder | None], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Keeping, "keeps_recent", False)
    keeping = Keeping()
    use_embedder(keeping)
    prefetch_query_vector(QUESTION, now=timezone.now())
    finish()
    assert keeping.asked == []


def test_a_failure_ahead_costs_nothing(
    cast: Cast, use_embedder: Callable[[Embedder | None], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Keeping, texts: Sequence[str]) -> Vectors:
        raise EmbedderError

    use_embedder(Keeping())
    monkeypatch.setattr(Keeping, "embed", fail)
    prefetch_query_vector(QUESTION, now=timezone.now())
    finish()
    assert recall(QUESTION, cast.workspace, cast.owner, policy=HERE, now=timezone.now()).degraded


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("enabled", "temporary", "begun"), [(True, False, 1), (False, False, 0), (True, True, 0)]
)
def test_only_a_turn_that_will_recall_begins_with_it(
    enabled: bool, temporary: bool, begun: int, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: list[str] = []
    monkeypatch.setattr(services, "prefetch_query_vector", lambda query, now: expected.append(query))
    chat = make_chat(cast.owner, cast.workspace, is_temporary=temporary)
    begin_turn(chat, content=QUESTION, by=cast.owner, now=timezone.now(), memory_enabled=enabled)
    assert expected == [QUESTION] * begun
