import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ

from memories import tasks
from memories.access import count_live
from memories.models import Memory, Scope
from memories.recalling.recall import recall
from memories.writing.changing import keep_both, restore_memory
from memories.writing.gate import Draft, delete_memory, edit_memory, save_memory
from memoryhub.database import queries
from memoryhub.errors import Conflict, Invalid, NotFound, SecretRefused
from memoryhub.llm.base import Embedder
from memoryhub.llm.bundled_embedder import TwoEncoders
from memoryhub.llm.errors import EmbedderUnavailable
from tests.bulk import save_memories
from tests.conftest import Cast
from tests.factories import HERE, make_memory, make_user, make_workspace
from tests.fakes.embedder import FakeEmbedder
from workspaces.access import default_workspace

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


def draft(cast: Cast, content: str, **fields: object) -> Draft:
    return Draft(content=content, workspace=cast.workspace, author=cast.editor, **fields)  # type: ignore[arg-type]


def test_saves_a_stripped_statement_with_vector_words_and_revision(cast: Cast) -> None:
    saved = save_memory(
        draft(cast, "  The deadline is March 15 \n", category=" fact "), by=cast.editor, now=NOW
    )
    memory = Memory.objects.get(pk=saved.memory.pk)
    assert saved.created
    assert (memory.content, memory.category, memory.author, memory.created_at) == (
        "The deadline is March 15",
        "fact",
        cast.editor,
        NOW,
    )
    vector = memory.embeddings.get()
    assert (vector.dimension, vector.live, vector.place) == (TwoEncoders.dimension, True, cast.workspace.pk)
    assert "deadlin" in memory.search
    assert [r.action for r in memory.revisions.all()] == ["create"]


def test_refuses_what_a_field_does_not_allow_and_names_it(cast: Cast) -> None:
    for fields, named in (
        ({"content": ""}, "content"),
        ({"content": "   "}, "content"),
        ({"content": "x" * 2001}, "content"),
        ({"content": "null \x00 byte"}, "content"),
        ({"content": "lone \ud800 surrogate"}, "content"),
        ({"content": 5}, "content"),
        ({"key": "k" * 201}, "key"),
        ({"category": "c" * 51}, "category"),
        ({"tags": "not a list"}, "tags"),
        ({"tags": ["t" * 51]}, "tags"),
        ({"tags": [f"t{i}" for i in range(21)]}, "tags"),
        ({"importance": 1.5}, "importance"),
        ({"importance": float("nan")}, "importance"),
        ({"importance": True}, "importance"),
        ({"pinned": "yes"}, "pinned"),
        ({"expires_at": datetime(2027, 1, 1)}, "expires_at"),
        ({"scope": "galaxy"}, "scope"),
    ):
        with pytest.raises(Invalid) as refused:
            save_memory(replace(draft(cast, "fine"), **fields), by=cast.editor, now=NOW)  # type: ignore[arg-type]
        assert named in refused.value.fields
        assert not Memory.objects.exists()


def test_duplicates_are_looked_for_in_the_same_workspace_and_scope_only(cast: Cast) -> None:
    other = make_workspace(owner=cast.editor, name="Other")
    save_memory(draft(cast, "I drink tea"), by=cast.editor, now=NOW)
    elsewhere = save_memory(Draft("I drink tea", other, cast.editor), by=cast.editor, now=NOW)
    personal = save_memory(draft(cast, "I drink tea", scope=Scope.USER), by=cast.editor, now=NOW)
    assert elsewhere.created
    assert personal.created
    assert personal.memory.workspace == default_workspace(cast.editor)


def test_edit_embeds_anew_drops_what_came_from_the_old_text_and_keeps_a_revision(cast: Cast) -> None:
    memory = make_memory(
        "The office is in Lisbon",
        cast.editor,
        cast.workspace,
        summary="Lisbon office",
        source_excerpt="olive: Lisbon",
    )
    old_vector = memory.embeddings.get().embedding
    edited = edit_memory(memory, by=cast.owner, now=NOW, content="The cat is called Biscuit")
    assert (edited.summary, edited.source_excerpt) == (None, "")
    assert edited.embeddings.get().embedding != old_vector
    assert "lisbon" not in Memory.objects.get(pk=memory.pk).search
    revision = edited.revisions.get(action="edit")
    assert (revision.by, revision.before["content"]) == (cast.owner, "The office is in Lisbon")


def test_edit_refuses_bad_values_and_loses_nothing(cast: Cast) -> None:
    memory = make_memory("Kept", cast.editor, cast.workspace, key="a")
    make_memory("Other", cast.editor, cast.workspace, key="b")
    with pytest.raises(Invalid):
        edit_memory(memory, by=cast.editor, now=NOW, content="")
    with pytest.raises(SecretRefused):
        edit_memory(memory, by=cast.editor, now=NOW, content="password=hunter2hunter2")
    with pytest.raises(Conflict):
        edit_memory(memory, by=cast.editor, now=NOW, key="b")
    memory.refresh_from_db()
    assert (memory.content, memory.key) == ("Kept", "a")


def test_delete_is_soft_and_can_be_undone(cast: Cast) -> None:
    memory = make_memory("I play the cello", cast.editor, cast.workspace)
    delete_memory(memory, by=cast.editor, now=NOW)
    delete_memory(memory, by=cast.editor, now=NOW)
    assert not memory.embeddings.get().live  # or it would take the place of another candidate
    assert count_live(cast.workspace, cast.editor, personal=True, now=timezone.now()) == 0
    assert recall("cello", cast.workspace, cast.editor, policy=HERE, now=timezone.now()).items == []
    assert save_memory(draft(cast, "I play the cello"), by=cast.editor, now=NOW).created
    restore_memory(memory, by=cast.editor, now=NOW)
    assert count_live(cast.workspace, cast.editor, personal=True, now=timezone.now()) == 2
    actions = [revision.action for revision in memory.revisions.order_by("pk")]
    assert actions == ["create", "delete", "restore"]
    with pytest.raises(NotFound):
        edit_memory(delete_memory(memory, by=None, now=NOW), by=cast.editor, now=NOW, content="back")


def test_text_is_stored_without_an_embedder_found_by_words_and_embedded_later(
    cast: Cast, fake_embedder: FakeEmbedder, django_capture_on_commit_callbacks: Callable[..., object]
) -> None:
    fake_embedder.error = EmbedderUnavailable()
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        memory = save_memory(draft(cast, "The dog is called Rufus"), by=cast.editor, now=NOW).memory
    assert not memory.embeddings.exists()
    found = recall("Rufus", cast.workspace, cast.editor, policy=HERE, now=timezone.now())
    assert [item.memory for item in found.items] == [memory]
    assert found.degraded
    assert OrmQ.objects.count() >= 1
    fake_embedder.error = None
    assert tasks.embed_memories(memory_ids=[memory.pk]) == 1
    assert memory.embeddings.get().dimension == 64
    assert tasks.embed_memories(memory_ids=[memory.pk]) == 1  # twice is harmless
    assert memory.embeddings.count() == 1


@pytest.mark.parametrize("how", [{}, {"dedupe": "create"}, {"near": False}])
def test_what_was_to_be_a_row_of_its_own_is_not_compared_late(
    cast: Cast, fake_embedder: FakeEmbedder, how: dict[str, Any]
) -> None:
    save_memory(draft(cast, "Our office dog is called Rufus"), by=cast.editor, now=NOW)
    fake_embedder.error = EmbedderUnavailable()
    texts = ["Our office dog here is called Rufus", "Our office dog there is called Rufus"]
    if "near" not in how:
        save_memory(draft(cast, texts.pop()), by=cast.editor, now=NOW, **how)
    save_memories([draft(cast, text) for text in texts], by=cast.editor, now=NOW, **how)
    fake_embedder.error = None
    late = Memory.objects.exclude(content="Our office dog is called Rufus")
    assert tasks.embed_memories(memory_ids=list(late.values_list("pk", flat=True))) == 2
    assert late.filter(deleted_at=None, may_replace=None).count() == (2 if how else 0)


@pytest.mark.django_db(transaction=True)
def test_two_equal_saves_at_the_same_instant_store_one_row(use_embedder: Callable[[Embedder], None]) -> None:
    use_embedder(FakeEmbedder(16))
    person = make_user()
    workspace = default_workspace(person)
    gate_open = threading.Barrier(4)
    results: list[bool] = []

    def save() -> None:
        gate_open.wait()
        try:
            results.append(save_memory(Draft("Same text", workspace, person), by=person, now=NOW).created)
        finally:
            connection.close()

    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False, False, False, True]
    assert Memory.objects.count() == 1


def test_a_double_that_is_forgotten_for_good_at_that_moment_is_none(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleted between the search for a duplicate and reading it; the new text is then stored."""
    double = make_memory("Cats purr", cast.owner, cast.workspace)
    look = queries.rows

    def forgotten_after(statement: str, params: queries.Params, **how: bool) -> list[tuple[Any, ...]]:
        found = look(statement, params, **how)
        if "content_hash" in statement and statement.lstrip().startswith("SELECT") and found:
            Memory.objects.filter(pk=double.pk).delete()
        return found

    monkeypatch.setattr("memories.writing.decide.queries.rows", forgotten_after)
    draft = Draft("Cats purr", cast.workspace, cast.owner)
    saved = save_memory(draft, by=cast.owner, now=timezone.now())
    assert saved.created
    assert saved.memory.pk != double.pk


def test_keep_both_only_unlinks(cast: Cast) -> None:
    save_memory(draft(cast, "The project deadline is March 15"), by=cast.editor, now=NOW)
    new = save_memory(draft(cast, "The project deadline is March 22"), by=cast.editor, now=NOW).memory
    assert keep_both(new, by=cast.editor, now=NOW).may_replace is None
    assert count_live(cast.workspace, cast.editor, personal=True, now=timezone.now()) == 2
