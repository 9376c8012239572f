"""Saving many at once follows the rules of saving one: it stores, refuses, merges and links the same."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from memories.models import Memory, Revision, Scope
from memories.recalling.recall import recall
from memories.writing.drafts import Draft
from memories.writing.gate import delete_memory, save_memory
from memoryhub.errors import Invalid, SecretRefused
from memoryhub.llm.base import Embedder
from tests.bulk import save_memories
from tests.conftest import Cast
from tests.factories import HERE
from workspaces.index.embedding import embed_texts
from workspaces.models import PassageVector, PassageWord

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def draft(cast: Cast, content: str, **fields: object) -> Draft:
    return Draft(content=content, workspace=cast.workspace, author=cast.editor, **fields)  # type: ignore[arg-type]


TEXTS = [
    "The office is in Lisbon",
    "Mona keeps three bees in the garden",
    "The office is in Lisbon.",  # equal but for the full stop
    "Mona keeps four bees in the garden",  # another number
    "The invoice goes out on Mondays",
]


def test_stores_what_one_by_one_would_store(cast: Cast) -> None:
    other = Cast(cast.workspace, cast.owner, cast.editor, cast.viewer, cast.stranger)
    singly = [save_memory(draft(other, text), by=cast.editor, now=NOW) for text in TEXTS]
    expected = [(s.created, s.duplicate, s.memory.content, _replaces(s.memory)) for s in singly]
    rows = _state()
    Memory.objects.all().delete()

    saved = save_memories([draft(cast, text) for text in TEXTS], by=cast.editor, now=NOW)

    assert [(s.created, s.duplicate, s.memory.content, _replaces(s.memory)) for s in saved] == expected
    assert _state() == rows


def _replaces(memory: Memory) -> str:
    return memory.may_replace.content if memory.may_replace else ""


def _state() -> object:
    """Return everything stored, by content instead of primary key."""
    contents = dict(Memory.objects.values_list("pk", "content"))
    memories = Memory.objects.order_by("content").values_list(
        "content", "search", "content_hash", "workspace", "author", "scope", "created_at", "source_excerpt"
    )
    vectors = [
        (contents[v.ref], v.place, v.model, v.dimension, v.live, v.embedding, v.statement)
        for v in PassageVector.objects.all()
    ]
    found = PassageWord.objects.values_list("place", "lexeme", "ref", "weight")
    words = sorted((place, lexeme, contents[pk], round(weight, 9)) for place, lexeme, pk, weight in found)
    revisions = sorted(Revision.objects.values_list("memory__content", "action", "by", "at"))
    return list(memories), sorted(vectors, key=lambda v: str(v[0])), words, revisions


def test_compares_with_what_is_stored_already(cast: Cast) -> None:
    before = save_memory(draft(cast, "Rufus weighs 12 kilos"), by=cast.editor, now=NOW).memory
    forgotten = save_memory(draft(cast, "The roof leaks"), by=cast.editor, now=NOW).memory
    delete_memory(forgotten, by=cast.editor, now=NOW)

    saved = save_memories(
        [
            draft(cast, "rufus weighs 12 kilos"),
            draft(cast, "Rufus weighs 14 kilos"),
            draft(cast, "The roof leaks"),
        ],
        by=cast.editor,
        now=NOW,
    )

    assert saved[0].duplicate and saved[0].memory == before
    assert saved[1].created and saved[1].memory.may_replace == before
    assert saved[2].created and saved[2].memory != forgotten


def test_keys_update_in_place_also_within_one_call(cast: Cast) -> None:
    before = save_memory(draft(cast, "Tea", key="drink"), by=cast.editor, now=NOW).memory
    saved = save_memories(
        [
            draft(cast, "Coffee", key="drink"),
            draft(cast, "Lisbon", key="city"),
            draft(cast, "Porto", key="city"),
        ],
        by=cast.editor,
        now=NOW,
    )
    assert [s.created for s in saved] == [False, True, False]
    assert saved[0].memory.pk == before.pk
    assert set(Memory.objects.live(NOW).values_list("key", "content")) == {
        ("drink", "Coffee"),
        ("city", "Porto"),
    }


def test_many_under_one_key_come_to_what_one_by_one_would(cast: Cast) -> None:
    said = [("Tea", None), ("Tea", "drink"), ("Coffee", "drink"), ("Tea", "other")]
    drafts = [draft(cast, content, key=key) for content, key in said]
    for each in drafts:
        save_memory(each, by=None, now=NOW)
    expected = set(Memory.objects.live(NOW).values_list("key", "content"))
    Memory.objects.all().delete()
    save_memories(drafts, by=None, now=NOW)
    assert set(Memory.objects.live(NOW).values_list("key", "content")) == expected
    assert expected == {("drink", "Coffee"), ("other", "Tea")}


def test_create_stores_everything_and_near_can_be_left_out(cast: Cast) -> None:
    twice = [draft(cast, "The roof leaks"), draft(cast, "The roof leaks")]
    assert all(s.created for s in save_memories(twice, by=None, now=NOW, dedupe="create"))
    edited = [draft(cast, "Three doors are red"), draft(cast, "Four doors are red")]
    saved = save_memories(edited, by=None, now=NOW, near=False)
    assert [s.memory.may_replace for s in saved] == [None, None]


@pytest.mark.parametrize(
    ("content", "error"), [("api_key = sk-ant-api03-" + "Ab1" * 30, SecretRefused), (" ", Invalid)]
)
def test_one_refused_draft_and_nothing_is_stored(cast: Cast, content: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        save_memories([draft(cast, "The roof leaks"), draft(cast, content)], by=None, now=NOW)
    assert not Memory.objects.exists()


def test_places_are_kept_apart_and_personal_ones_lie_at_home(cast: Cast) -> None:
    saved = save_memories(
        [draft(cast, "I play the cello"), draft(cast, "I play the cello", scope=Scope.USER)],
        by=cast.editor,
        now=NOW,
    )
    assert [s.created for s in saved] == [True, True]
    assert saved[0].memory.place == cast.workspace.pk
    assert saved[1].memory.place == -cast.editor.pk
    assert saved[1].memory.workspace.default_of == cast.editor


def test_given_vectors_are_stored_and_an_excerpt_keeps_the_statements_own(
    cast: Cast, fake_embedder: Embedder
) -> None:
    pairs = [("The roof leaks", "It rained. The roof leaks."), ("Tea is green", "")]
    vectors = embed_texts(pairs, [HERE] * len(pairs))
    assert vectors is not None
    saved = save_memories(
        [draft(cast, content, source_excerpt=excerpt) for content, excerpt in pairs],
        by=None,
        now=NOW,
        vectors=vectors,
    )
    first, second = (s.memory.embeddings.get() for s in saved)
    assert first.statement is not None and second.statement is None
    assert (
        recall("roof", cast.workspace, cast.editor, now=NOW, policy=HERE).items[0].memory.content
        == "The roof leaks"
    )


def test_without_an_embedder_the_texts_are_stored_and_found_by_words(
    cast: Cast, use_embedder: Callable[[Embedder | None], None]
) -> None:
    use_embedder(None)
    save_memories([draft(cast, text) for text in TEXTS], by=None, now=NOW)
    assert (
        recall("Lisbon", cast.workspace, cast.editor, now=NOW, policy=HERE).items[0].memory.content
        == TEXTS[0]
    )


def test_a_batch_costs_the_same_statements_whatever_its_size(
    cast: Cast, django_assert_max_num_queries: Callable[[int], object]
) -> None:
    drafts = [draft(cast, f"Locker {number} belongs to person {number}") for number in range(60)]
    with django_assert_max_num_queries(40):  # type: ignore[attr-defined]
        save_memories(drafts, by=cast.editor, now=NOW)
    assert Memory.objects.count() == 60
