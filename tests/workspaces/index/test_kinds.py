"""A second kind of passages needs only a registration and rows: the index treats it like memories."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, models
from django.test.utils import isolate_apps
from django.utils import timezone
from django_q.models import OrmQ

from memories.models import Memory
from memories.models.memory import MEMORY
from memories.recalling.recall import recall
from tests.conftest import Cast
from tests.factories import HERE, make_memory
from tests.fakes.embedder import FakeEmbedder
from tests.memories.recalling.test_embedding_models import Models
from workspaces import tasks
from workspaces.index import index_maintenance, reembedding
from workspaces.index.embedding import embed_query, queue_embedding
from workspaces.index.hybrid_search import (
    Candidate,
    bm25,
    find_candidates,
    index_words,
    search_area,
    unindex_words,
)
from workspaces.models import CommonWord, PassageVector, PassageWord, PlaceStatistics, Workspace, index
from workspaces.models.index import Kind, kind_numbered

pytestmark = pytest.mark.django_db
TABLE = """
CREATE FUNCTION note_words(n note) RETURNS TABLE (lexeme text, count float8) LANGUAGE sql STABLE AS $$
    SELECT lexeme, count FROM workspaces_words(n.body)
$$;
CREATE TRIGGER forget_notes AFTER DELETE ON note REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
EXECUTE FUNCTION workspaces_forget_passages('99', 'note_words', 'm.workspace_id');
"""


@pytest.fixture
def models_(monkeypatch: pytest.MonkeyPatch) -> Models:
    made = Models(monkeypatch)
    made.configure(FakeEmbedder(32, name="old"))
    return made


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch, models_: Models) -> Iterator[Kind]:
    # A model with an app label would call the app's ready() again, with all its registrations
    with isolate_apps():

        class Note(models.Model):
            workspace = models.ForeignKey(Workspace, on_delete=models.DO_NOTHING, related_name="+")
            body = models.TextField()

            class Meta:
                app_label = "workspaces"
                db_table = "note"

            def __str__(self) -> str:
                return self.body

            @property
            def place(self) -> int:
                return self.workspace_id

    with connection.schema_editor() as editor:
        editor.create_model(Note)
        editor.execute(TABLE)
    kind = Kind(
        number=99,
        name="note",
        model=Note,
        place="m.workspace_id",
        words="note_words",
        here="m.workspace_id = %(workspace)s::bigint",
        text="body",
        gone_at="",
    )
    monkeypatch.setattr(index, "_kinds", dict(index._kinds))
    index.register_kind(kind)
    yield kind


@pytest.fixture
def write(
    notes: Kind, cast: Cast, django_capture_on_commit_callbacks: Callable[..., Any]
) -> Callable[..., list[int]]:
    """Store notes and pass them to the index."""

    def stored(*texts: str, workspace: Workspace = cast.workspace) -> list[int]:
        made = notes.model._default_manager.bulk_create(
            notes.model(workspace=workspace, body=text) for text in texts
        )
        ids = [note.pk for note in made]
        index_words(notes, ids)
        with django_capture_on_commit_callbacks(execute=True):
            queue_embedding(notes, ids)
        job = OrmQ.objects.latest("pk")
        assert job.func() == "workspaces.tasks.embed_passages"
        assert tasks.embed_passages(**job.task["kwargs"]) == len(ids)
        return ids

    return stored


def find(query: str, cast: Cast, among: tuple[int, ...]) -> list[Candidate]:
    where = search_area(cast.workspace.pk, cast.editor.pk)
    assert where is not None
    embedded = embed_query([query], where.active, local_only=False)
    assert embedded is not None
    vector = embedded[0], embedded[1][0]
    found = [
        each for kind in among for each in find_candidates(kind_numbered(kind), query, vector, where, 20)
    ]
    return sorted(found, key=lambda each: -(each.cosine or 0))


def test_notes_are_found_by_meaning_and_words_and_beside_memories_in_one_list(
    cast: Cast, write: Callable[..., list[int]], notes: Kind
) -> None:
    lease, kettle = write("The lease ends in October", "The kettle is red")
    memory = make_memory("The lease is with Mona", cast.editor, cast.workspace)

    best = find("when does the lease end", cast, (99,))
    assert [(each.kind, each.ref) for each in best] == [(99, lease), (99, kettle)]
    assert best[0].cosine > best[1].cosine and best[0].words > best[1].words == 0  # type: ignore[operator]
    both = find("lease", cast, (MEMORY, 99))
    assert {(each.kind, each.ref) for each in both} == {(99, lease), (99, kettle), (MEMORY, memory.pk)}
    assert {each.ref for each in both if each.words} == {lease, memory.pk}
    params = {"workspace": cast.workspace.pk, "user": cast.editor.pk, "places": f"{{{cast.workspace.pk}}}"}
    assert set(bm25(notes, "lease", params, 10)) == {lease}


def test_recall_of_memories_knows_nothing_of_notes(cast: Cast, write: Callable[..., list[int]]) -> None:
    memory = make_memory("The lease is with Mona", cast.editor, cast.workspace)
    alone = recall("the lease with Mona", cast.workspace, cast.editor, policy=HERE, now=timezone.now()).items
    write(*("The lease with Mona" for _ in range(30)))
    for ranking in ("hybrid", "semantic", "longterm", "lexical"):
        found = recall(
            "the lease with Mona",
            cast.workspace,
            cast.editor,
            ranking=ranking,
            policy=HERE,
            now=timezone.now(),
        )
        assert [item.memory.pk for item in found.items] == [memory.pk]
    again = recall("the lease with Mona", cast.workspace, cast.editor, policy=HERE, now=timezone.now()).items
    assert again[0].parts == pytest.approx(alone[0].parts, abs=1e-3)  # its words are counted among memories


def test_nobody_finds_notes_of_a_workspace_that_is_not_theirs(
    cast: Cast, write: Callable[..., list[int]]
) -> None:
    write("The lease ends in October", workspace=Workspace.objects.create(name="Elsewhere"))
    assert find("lease", cast, (99, MEMORY)) == []
    assert search_area(cast.workspace.pk, cast.stranger.pk) is None


def test_the_same_key_in_two_kinds_is_two_passages(cast: Cast, notes: Kind) -> None:
    memory = make_memory("Tea is in the left cupboard", cast.editor, cast.workspace)
    note = notes.model(pk=memory.pk, workspace=cast.workspace, body="Coffee is in the right cupboard")
    note.save()
    index_words(notes, [note.pk])
    assert reembedding.fill_gaps() == 1
    assert {v.kind for v in PassageVector.objects.filter(ref=memory.pk)} == {MEMORY, 99}
    assert [each.kind for each in find("coffee", cast, (99, MEMORY)) if each.words] == [99]

    note.delete()
    assert {v.kind for v in PassageVector.objects.all()} == {MEMORY}
    assert set(PassageWord.objects.filter(lexeme__in=["tea", "coffe"]).values_list("lexeme", "kind")) == {
        ("tea", MEMORY)
    }


def test_what_is_deleted_in_any_way_leaves_nothing(
    cast: Cast, write: Callable[..., list[int]], notes: Kind
) -> None:
    make_memory("Tea", cast.editor, cast.workspace)
    ids = write(*(f"Note {number} about the lease" for number in range(5)))
    assert unindex_words(notes, ids[:1]) > 0
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM note WHERE id = ANY(%s)", [ids[:3]])
    assert set(PassageVector.objects.filter(kind=99).values_list("ref", flat=True)) == set(ids[3:])
    assert set(PassageWord.objects.filter(kind=99).values_list("ref", flat=True)) == set(ids[3:])
    notes.model._default_manager.all().delete()
    assert not PassageVector.objects.filter(kind=99).exists()
    assert not PassageWord.objects.filter(kind=99).exists()
    assert PassageVector.objects.filter(kind=MEMORY).exists()
    Memory.objects.all().delete()
    assert not PassageVector.objects.exists() and not PassageWord.objects.exists()


def test_a_new_model_is_built_for_every_kind_before_recall_goes_over(
    cast: Cast, write: Callable[..., list[int]], notes: Kind, models_: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_memory("Tea", cast.editor, cast.workspace)
    write("The lease ends in October", "The kettle is red", "The roof leaks")
    models_.configure(FakeEmbedder(48, name="new"))
    monkeypatch.setattr(reembedding, "BATCH", 2)
    model = reembedding.start()
    assert model is not None
    assert (model.total_count, model.done_count) == (4, 0)
    assert reembedding._build_batch(model) and not reembedding.switch(model)
    assert reembedding.advance(seconds=60) == reembedding.Outcome.SWITCHED
    new = PassageVector.objects.filter(model="new").values_list("kind", flat=True)
    assert sorted(new) == [MEMORY, 99, 99, 99]
    assert len(find("lease", cast, (99,))) == 3


def test_words_of_a_large_place_are_counted_for_each_kind(
    cast: Cast, write: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_memory("The lease is with Mona", cast.editor, cast.workspace)
    monkeypatch.setattr(index_maintenance, "COUNT_FROM", 20)
    monkeypatch.setattr(index_maintenance, "FORGET_COUNTS_BELOW", 10)
    write(*(f"The lease of house {number} ends" for number in range(30)), "The kettle is red")
    before = {(each.kind, each.ref): each.words for each in find("red kettle lease", cast, (99, MEMORY))}
    for kind in index.kinds():
        index_maintenance._keep_counts(index_maintenance.Upkeep(), kind, timezone.now())
    assert [(each.kind, each.passage_count) for each in PlaceStatistics.objects.all()] == [(99, 31)]
    assert CommonWord.objects.get(lexeme="leas").passage_count == 30
    after = {(each.kind, each.ref): each.words for each in find("red kettle lease", cast, (99, MEMORY))}
    assert {pk: words for pk, words in after.items() if words} == pytest.approx(
        {pk: words for pk, words in before.items() if words}
    )


def test_one_number_is_one_kind(notes: Kind) -> None:
    index.register_kind(notes)  # a second registration is harmless
    with pytest.raises(ValueError, match="one number"):
        index.register_kind(Kind(99, "other", Memory, place="1", words="w", here="true"))


def test_the_index_names_no_table_of_what_it_indexes() -> None:
    for path in Path(index_maintenance.__file__).parent.glob("*.py"):
        named = path.read_text()
        assert "memories_" not in named and "import memories" not in named and "from memories" not in named
