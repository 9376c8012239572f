"""Refusals are counted by day and kind, never block a save, and store no word of the text."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from memories.models import Memory, Refusal
from memories.writing import gate, tombstones
from memories.writing.drafts import Draft
from memoryhub.errors import Invalid, SecretRefused
from tests.conftest import Cast
from tests.factories import make_memory

SECRET = "sk-proj-" + "a1B2c3D4" * 5
NOW = datetime(2026, 3, 4, 23, 30, tzinfo=UTC)


def draft(cast: Cast, content: str, **fields: Any) -> Draft:
    return Draft(content=content, workspace=cast.workspace, author=cast.owner, **fields)


def refuse(cast: Cast, content: str, **fields: Any) -> None:
    with pytest.raises((Invalid, tombstones.WasForgotten)):
        gate.save_memory(draft(cast, content, **fields), by=cast.owner, now=NOW)


def counts() -> dict[tuple[str, str], int]:
    return {(row.source_type, row.kind): row.number for row in Refusal.objects.all()}


@pytest.mark.django_db(transaction=True)
def test_refusals_are_counted_by_day_origin_and_kind(cast: Cast) -> None:
    refuse(cast, f"the key is {SECRET}")
    refuse(cast, f"the key is {SECRET}")
    refuse(cast, f"the key is {SECRET}", source_type="auto_chat")
    refuse(cast, "my password is hunter2hunter2")
    refuse(cast, "   ")
    assert counts() == {
        ("user", "openai"): 2,
        ("auto_chat", "openai"): 1,
        ("user", "password"): 1,
        ("user", "invalid"): 1,
    }
    memory = make_memory("The kettle is green", cast.owner, cast.workspace)
    with pytest.raises(SecretRefused):
        gate.edit_memory(memory, by=cast.owner, now=NOW, content=f"the key is {SECRET}")
    assert counts()["user", "openai"] == 3, "an edit is counted where the memory is"
    tombstones.add_tombstones([(cast.workspace.pk, "The kettle is red")], now=NOW)
    refuse(cast, "The kettle is red", source_type="model")
    assert counts()["model", "forgotten"] == 1
    assert {(row.day, row.workspace) for row in Refusal.objects.all()} == {(NOW.date(), cast.workspace)}


@pytest.mark.django_db(transaction=True)
def test_no_word_of_it_is_kept(cast: Cast) -> None:
    """The text leaves no word, and neither does a caller's own label."""
    refuse(cast, f"the key is {SECRET}", source_type="zotero of olive")
    refuse(cast, "harmless", source_type=f"label {SECRET}"[:50])
    with connection.cursor() as cursor:
        cursor.execute("SELECT row_to_json(r)::text FROM memories_refusal r")
        rows = " ".join(row for (row,) in cursor.fetchall())
    assert counts() == {("other", "openai"): 2}
    assert "zotero" not in rows
    assert "sk-proj" not in rows


@pytest.mark.django_db(transaction=True)
def test_it_waits_for_the_commit_of_whoever_asked(cast: Cast) -> None:
    """A long transaction holds no lock on the day's row, and a failed count does not break it."""
    with transaction.atomic():
        refuse(cast, f"the key is {SECRET}")
        assert counts() == {}
        make_memory("Stored beside it", cast.owner, cast.workspace)
    assert counts() == {("user", "openai"): 1}
    assert Memory.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_broken_count_breaks_nothing_else(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tombstones, "_COUNT", "SELECT * FROM nowhere WHERE %s = %s OR %s = %s")
    refuse(cast, f"the key is {SECRET}")
    assert "ProgrammingError" in caplog.text
    assert SECRET not in caplog.text
    assert make_memory("Still stores", cast.owner, cast.workspace).pk


@pytest.mark.django_db(transaction=True)
def test_a_workspace_that_went_meanwhile_costs_only_the_number(cast: Cast) -> None:
    tombstones.count_refusals([SecretRefused(kind="openai")], 2**40, "user", timezone.now())
    assert counts() == {}
