"""Failures of an embedding endpoint: the text is stored, found by words, and recall reports the reason."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.import_export.other_programs import Said, Transcript, lines_of
from chat.turns.remember_this import proposal_for
from memories import tasks
from memories.recalling.recall import recall
from memories.writing.drafts_from_turns import TurnText, candidates_of
from memories.writing.gate import Draft, save_memory
from memoryhub.llm import openai_compatible, registry
from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.openai_compatible import OpenAIEmbedder
from memoryhub.model_files import ModelFile
from tests.conftest import Cast
from tests.factories import HERE, make_chat, make_memory, make_message
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.openai_server import Drop, Failure, Hang, Raw, Reply, ScriptedOpenAI
from workspaces.index import embedding as resting
from workspaces.index.embedding import EmbedderChangedSize
from workspaces.models import EmbeddingModel

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


def vectors(*rows: list[float]) -> Raw:
    data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
    body = json.dumps({"object": "list", "model": "m", "data": data})
    return Raw(body.encode(), content_type="application/json")


FAILURES: dict[str, list[Reply]] = {
    "refused": [Failure(401, "wrong key")],
    "broken": [Failure(500)] * 4,
    "no connection": [Drop()] * 4,
    "slow": [Hang()] * 4,
    "not a number": [vectors([float("nan")] * 384)],
    "no direction": [vectors([0.0] * 384)],
    "one vector too many": [vectors([0.1] * 384, [0.1] * 384, [0.2] * 384)],
    "another size": [vectors([0.1] * 768)],
    "no JSON": [Raw(b"<html>Bad gateway</html>", content_type="text/html")],
}


def has_rested() -> None:
    """Let the pause after a failure expire."""
    for label, rest in resting._resting.items():
        resting._resting[label] = replace(rest, until=0.0)


@pytest.fixture
def endpoint(
    scripted_openai: ScriptedOpenAI, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> ScriptedOpenAI:
    settings.EMBEDDING_BASE_URL = scripted_openai.base_url
    settings.EMBEDDING_API_KEY, settings.EMBEDDING_MODEL = scripted_openai.api_key, "remote"
    warm = OpenAIEmbedder(Endpoint(scripted_openai.base_url, scripted_openai.api_key, "remote"))
    warm.embed(["The first call of a process loads the client, for longer than these may take"])
    scripted_openai.requests.clear()
    monkeypatch.setattr(openai_compatible, "EMBEDDING_TIMEOUT_SECONDS", 0.3)
    monkeypatch.setattr(openai_compatible, "EMBEDDING_TIMEOUT_PER_TEXT_SECONDS", 0.0)
    monkeypatch.setattr("memoryhub.llm.openai_errors.RETRY_DELAYS_SECONDS", (0.0,))
    monkeypatch.setattr(resting, "_resting", {})
    monkeypatch.setattr(registry, "_embedder", None)
    return scripted_openai


def test_failed_save_keeps_the_text_and_a_later_attempt_adds_the_vector(
    cast: Cast, endpoint: ScriptedOpenAI
) -> None:
    make_memory("Tea", cast.editor, cast.workspace)
    for number, (failure, replies) in enumerate(FAILURES.items()):
        endpoint._embedding_script.extend(replies)
        draft = Draft(f"The number of the house is {number}", cast.workspace, cast.editor)
        memory = save_memory(draft, by=cast.editor, now=NOW).memory
        assert not memory.embeddings.exists(), failure
        endpoint._embedding_script.clear()
        assert tasks.embed_memories(memory_ids=[memory.pk]) == 1, failure
        assert memory.embeddings.get().dimension == 384, failure
        has_rested()


def test_failed_recall_answers_by_words_and_says_why(cast: Cast, endpoint: ScriptedOpenAI) -> None:
    memory = make_memory("The dog is called Rufus", cast.editor, cast.workspace)
    rankings = [*product(FAILURES, ["hybrid"]), ("refused", "semantic"), ("refused", "longterm")]
    for failure, ranking in rankings:
        how: dict[str, Any] = {"ranking": ranking, "policy": HERE, "now": timezone.now()}
        endpoint._embedding_script.extend(FAILURES[failure])
        found = recall("Rufus", cast.workspace, cast.editor, **how)
        assert [item.memory for item in found.items] == [memory], (failure, ranking)
        why = "size" if failure == "another size" else "did not answer"
        assert why in found.degraded, (failure, ranking)
        endpoint._embedding_script.clear()
        has_rested()
        assert recall("Rufus", cast.workspace, cast.editor, **how).degraded == "", (failure, ranking)


def test_an_endpoint_that_changes_its_size_for_good_is_never_mixed_with_what_it_gave_before(
    cast: Cast, endpoint: ScriptedOpenAI
) -> None:
    before = make_memory("The dog is called Rufus", cast.editor, cast.workspace)
    endpoint.embedder = FakeEmbedder(768)
    after = make_memory("The cat is called Biscuit", cast.editor, cast.workspace)
    assert [v.dimension for v in before.embeddings.all()] == [384]
    assert not after.embeddings.exists()
    assert tasks.embed_memories(memory_ids=[after.pk]) == 0
    assert EmbeddingModel.objects.get().dimension == 384
    assert "reembed" in EmbedderChangedSize.sentence


def test_a_job_gives_up_a_silent_endpoint_after_one_batch_and_marks_what_it_tried(
    cast: Cast, endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workspaces.index.embedding.BATCH", 2)
    made = [make_memory(f"Thing {number}", cast.editor, cast.workspace) for number in range(6)]
    for memory in made:
        memory.embeddings.all().delete()
    endpoint._embedding_script.extend([Hang()] * 20)
    before = len(endpoint.requests)
    assert tasks.embed_memories(memory_ids=[memory.pk for memory in made]) == 0
    assert len(endpoint.requests) - before <= 2
    for memory in made:
        memory.refresh_from_db()
    assert [memory.embedding_failed_at is not None for memory in made] == [True] * 2 + [False] * 4


def test_the_key_goes_to_no_other_host(settings: Settings) -> None:
    settings.EMBEDDING_BASE_URL, settings.EMBEDDING_API_KEY = "https://new.example/v1", "new-key"
    settings.EMBEDDING_PREVIOUS_API_KEY = "old-key"
    keys = {
        url: registry.get_earlier_embedder("model", url)._endpoint.api_key  # type: ignore[union-attr]
        for url in ("https://new.example/other/v1", "https://old.example/v1", "http://new.example/v1")
    }
    assert list(keys.values()) == ["new-key", "old-key", "old-key"]
    assert registry.get_earlier_embedder("model", "") is None
    assert registry.get_earlier_embedder("all-MiniLM-L6-v2-int8", "") is not None


def test_after_waiting_in_vain_nobody_waits_for_a_while(
    cast: Cast, endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = make_memory("The dog is called Rufus", cast.editor, cast.workspace)
    monkeypatch.setattr(resting, "SLOW", 0.1)
    endpoint._embedding_script.extend(FAILURES["slow"])
    assert recall("Rufus", cast.workspace, cast.editor, policy=HERE, now=timezone.now()).degraded
    endpoint._embedding_script.clear()
    asked = len(endpoint.requests)

    found = recall("Rufus", cast.workspace, cast.editor, policy=HERE, now=timezone.now())
    assert (found.degraded, [item.memory for item in found.items]) == (
        "the embedder did not answer",
        [memory],
    )
    saved = save_memory(
        Draft("The cat is called Minka", cast.workspace, cast.editor), by=cast.editor, now=NOW
    )
    assert not saved.memory.embeddings.exists()
    assert len(endpoint.requests) == asked
    assert tasks.embed_memories(memory_ids=[saved.memory.pk]) == 1  # jobs try at once

    (rest,) = resting._resting.values()
    assert rest.seconds == resting.REST
    has_rested()
    assert not recall("Rufus", cast.workspace, cast.editor, policy=HERE, now=timezone.now()).degraded
    assert resting._resting == {}


def test_failures_that_come_at_once_are_not_waited_for_either(
    cast: Cast, endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would cost its retries: 1.3 seconds a save, several times that for a search."""
    make_memory("The dog is called Rufus", cast.editor, cast.workspace)
    endpoint._embedding_script.extend([Failure(500)] * 100)

    def requests_of_a_recall() -> int:
        before = len(endpoint.requests)
        found = recall("Rufus", cast.workspace, cast.editor, policy=HERE, now=timezone.now())
        assert (found.degraded, len(found.items)) == ("the embedder did not answer", 1)
        return len(endpoint.requests) - before

    rests = []
    for _ in range(6):
        assert requests_of_a_recall() == 2  # with its retry
        assert requests_of_a_recall() == 0
        rests.append(next(iter(resting._resting.values())).seconds)
        has_rested()
    assert rests == [2, 4, 8, 16, 20, 20]
    endpoint._embedding_script.clear()
    assert not recall("Rufus", cast.workspace, cast.editor, policy=HERE, now=timezone.now()).degraded
    assert resting._resting == {}


def test_an_embedder_that_never_answered_rests_too(cast: Cast, endpoint: ScriptedOpenAI) -> None:
    """Before the first vector the dimension is unknown, and each save would ask for it."""
    endpoint._embedding_script.extend([Failure(500)] * 100)
    make_memory("The dog is called Rufus", cast.editor, cast.workspace)
    assert len(endpoint.requests) == 2  # with its retry
    make_memory("The cat is called Minka", cast.editor, cast.workspace)
    assert recall("Rufus", cast.workspace, cast.editor, policy=HERE, now=timezone.now()).degraded
    assert len(endpoint.requests) == 2 and not EmbeddingModel.objects.exists()


def test_an_earlier_model_that_fails_rests_too(
    cast: Cast, endpoint: ScriptedOpenAI, settings: Settings
) -> None:
    make_memory("The dog is called Rufus", cast.editor, cast.workspace)
    settings.EMBEDDING_MODEL = "newer"
    endpoint._embedding_script.extend([Failure(500)] * 100)
    before = len(endpoint.requests)
    for _ in range(3):
        found = recall("Rufus", cast.workspace, cast.editor, policy=HERE, now=timezone.now())
        assert "earlier embedding model cannot be asked" in found.degraded
    assert len(endpoint.requests) == before + 2


def test_a_reply_about_one_text_lets_nobody_else_wait(cast: Cast, endpoint: ScriptedOpenAI) -> None:
    make_memory("The dog is called Rufus", cast.editor, cast.workspace)
    endpoint.script_embeddings(*FAILURES["not a number"])
    assert recall("Rufus", cast.workspace, cast.editor, policy=HERE, now=timezone.now()).degraded
    assert not recall("Rufus", cast.workspace, cast.editor, policy=HERE, now=timezone.now()).degraded


@pytest.mark.parametrize(
    "weights", [ModelFile("nowhere", "none.bin", ""), ModelFile("memoryhub", "ids.py", "0" * 64)]
)
def test_without_the_weights_that_compare_words_nothing_is_judged_and_all_answers(
    cast: Cast,
    use_embedder: Callable[[FakeEmbedder], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    weights: ModelFile,
) -> None:
    """The weights are missing, or not of this version, and another model embeds."""
    monkeypatch.setattr("memoryhub.llm.e5.MULTILINGUAL", weights)
    monkeypatch.setattr(registry, "_reader", None)
    monkeypatch.setattr(registry, "_is_missing", False)
    monkeypatch.setattr(registry, "get_embedder", lambda: None)
    use_embedder(FakeEmbedder(64))
    texts = (
        "Our office is on the third floor",
        "Our office is on the third floor now",
        "OUR office is on the third floor.",
    )
    saved = [
        save_memory(Draft(text, cast.workspace, cast.editor), by=cast.editor, now=NOW).memory
        for text in texts
    ]
    assert saved[0] == saved[2] != saved[1]  # equal words are equal without it

    client = Client()
    client.force_login(cast.editor)
    page = client.get(f"/workspaces/{cast.workspace.public_id}/tidy/")
    assert (page.status_code, texts[1] in page.content.decode()) == (200, True)

    message = make_message(make_chat(cast.editor, cast.workspace), "I am vegetarian. What can I cook?")
    assert proposal_for(message, by=cast.editor).content == "I am vegetarian."
    assert candidates_of(TurnText((("user", message.content),), "", ""), None) == ("rules", [])
    said = Transcript("1", "Food", [Said("1", is_user=True, text=message.content)])
    assert [line["type"] for line in lines_of(said, source="x", importer=cast.editor)] == ["chat", "message"]
    assert caplog.text.count("not compared word by word") == 1
