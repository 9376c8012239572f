"""An installation embedded by MiniLM alone switches to both encoders while people ask and write."""

from collections.abc import Callable

import pytest
from django.utils import timezone

from memories.recalling.recall import Recall, recall
from memories.writing.gate import edit_memory
from memoryhub.llm.base import Embedder
from memoryhub.llm.bundled_embedder import OnnxEmbedder, TwoEncoders
from memoryhub.llm.registry import get_embedder
from tests.conftest import Cast
from tests.factories import HERE, make_document, make_memory
from workspaces.documents.search import find_passages
from workspaces.index import reembedding
from workspaces.index.embedding import active_model
from workspaces.index.reembedding import Outcome
from workspaces.models import EmbeddingModel, PassageVector

OVEN = "The baking oven is switched off at night."


def test_recall_works_at_every_moment_and_ends_with_all_of_it_in_the_new_space(
    cast: Cast, use_embedder: Callable[[Embedder | None], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_embedder(OnnxEmbedder())
    excerpt = "ed: we moved to the river"
    make_memory("The office is in Lisbon", cast.editor, cast.workspace, source_excerpt=excerpt)
    for text in ("My dog is called Rufus", "Ich habe früher Klavier gespielt"):
        make_memory(text, cast.editor, cast.workspace)
    drink = make_memory("I take tea without milk", cast.editor, cast.workspace)
    make_document(cast.editor, cast.workspace, text=OVEN)
    assert set(PassageVector.objects.values_list("model", "dimension")) == {(OnnxEmbedder.name, 384)}

    def ask(query: str) -> Recall:
        found = recall(query, cast.workspace, cast.editor, policy=HERE, now=timezone.now())
        assert found.degraded == ""
        return found

    def first(query: str) -> str:
        return ask(query).items[0].memory.content

    use_embedder(get_embedder())  # now as the settings say: both
    monkeypatch.setattr(reembedding, "BATCH", 1)
    seen: list[str | None] = []

    def check_between_batches(building: EmbeddingModel) -> None:
        """Check after each batch that old and new memories are found, by the vectors of one model."""
        seen.append(active_model())
        assert first("Where is the office?") == "The office is in Lisbon"
        assert ask("What is my pet's name?").items[0].relevance is None, "the head knows the new space alone"
        found = find_passages(OVEN, cast.workspace, cast.editor, limit=5, policy=HERE)
        assert [item.passage.text.strip() for item in found] == [OVEN]
        if len(seen) == 2:
            make_memory("Our deadline is in March", cast.editor, cast.workspace)
            edit_memory(drink, by=cast.editor, now=timezone.now(), content="I take coffee without milk")
        if len(seen) >= 2:
            assert first("When is the deadline?") == "Our deadline is in March"
            assert first("Do I take milk in my coffee?") == "I take coffee without milk"

    reembedding.start()
    assert reembedding.advance(seconds=120, progressed=check_between_batches) == Outcome.SWITCHED
    assert len(seen) > 5
    assert set(seen) == {OnnxEmbedder.name}, "one space until all of the other is there"
    assert active_model() == TwoEncoders.name
    there = PassageVector.objects.filter(model=TwoEncoders.name, dimension=TwoEncoders.dimension)
    assert there.count() == 6, "five memories and a passage"
    assert (
        ask("Which instrument did I use to play?").items[0].memory.content
        == "Ich habe früher Klavier gespielt"
    )
    assert ask("What is my pet's name?").items[0].relevance is not None

    retired = EmbeddingModel.objects.filter(label=OnnxEmbedder.name)
    retired.update(retired_at=timezone.now() - 2 * reembedding.GRACE)
    assert reembedding.clean(seconds=60) == 6
    assert set(PassageVector.objects.values_list("model", flat=True)) == {TwoEncoders.name}
