"""Foreign keys to memories in parts: triggers that refuse the same, and the keys again when they are whole."""

from __future__ import annotations

import threading

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction

from memories.models import Memory, MemorySource, Revision
from tests.memories.recalling.test_partitions import MEMORIES, Killed, ask, looks, olive
from workspaces.index import partitions, references
from workspaces.index.parted_tables import parts_of, tables
from workspaces.index.partitions import repartition
from workspaces.models import User, Workspace

__all__ = ["olive"]
pytestmark = pytest.mark.django_db(transaction=True)


def test_in_parts_a_row_refers_to_a_memory_that_is_there(olive: User) -> None:
    """As foreign keys say it of whole tables: at the end of a transaction, whoever writes."""
    ours, other = Memory.objects.filter(workspace__name="Place 0").order_by("pk")[:2]
    there = {(each.name, each.table, each.column) for each in references.references_to(MEMORIES)}
    assert {table for _, table, _ in there} > {"memories_memory", "memories_revision", "memories_receiptitem"}
    repartition(4)
    assert {(each.name, each.table, each.column) for each in references.references_to(MEMORIES)} == there
    note = "INSERT INTO memories_memorysource (memory_id, source_id) VALUES (%s, 'msg_1')"
    for refused in (
        (note, [2**40]),
        ("UPDATE memories_memory SET may_replace_id = %s WHERE id = %s", [2**40, ours.pk]),
        ("DELETE FROM memories_memory WHERE id = %s", [ours.pk]),  # its revision is still there
    ):
        with pytest.raises(IntegrityError, match="refer"):
            ask(*refused)
    with transaction.atomic():  # what refers to nothing only until the end, or is itself gone by then
        ask(note, [2**40])
        ask("UPDATE memories_memorysource SET memory_id = %s WHERE memory_id = %s", [ours.pk, 2**40])
        ask(note, [2**40])
        ask("DELETE FROM memories_memorysource WHERE memory_id = %s", [2**40])
    Memory.objects.filter(pk=other.pk).update(may_replace=ours)
    elsewhere = Workspace.objects.get(name="Place 3")
    ask(
        "UPDATE memories_memory SET workspace_id = %s WHERE id = %s", [elsewhere.pk, ours.pk]
    )  # to another part
    assert Memory.objects.get(pk=ours.pk).revisions.exists() and ours.embeddings.exists()
    ours.delete()
    other.refresh_from_db()
    assert other.may_replace is None and not Revision.objects.filter(memory=ours.pk).exists()


def test_killed_before_foreign_keys_were_checked_it_goes_on(
    olive: User, capsys: pytest.CaptureFixture[str]
) -> None:
    looked = looks()
    repartition(4)

    def killed(text: str) -> None:
        if "VALIDATE" in text:
            raise Killed

    with pytest.raises(Killed):
        repartition(0, killed)
    assert [parts_of(table) for table in tables()] == [0, 0, 0]
    with pytest.raises(IntegrityError):  # what is written is checked already
        ask("INSERT INTO memories_memorysource (memory_id, source_id) VALUES (%s, 'msg_1')", [2**40])
    call_command("partition")
    assert "run this with --parts 0" in capsys.readouterr().out
    assert repartition(0) == {} and looks() == looked


def test_in_parts_a_memory_is_held_by_who_refers_to_it(olive: User) -> None:
    """Of one who deletes it and one who notes something of it at this moment, the second is refused."""
    memory = Memory.objects.filter(workspace__name="Place 0").first()
    assert memory is not None
    Revision.objects.filter(memory=memory).delete()
    repartition(4)
    deleted, failed = threading.Event(), []

    def note() -> None:
        try:
            deleted.wait(5)
            ask("INSERT INTO memories_memorysource (memory_id, source_id) VALUES (%s, 'msg_1')", [memory.pk])
        except IntegrityError as error:
            failed.append(error)
        finally:
            connection.close()

    other = threading.Thread(target=note)
    other.start()
    with transaction.atomic():
        ask("DELETE FROM memories_memory WHERE id = %s", [memory.pk])
        deleted.set()
        other.join(0.5)
        assert other.is_alive()  # waits
    other.join()
    assert len(failed) == 1 and not MemorySource.objects.exists()


def test_a_foreign_key_that_does_more_is_said_before_anything_is_done(olive: User) -> None:
    ask("CREATE TABLE noted (memory bigint REFERENCES memories_memory (id) ON DELETE CASCADE)")
    try:
        with pytest.raises(CommandError, match="ON DELETE CASCADE"):
            call_command("partition", parts=4)
    finally:
        ask("DROP TABLE noted")
    assert [parts_of(table) for table in tables()] == [0, 0, 0] and partitions.begun() == {}
