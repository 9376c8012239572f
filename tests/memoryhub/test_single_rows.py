"""A row written by a prepared statement is the row that ``save()`` writes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError, IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.models import Memory, Revision
from memories.recalling.words import SEARCH
from memoryhub.single_rows import insert_row, update_row
from tests.conftest import Cast
from tests.factories import make_memory

HOSTILE = "100 % of 'it' \\ %s $1 \"x\" {} é 😀"


def new(cast: Cast, **fields: Any) -> Memory:
    return Memory(workspace=cast.workspace, author=cast.owner, content_hash="-", **fields)


def plain(memory: Memory) -> dict[str, Any]:
    kept = vars(Memory.objects.get(pk=memory.pk))
    return {name: value for name, value in kept.items() if name not in {"_state", "id", "public_id"}}


@pytest.mark.parametrize("logged", [False, True])
def test_it_stores_what_save_stores(cast: Cast, logged: bool) -> None:
    now, connection.force_debug_cursor = timezone.now(), logged
    fields: dict[str, Any] = {
        "content": HOSTILE,
        "tags": ["a,b", HOSTILE],
        "importance": 1,
        "expires_at": now + timedelta(days=1),
        "source_details": {HOSTILE: [1, None, {"a": HOSTILE}]},
        "secret_rules": 2**31 - 1,
        "created_at": now,
        "updated_at": now,
    }
    try:
        for each in (fields, {"content": "x", "created_at": now, "updated_at": now}):
            saved, inserted = new(cast, **each), new(cast, **each)
            saved.save()
            insert_row(inserted)
            assert plain(inserted) == plain(saved)
            assert not inserted._state.adding
            inserted.content, inserted.tags, inserted.expires_at = "new", [], None
            update_row(inserted, ["content", "tags", "expires_at"])
            saved.content, saved.tags, saved.expires_at = "new", [], None
            saved.save(update_fields=["content", "tags", "expires_at"])
            assert plain(inserted) == plain(saved)
    finally:
        connection.force_debug_cursor = False


def test_a_column_may_be_made_of_the_others(cast: Cast) -> None:
    memory = new(cast, content="Houses are blue")
    with CaptureQueriesContext(connection) as captured:
        insert_row(memory, {"search": SEARCH})
    assert len(captured) == 1
    made = str(Memory.objects.get(pk=memory.pk).search)
    assert f"'at:{cast.workspace.pk}'" in made
    assert "'hous'" in made


def test_only_the_row_and_the_fields_that_are_meant_are_changed(cast: Cast) -> None:
    one, other = (make_memory(text, cast.owner, cast.workspace) for text in ("Blue", "Red"))
    before = plain(other), one.importance
    one.content, one.importance = "Green", 0.9
    update_row(one, ["content"])
    one.refresh_from_db()
    assert (one.content, one.importance) == ("Green", before[1])
    assert plain(other) == before[0]


@pytest.mark.parametrize(
    ("wrong", "error"), [({"key": "k" * 201}, DataError), ({"importance": 2.0}, IntegrityError)]
)
def test_what_the_database_refuses_is_refused_and_not_cut(
    cast: Cast, wrong: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error), transaction.atomic():
        insert_row(new(cast, content="x", **wrong))
    memory = make_memory("Blue", cast.owner, cast.workspace)
    for name, value in wrong.items():
        setattr(memory, name, value)
    with pytest.raises(error), transaction.atomic():
        update_row(memory, list(wrong))


def test_relations_are_stored_by_their_keys(cast: Cast) -> None:
    memory = make_memory("Blue", cast.owner, cast.workspace)
    insert_row(Revision(memory=memory, action="edit", by=None, before={"content": "Red"}))
    revision = memory.revisions.get(action="edit")
    assert (revision.by, revision.before) == (None, {"content": "Red"})
