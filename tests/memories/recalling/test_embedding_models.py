"""Every vector size, and the switch from one embedding model to another during operation."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ

from memories import tasks
from memories.models import Memory
from memories.recalling.recall import Recall, recall
from memories.writing.changing import restore_memory
from memories.writing.gate import Draft, delete_memory, edit_memory, save_memory
from memoryhub.llm.base import Vectors
from memoryhub.llm.errors import EmbedderBadRequest, EmbedderError, EmbedderUnavailable
from tests.conftest import Cast
from tests.factories import HERE, make_memory, make_user
from tests.fakes.embedder import FakeEmbedder
from workspaces.access import default_workspace
from workspaces.index import reembedding
from workspaces.index.embedding import active_model
from workspaces.index.reembedding import Outcome
from workspaces.models import EmbeddingModel, PassageVector
from workspaces.tasks import rebuild

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


class Models:
    """The existing models, and the configured one. Tests change both."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.known: dict[str, FakeEmbedder] = {}
        self.configured: FakeEmbedder | None = None
        monkeypatch.setattr("workspaces.index.embedding.get_embedder", lambda: self.configured)
        monkeypatch.setattr(
            "workspaces.index.embedding.get_earlier_embedder", lambda name, url: self.known.get(name)
        )

    def configure(self, embedder: FakeEmbedder) -> FakeEmbedder:
        self.known[embedder.name] = self.configured = embedder
        return embedder


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    return Models(monkeypatch)


@pytest.fixture
def old(models: Models) -> FakeEmbedder:
    return models.configure(FakeEmbedder(32, name="old"))


def ask(query: str, cast: Cast, **options: Any) -> Recall:
    return recall(query, cast.workspace, cast.editor, **{"now": timezone.now(), **options}, policy=HERE)


def contents(found: Recall) -> list[str]:
    return [item.memory.content for item in found.items]


def labels(memory: Memory) -> set[str]:
    return set(memory.embeddings.values_list("model", flat=True))


def build() -> Outcome:
    reembedding.start()
    return reembedding.advance(seconds=60)


# Sizes


def test_every_size_follows_another_finds_duplicates_and_is_recalled(cast: Cast, models: Models) -> None:
    models.configure(FakeEmbedder(512))
    first = make_memory("The office is in Lisbon near the river", cast.editor, cast.workspace)
    known = {"fake-512"}
    for size in (384, 768, 1024, 3072, 4096):
        known.add(models.configure(FakeEmbedder(size)).name)
        assert build() == Outcome.SWITCHED, size
        assert labels(first) == known
        text = f"My dog of {size} days is called Rufus"
        dog = make_memory(text, cast.editor, cast.workspace, source_excerpt="olive: a grey dog")
        vectors = [*dog.embeddings.all(), *first.embeddings.filter(model=f"fake-{size}")]
        assert {(vector.dimension, len(vector.embedding)) for vector in vectors} == {(size, size)}
        draft = Draft("the office is in Lisbon near the river, office", cast.workspace, cast.owner)
        again = save_memory(draft, by=None, now=NOW)
        assert (again.duplicate, again.memory) == (True, first), size
        for ranking in ("hybrid", "semantic", "longterm"):
            found = ask("where is the office, in Lisbon?", cast, ranking=ranking, limit=1)
            assert ([item.memory for item in found.items], found.degraded) == ([first], ""), (size, ranking)
            assert found.items[0].parts["meaning"] > 0, (size, ranking)


# Switching


def test_the_first_model_is_the_configured_one(cast: Cast, old: FakeEmbedder) -> None:
    assert not EmbeddingModel.objects.exists()
    make_memory("Tea", cast.editor, cast.workspace)
    active = EmbeddingModel.objects.get()
    assert (active.label, active.dimension, active.state) == ("old", 32, "active")
    assert not reembedding.has_work()


def test_until_the_switch_everything_stays_with_the_earlier_model(
    cast: Cast, models: Models, old: FakeEmbedder
) -> None:
    before = make_memory("The office is in Lisbon", cast.editor, cast.workspace)
    new = models.configure(FakeEmbedder(48, name="new"))
    assert reembedding.has_work()
    new.calls.clear()
    after = make_memory("Our deadline is in March", cast.editor, cast.workspace)
    assert active_model() == "old"
    assert contents(ask("deadline March", cast, ranking="semantic")) == ["Our deadline is in March"]
    assert labels(before) == labels(after) == {"old"}
    assert new.calls == []
    assert build() == Outcome.SWITCHED
    assert active_model() == "new"
    assert labels(before) == labels(after) == {"old", "new"}
    assert contents(ask("deadline March", cast, ranking="semantic")) == ["Our deadline is in March"]


def test_an_edit_is_known_to_neither_model_by_its_old_text(
    cast: Cast, models: Models, old: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = make_memory("The office is in Lisbon", cast.editor, cast.workspace)
    new = models.configure(FakeEmbedder(48, name="new"))
    embed = new.embed

    def edited_meanwhile(texts: list[str]) -> Vectors:
        if "The office is in Lisbon" in texts:
            edit_memory(memory, by=cast.editor, now=NOW, content="The office is in Porto")
        return embed(texts)

    monkeypatch.setattr(new, "embed", edited_meanwhile)
    assert build() == Outcome.SWITCHED
    vectors = {v.model: np.asarray(v.embedding) for v in memory.embeddings.all()}
    for model in (old, new):
        expected = FakeEmbedder(model.dim).embed(["The office is in Porto"])[0]
        assert np.allclose(vectors[model.name], expected, atol=2e-3)


def test_deleted_rows_do_not_hold_it_up_and_get_a_vector_when_restored(
    cast: Cast, models: Models, old: FakeEmbedder, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    memory = make_memory("The office is in Lisbon", cast.editor, cast.workspace)
    make_memory("Tea", cast.editor, cast.workspace)
    delete_memory(memory, by=cast.editor, now=NOW)
    models.configure(FakeEmbedder(48, name="new"))
    assert build() == Outcome.SWITCHED
    assert labels(memory) == {"old"}
    with django_capture_on_commit_callbacks(execute=True):
        restore_memory(memory, by=cast.editor, now=NOW)
    assert OrmQ.objects.count() == 1
    tasks.embed_memories(memory_ids=[memory.pk])
    assert contents(ask("office Lisbon", cast, ranking="semantic")) == ["The office is in Lisbon"]


def test_a_vector_that_comes_after_the_switch_is_made_anew(
    cast: Cast, models: Models, old: FakeEmbedder, monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:  # fmt: skip
    make_memory("Tea", cast.editor, cast.workspace)
    new = FakeEmbedder(48, name="new")
    embed, switched = old.embed, []

    def switched_meanwhile(texts: list[str]) -> Vectors:
        vectors = embed(texts)
        if "Coffee at noon" in texts and not switched:
            models.configure(new)
            switched.append(build())
        return vectors

    monkeypatch.setattr(old, "embed", switched_meanwhile)
    with django_capture_on_commit_callbacks(execute=True):
        late = make_memory("Coffee at noon", cast.editor, cast.workspace)
    assert switched == [Outcome.SWITCHED]
    assert labels(late) == set()
    assert contents(ask("coffee", cast))[0] == "Coffee at noon"
    tasks.sweep()
    assert labels(late) == {"new"}


def test_without_the_earlier_model_words_answer_and_say_why(
    cast: Cast, models: Models, old: FakeEmbedder
) -> None:
    make_memory("The office is in Lisbon", cast.editor, cast.workspace)
    models.configure(FakeEmbedder(48, name="new"))
    del models.known["old"]
    for ranking in ("hybrid", "semantic", "longterm"):
        found = ask("Lisbon", cast, ranking=ranking)
        assert contents(found) == ["The office is in Lisbon"]
        assert "earlier embedding model" in found.degraded
    saved = make_memory("Our deadline is in March", cast.editor, cast.workspace)
    assert labels(saved) == set()
    assert build() == Outcome.SWITCHED
    assert labels(saved) == {"new"}
    assert ask("Lisbon", cast).degraded == ""


def test_old_vectors_go_after_a_grace_and_the_way_back_builds_them_again(
    cast: Cast, models: Models, old: FakeEmbedder
) -> None:
    memory = make_memory("Tea", cast.editor, cast.workspace)
    models.configure(FakeEmbedder(48, name="new"))
    assert build() == Outcome.SWITCHED
    assert reembedding.clean(seconds=60) == 0
    assert labels(memory) == {"old", "new"}
    retired = EmbeddingModel.objects.get(label="old")
    EmbeddingModel.objects.update(retired_at=retired.retired_at - 2 * reembedding.GRACE)  # type: ignore[operator]
    assert reembedding.has_work()
    assert reembedding.clean(seconds=60) == 1
    assert labels(memory) == {"new"}
    assert not reembedding.has_work()
    models.configure(old)
    assert build() == Outcome.SWITCHED
    assert (active_model(), labels(memory)) == ("old", {"old", "new"})


def test_a_third_model_takes_the_place_of_the_second_and_the_first_needs_nothing(
    cast: Cast, models: Models, old: FakeEmbedder
) -> None:
    make_memory("Tea", cast.editor, cast.workspace)
    for name in ("second", "third"):
        models.configure(FakeEmbedder(48, name=name))
        reembedding.start()
    states = dict(EmbeddingModel.objects.values_list("label", "state"))
    assert states == {"old": "active", "second": "retired", "third": "building"}
    models.configure(old)
    assert reembedding.start() is None
    assert reembedding.advance(seconds=60) == Outcome.NOTHING
    assert active_model() == "old"


def test_a_text_that_the_new_model_refuses_does_not_hold_up_the_others(
    cast: Cast, models: Models, old: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("Tea", "Unspeakable", "Coffee"):
        make_memory(text, cast.editor, cast.workspace)
    new = models.configure(FakeEmbedder(48, name="new"))
    embed = new.embed

    def picky(texts: list[str]) -> Vectors:
        if "Unspeakable" in texts:
            raise EmbedderBadRequest
        return embed(texts)

    monkeypatch.setattr(new, "embed", picky)
    assert build() == Outcome.SWITCHED
    assert PassageVector.objects.filter(model="new").count() == 2
    assert contents(ask("unspeakable", cast))[0] == "Unspeakable"
    assert tasks.embed_memories(memory_ids=list(Memory.objects.values_list("pk", flat=True))) == 2
    assert Memory.objects.get(content="Unspeakable").embedding_failed_at is not None


@pytest.mark.parametrize("error", [EmbedderUnavailable(), EmbedderError()])
def test_a_failing_new_model_changes_nothing_and_is_tried_again(
    cast: Cast, models: Models, old: FakeEmbedder, error: EmbedderError
) -> None:
    make_memory("Tea", cast.editor, cast.workspace)
    new = models.configure(FakeEmbedder(48, name="new"))
    new.error = error
    assert not reembedding.has_work()  # it does not even report its dimension
    new.error = None
    reembedding.start()
    new.error = error
    assert reembedding.advance(seconds=60) == Outcome.FAILING
    assert EmbeddingModel.objects.get(label="new").error == str(error)
    assert contents(ask("tea", cast, ranking="semantic")) == ["Tea"]
    new.error = None
    assert reembedding.advance(seconds=60) == Outcome.SWITCHED


# Concurrency


@contextmanager
def running(work: Callable[[], bool]) -> Iterator[None]:
    """Repeat ``work`` in a thread with its own connection, until it returns False or the block ends."""
    done, failures = threading.Event(), []

    def repeat() -> None:
        try:
            while not done.is_set() and work():
                pass
        except BaseException as error:  # re-raised in the test
            failures.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if failures:
            raise failures[0]


@pytest.mark.django_db(transaction=True)
def test_recall_and_saves_go_on_through_a_switch(
    models: Models, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., None]
) -> None:
    monkeypatch.setattr(reembedding, "BATCH", 4)
    models.configure(FakeEmbedder(64, name="old"))
    person = make_user()
    workspace = default_workspace(person)
    subjects = [f"subject{number}" for number in range(16)]
    for subject in subjects:
        make_memory(f"The {subject} is in room {subject[7:]}", person, workspace)
    asked: list[tuple[str, str]] = []
    saved: list[Memory] = []

    def asks() -> bool:
        subject = subjects[len(asked) % len(subjects)]
        found = recall(
            f"The {subject} is in room {subject[7:]}",
            workspace,
            person,
            ranking="semantic",
            limit=1,
            threshold=-1,
            policy=HERE,
            now=timezone.now(),
        )
        assert found.degraded == ""
        assert [item.memory.content for item in found.items] == [f"The {subject} is in room {subject[7:]}"]
        asked.append((subject, active_model() or ""))
        return True

    def saves() -> bool:
        saved.append(make_memory(f"Late thought number{len(saved)}", person, workspace))
        edit_memory(saved[-1], by=person, now=NOW, content=f"Edited thought number{len(saved)}")
        return len(saved) < 12

    with running(asks), running(saves):
        eventually(lambda: len(asked) > 3)
        models.configure(FakeEmbedder(64, name="new"))
        assert build() == Outcome.SWITCHED
        after = len(asked)
        eventually(lambda: len(asked) > after + 5)
    assert {label for _, label in asked} == {"old", "new"}
    tasks.sweep()
    vectors = PassageVector.objects.filter(model="new", live=True)
    assert vectors.count() == Memory.objects.filter(deleted_at=None).count()


@pytest.mark.django_db(transaction=True)
def test_the_switch_waits_for_who_is_saving_and_counts_what_was_saved(models: Models) -> None:
    models.configure(FakeEmbedder(16, name="old"))
    person = make_user()
    make_memory("Tea", person)
    new = models.configure(FakeEmbedder(16, name="new"))
    model = reembedding.start()
    assert model is not None
    while reembedding._build_batch(EmbeddingModel.objects.get(pk=model.pk)):
        pass
    saving, go_on = threading.Event(), threading.Event()

    def save() -> None:
        from django.db import transaction

        try:
            with transaction.atomic():
                make_memory("Coffee", person)
                saving.set()
                go_on.wait(10)
        finally:
            connection.close()

    thread = threading.Thread(target=save)
    thread.start()
    saving.wait(10)
    threading.Timer(0.2, go_on.set).start()
    assert reembedding.switch(model) is False  # it waited, and then one vector was missing
    assert go_on.is_set()
    thread.join()
    assert active_model() == "old"
    assert reembedding.advance(seconds=60) == Outcome.SWITCHED
    assert new.calls


@pytest.mark.django_db(transaction=True)
def test_one_process_builds_at_a_time_and_stop_is_heard_between_batches(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembedding, "BATCH", 2)
    models.configure(FakeEmbedder(16, name="old"))
    person = make_user()
    for number in range(10):
        make_memory(f"Thing {number}", person)
    models.configure(FakeEmbedder(16, name="new"))
    reembedding.start()
    seen: list[tuple[int, Outcome]] = []

    def elsewhere(model: EmbeddingModel) -> None:
        def try_too() -> None:
            try:
                seen.append((model.done_count, reembedding.advance(seconds=60)))
                if model.done_count >= 4:
                    reembedding.stop()
            finally:
                connection.close()

        thread = threading.Thread(target=try_too)
        thread.start()
        thread.join()

    assert reembedding.advance(seconds=60, progressed=elsewhere) == Outcome.STOPPED
    assert {outcome for _, outcome in seen} == {Outcome.ELSEWHERE}
    built = PassageVector.objects.filter(model="new").count()
    assert 4 <= built < 10
    assert not reembedding.has_work()
    assert "stopped" in EmbeddingModel.objects.get(label="new").progress
    assert rebuild().startswith("stopped")
    reembedding.start()
    assert rebuild().startswith("switched")
    assert PassageVector.objects.filter(model="new").count() == 10


def test_a_job_ends_in_time_and_queues_the_next(
    cast: Cast, models: Models, old: FakeEmbedder, monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:  # fmt: skip
    make_memory("Tea", cast.editor, cast.workspace)
    models.configure(FakeEmbedder(48, name="new"))
    monkeypatch.setattr("django.conf.settings.JOB_TIMEOUT", 0)
    with django_capture_on_commit_callbacks(execute=True):
        tasks.sweep()
    assert [task.func() for task in OrmQ.objects.all()] == ["workspaces.tasks.rebuild"]
    with django_capture_on_commit_callbacks(execute=True):
        assert rebuild().startswith("unfinished")
    assert OrmQ.objects.count() == 2


def test_progress_says_how_far_how_fast_and_how_long(cast: Cast) -> None:
    model = EmbeddingModel(label="new", state="building", total_count=10_000, done_count=3_200, rate=190.0)
    assert model.progress == "3,200 of 10,000 (32 %), 190 a second, about 36 s left"
    model.rate = 5
    assert model.progress.endswith("about 23 min left")
    model.stopped_at = NOW + timedelta(1)
    assert model.progress == "3,200 of 10,000 (32 %), stopped"
    model.state = "active"
    assert model.progress == ""
