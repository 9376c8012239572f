"""Races between permanent deletion and background writes, on two connections: nothing restores the text."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from chat.chats.services import forget_chat
from chat.models import Chat
from memories import tasks
from memories.forgetting.for_good import forget_memories
from memories.models import Extraction, Memory, Receipt, ReceiptItem
from memories.recalling.loading import mark_accessed
from memories.recalling.recall import recall, split_recall, store_receipt
from memories.writing import changing as undoing
from memories.writing import extraction_jobs as run
from memories.writing import gate
from memories.writing.decide import one_writer_at_a_time
from memories.writing.gate import Draft
from memories.writing.tombstones import WasForgotten
from memoryhub.errors import NotFound
from memoryhub.llm.base import Embedder
from tests.bulk import save_memories
from tests.conftest import Cast
from tests.factories import HERE, make_chat, make_memory, make_message
from tests.fakes.embedder import FakeEmbedder
from tests.races import Pause, Work, meanwhile
from tests.raw_search import places_with
from workspaces.index import embedding, reembedding
from workspaces.models import EmbeddingModel, PassageVector, PassageWord

SAID = "My project deadline is March 15"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fake_embedder")]


@pytest.fixture
def memory(cast: Cast, fake_embedder: FakeEmbedder) -> Memory:
    return make_memory(SAID, cast.owner, cast.workspace)


@pytest.fixture
def forget(memory: Memory, cast: Cast) -> Callable[[], object]:
    return lambda: forget_memories([memory], by=cast.owner, now=timezone.now())


def nothing_is_left() -> bool:
    rows = [Memory, PassageVector, PassageWord, ReceiptItem]
    return not any(table._base_manager.exists() for table in rows) and places_with(SAID) == []


def turn(cast: Cast, said: str = SAID) -> tuple[Chat, Extraction]:
    """Create a finished turn and its pending extraction."""
    chat = make_chat(cast.owner, cast.workspace)
    question = make_message(chat, said)
    answer = make_message(chat, "Noted.", "assistant", reply_to=question)
    extraction = run.queue_extraction(
        workspace=cast.workspace,
        user=cast.owner,
        chat_id=chat.public_id,
        message_id=answer.public_id,
        source_type="auto_chat",
        now=timezone.now(),
    )
    return chat, extraction


def test_an_embedding_under_way(
    memory: Memory, forget: Callable[[], object], fake_embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = Pause()
    PassageVector.objects.all().delete()
    monkeypatch.setattr("workspaces.index.embedding.embed_each", pause.after(embedding.embed_each))
    meanwhile(pause, lambda: tasks.embed_memories(memory_ids=[memory.pk]), forget)
    assert nothing_is_left()


def test_a_change_of_the_embedding_model_under_way(
    memory: Memory,
    forget: Callable[[], object],
    use_embedder: Callable[[Embedder | None], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pause = Pause()
    use_embedder(FakeEmbedder(32, name="another"))
    reembedding.notice_settings()
    monkeypatch.setattr("workspaces.index.embedding.embed_each", pause.after(embedding.embed_each))
    meanwhile(pause, lambda: reembedding.advance(seconds=5), forget)
    assert nothing_is_left()
    assert EmbeddingModel.objects.get(name="another").done_count == 0


def test_an_extraction_that_has_read_the_turn(
    memory: Memory, forget: Callable[[], object], cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    _chat, extraction = turn(cast, f"{SAID}. I am vegetarian.")
    pause = Pause()
    # Any candidate counts as the duplicate, so that only the race matters.
    monkeypatch.setattr(
        "memories.writing.extraction_jobs.candidate_of", lambda memory, candidates, text: candidates[0]
    )
    monkeypatch.setattr("memories.writing.extraction_jobs.candidates_of", pause.after(run.candidates_of))
    meanwhile(pause, lambda: tasks.extract_turn(extraction_id=extraction.pk), forget)
    assert [each.content for each in Memory.objects.all()] == ["I am vegetarian"]
    extraction.refresh_from_db()
    assert (extraction.status, extraction.stored_count, extraction.refused_count) == ("done", 1, 1)


def test_an_extraction_of_a_chat_that_is_forgotten(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    chat, extraction = turn(cast)
    pause = Pause()
    # Any candidate counts as the duplicate, so that only the race matters.
    monkeypatch.setattr(
        "memories.writing.extraction_jobs.candidate_of", lambda memory, candidates, text: candidates[0]
    )
    monkeypatch.setattr("memories.writing.extraction_jobs.candidates_of", pause.after(run.candidates_of))
    act = lambda: forget_chat(chat, by=cast.owner, now=timezone.now(), memories=True)  # noqa: E731
    outcome = meanwhile(pause, lambda: tasks.extract_turn(extraction_id=extraction.pk), act)
    assert outcome == "its chat was forgotten"
    assert nothing_is_left()


def test_a_save_waits_for_the_forgetting_and_then_stores_nothing(memory: Memory, cast: Cast) -> None:
    draft = Draft(SAID, cast.workspace, cast.owner, source_type="model")
    with transaction.atomic():
        forget_memories([memory], by=None, now=timezone.now())
        saving = Work(lambda: gate.save_memory(draft, by=cast.owner, now=timezone.now()))
        assert saving.waits_for_a_lock()
    assert isinstance(saving.end(), WasForgotten)
    assert nothing_is_left()


def test_the_forgetting_waits_for_a_save_and_takes_it_along(cast: Cast, memory: Memory) -> None:
    with transaction.atomic():
        one_writer_at_a_time(cast.workspace)
        forgetting = Work(lambda: forget_memories([memory], by=cast.owner, now=timezone.now()))
        assert forgetting.waits_for_a_lock()
        twin = Draft(SAID, cast.workspace, cast.owner, source_type="model")
        gate.save_memory(twin, by=cast.owner, now=timezone.now(), dedupe="create")
    assert forgetting.end().removed["memories"] == 2
    assert nothing_is_left()


def test_an_import_whose_vectors_are_being_made(
    memory: Memory, forget: Callable[[], object], cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts = [Draft(text, cast.workspace, cast.owner) for text in (SAID, "I am vegetarian")]
    pause = Pause()
    monkeypatch.setattr("tests.bulk.embed_texts", pause.after(embedding.embed_texts))
    saved = meanwhile(pause, lambda: save_memories(drafts, by=cast.owner, now=timezone.now()), forget)
    assert [(each.created, each.forgotten) for each in saved] == [(False, True), (True, False)]
    assert places_with(SAID) == []


def test_an_import_of_many_waits_for_the_forgetting(memory: Memory, cast: Cast) -> None:
    drafts = [Draft(text, cast.workspace, cast.owner, key=text[:5]) for text in (SAID, "I am vegetarian")]
    with transaction.atomic():
        forget_memories([memory], by=None, now=timezone.now())
        importing = Work(lambda: save_memories(drafts, by=cast.owner, now=timezone.now()))
        assert importing.waits_for_a_lock()
    assert [each.forgotten for each in importing.end()] == [True, False]
    assert places_with(SAID) == []


def test_a_recall_that_has_found_it(
    memory: Memory, forget: Callable[[], object], cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = Pause()

    def paused(found: list[Memory], now: Any) -> None:
        pause()
        mark_accessed(found, now)

    monkeypatch.setattr("memories.recalling.recall.mark_accessed", paused)

    def ask() -> Receipt:
        found = recall(SAID, cast.workspace, cast.owner, policy=HERE, now=timezone.now())
        assert [item.memory for item in found.items] == [memory]
        verdicts = split_recall(found, threshold=0.0, limit=5)
        return store_receipt(
            "msg_" + "a" * 24, found, verdicts, workspace=cast.workspace, user=cast.owner, threshold=0.0
        )

    running = Work(ask)
    assert pause.reached.wait(10)
    with transaction.atomic():
        forget_memories([memory], by=None, now=timezone.now())
        pause.goes_on.set()
        assert running.waits_for_a_lock()
    assert isinstance(running.end(), Receipt), running.result
    assert nothing_is_left()


def test_a_receipt_that_is_being_written(memory: Memory, cast: Cast) -> None:
    found = recall(SAID, cast.workspace, cast.owner, policy=HERE, now=timezone.now())
    verdicts = split_recall(found, threshold=0.0, limit=5)
    with transaction.atomic():
        store_receipt(
            "msg_" + "a" * 24, found, verdicts, workspace=cast.workspace, user=cast.owner, threshold=0.0
        )
        forgetting = Work(lambda: forget_memories([memory], by=None, now=timezone.now()))
        assert forgetting.waits_for_a_lock()
    assert forgetting.end().removed["receipt items"] == 1
    assert nothing_is_left()


def test_a_rerun_of_the_extraction(
    cast: Cast, forget: Callable[[], object], memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, _extraction = turn(cast)
    source = make_message(chat, SAID)
    Memory.objects.filter(pk=memory.pk).update(source_message_id=source.public_id)
    memory.refresh_from_db()
    pause = Pause()
    # Any candidate counts as the duplicate, so that only the race matters.
    monkeypatch.setattr(
        "memories.writing.extraction_jobs.candidate_of", lambda memory, candidates, text: candidates[0]
    )
    monkeypatch.setattr("memories.writing.extraction_jobs.candidates_of", pause.after(run.candidates_of))
    outcome = meanwhile(
        pause, lambda: tasks.rerun_extraction(memory_id=memory.pk, by_id=cast.owner.pk), forget
    )
    assert outcome == "it was forgotten in the meantime"
    assert not Memory.objects.exists()


def test_a_rerun_from_a_chat_that_is_forgotten(
    cast: Cast, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, _ = turn(cast, "I prefer tea")
    source = chat.messages.order_by("pk")[0]
    Memory.objects.filter(pk=memory.pk).update(
        source_message_id=source.public_id,
        source_chat_id=chat.public_id,
        source_excerpt="olive: I prefer tea",
    )
    pause = Pause()
    # Any candidate counts as the duplicate, so that only the race matters.
    monkeypatch.setattr(
        "memories.writing.extraction_jobs.candidate_of", lambda memory, candidates, text: candidates[0]
    )
    monkeypatch.setattr("memories.writing.extraction_jobs.candidates_of", pause.after(run.candidates_of))
    act = lambda: forget_chat(chat, by=cast.owner, now=timezone.now())  # noqa: E731
    outcome = meanwhile(pause, lambda: tasks.rerun_extraction(memory_id=memory.pk, by_id=cast.owner.pk), act)
    assert outcome == "it was forgotten in the meantime"
    memory.refresh_from_db()
    assert (memory.content, memory.summary, memory.source_excerpt) == (SAID, None, "")
    assert places_with("I prefer tea") == []


@pytest.mark.parametrize("act", ["edit", "delete", "restore", "replace", "keep"])
def test_people_who_change_it_meanwhile_hear_that_it_is_gone(act: str, memory: Memory, cast: Cast) -> None:
    now = timezone.now()
    acts: dict[str, Callable[[], Any]] = {
        "edit": lambda: gate.edit_memory(memory, by=cast.owner, now=now, content="Brought back"),
        "delete": lambda: gate.delete_memory(memory, by=cast.owner, now=now),
        "restore": lambda: undoing.restore_memory(memory, by=cast.owner, now=now),
        "replace": lambda: undoing.replace_older(memory, by=cast.owner, now=now),
        "keep": lambda: undoing.keep_both(memory, by=cast.owner, now=now),
    }
    with transaction.atomic():
        forget_memories([memory], by=None, now=now)
        changing = Work(acts[act])
        assert changing.waits_for_a_lock()
    assert isinstance(changing.end(), NotFound)
    assert nothing_is_left()


def test_two_who_forget_the_same_at_once(memory: Memory, cast: Cast) -> None:
    with transaction.atomic():
        forget_memories([memory], by=None, now=timezone.now())
        second = Work(lambda: forget_memories([memory], by=None, now=timezone.now()))
        assert second.waits_for_a_lock()
    assert second.end().removed == {}
    assert connection.in_atomic_block is False
    assert nothing_is_left()
