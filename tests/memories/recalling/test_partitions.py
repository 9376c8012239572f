"""``manage.py partition``: the index in parts and whole again, with every row, whatever is written meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.models.signals import pre_migrate
from django.utils import timezone

from memories.models import Memory
from memories.recalling.recall import recall
from memories.writing.gate import edit_memory
from memoryhub.management import troubles
from tests.factories import HERE, make_memory, make_user, make_workspace
from tests.fakes.embedder import FakeEmbedder
from tests.memories.recalling.test_indexes import fill, find, present
from workspaces.index import indexes, parted_tables, partitions
from workspaces.index.parted_tables import VECTORS, WORDS, Table, parts_of, tables
from workspaces.index.partitions import Busy, repartition
from workspaces.management.commands import partition
from workspaces.models import PassageVector, PassageWord, User, VectorIndex, Workspace

pytestmark = pytest.mark.django_db(transaction=True)
MEMORIES = parted_tables.tables()[2]
_LOOKS = """
SELECT 'column ' || attname, concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, attstorage, attidentity,
       pg_get_expr(adbin, adrelid))
FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attrelid = %(t)s::regclass AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %(t)s::regclass
UNION ALL SELECT 'referred to: ' || conname, concat_ws(' ', conrelid::regclass, pg_get_constraintdef(oid))
FROM pg_constraint WHERE confrelid = %(t)s::regclass
UNION ALL SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %(t)s
UNION ALL SELECT 'trigger ' || tgname, concat_ws(' ', tgenabled, pg_get_triggerdef(oid))
FROM pg_trigger WHERE tgrelid = %(t)s::regclass AND NOT tgisinternal
UNION ALL SELECT 'function ' || proname, pg_get_functiondef(p.oid)
FROM pg_proc p JOIN pg_class c ON starts_with(proname, relname) WHERE c.oid = %(t)s::regclass
   OR c.reltype = ANY (proargtypes) AND c.oid = %(t)s::regclass
UNION ALL SELECT 'policy ' || polname || ' of ' || polrelid::regclass, pg_get_expr(polqual, polrelid)
FROM pg_policy WHERE polrelid = %(t)s::regclass OR pg_get_expr(polqual, polrelid) ~ %(t)s
UNION ALL SELECT 'storage', concat_ws(' ', reloptions, relrowsecurity, relkind)
FROM pg_class WHERE oid = %(t)s::regclass
UNION ALL SELECT 'right', (aclexplode(relacl))::text FROM pg_class WHERE oid = %(t)s::regclass
UNION ALL SELECT 'numbers', pg_get_serial_sequence(%(t)s, 'id') WHERE %(t)s <> 'workspaces_passageword'
ORDER BY 1, 2
"""


def looks() -> dict[str, list[tuple[Any, ...]]]:
    return {table.name: ask(_LOOKS, {"t": table.name}) for table in tables()}


def ask(statement: str, values: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def rows() -> tuple[set[tuple[Any, ...]], ...]:
    vectors = PassageVector.objects.values_list("id", "kind", "ref", "place", "model", "live", "embedding")
    words = PassageWord.objects.values_list("place", "lexeme", "kind", "ref", "weight")
    memories = ask("SELECT id, (to_jsonb(m) - 'last_accessed_at')::text FROM memories_memory m")
    return {(*row[:-1], str(row[-1])) for row in vectors}, set(words), set(memories)


@pytest.fixture
def olive(fake_embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch) -> Iterator[User]:
    monkeypatch.setattr(partitions, "BATCH", 20)
    user = make_user("olive")
    for number in range(5):
        place = make_workspace(owner=user, name=f"Place {number}")
        for each in range(8):
            make_memory(f"Room {each} of house {number} is painted blue", user, place)
    yield user
    for table in tables():
        ask(f"DROP TABLE IF EXISTS {table.next} CASCADE")
        ask(f"DROP FUNCTION IF EXISTS {table.next}_mirror() CASCADE")
    ask("DROP TABLE IF EXISTS workspaces_repartition")
    repartition(0)


def test_there_and_back_with_every_row_while_people_write(olive: User) -> None:
    looked, before = looks(), rows()
    place, done, failed = Workspace.objects.get(name="Place 1"), threading.Event(), []
    asked = recall("which room is blue?", place, olive, reach=HERE, now=timezone.now())

    def write() -> None:
        try:
            while not done.is_set():
                made = make_memory("The stairs are being painted", olive, place)
                edit_memory(made, by=olive, now=timezone.now(), content="The stairs have been painted")
                assert recall("stairs", place, olive, reach=HERE, now=timezone.now()).items
                Memory.objects.filter(pk=made.pk).delete()
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    for parts in (4, 7, 0):
        done.clear()
        writer = threading.Thread(target=write)
        writer.start()
        compared = repartition(parts)
        done.set()
        writer.join()
        assert not failed
        assert [parts_of(table) for table in tables()] == [parts] * 3
        assert set(compared) == {VECTORS.name, WORDS.name, MEMORIES.name}
        assert rows() == before
        found = recall("which room is blue?", place, olive, reach=HERE, now=timezone.now())
        assert [item.memory.pk for item in found.items] == [item.memory.pk for item in asked.items]
    assert looks() == looked
    make_memory("The roof is red", olive, place)
    assert repartition(0) == {}


class Killed(Exception):
    pass


def _begin_and_be_killed(parts: int = 4) -> None:
    def killed(text: str) -> None:
        raise Killed

    with pytest.raises(Killed):
        repartition(parts, killed)


def test_a_begun_attempt_is_said_and_given_up_without_a_trace(
    olive: User, capsys: pytest.CaptureFixture[str]
) -> None:
    looked, before = looks(), rows()
    _begin_and_be_killed()
    assert partitions.begun() == {VECTORS.name: 4}
    call_command("partition")
    assert "--parts 4 was begun" in capsys.readouterr().out
    assert any(said.startswith("partition: it was begun") for said in troubles.troubles())
    call_command("partition", parts=0)
    assert "begun" not in capsys.readouterr().out
    assert not any(said.startswith("partition") for said in troubles.troubles())
    assert looks() == looked
    assert ask("SELECT proname FROM pg_proc WHERE proname LIKE '%%_mirror'", []) == []
    assert ask("SELECT tgname FROM pg_trigger WHERE tgname LIKE '%%_mirror'", []) == []
    assert rows() == before


def test_a_batch_and_a_person_who_wait_for_each_other_both_go_on(
    olive: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "PAUSE", 0.05)
    _begin_and_be_killed()  # after the first 20
    keys, failed = list(PassageVector.objects.order_by("pk").values_list("pk", flat=True)), []

    def go_on() -> None:
        try:
            repartition(4)
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    other = threading.Thread(target=go_on)
    with transaction.atomic():
        ask("UPDATE workspaces_passagevector SET live = live WHERE id = %s", [keys[35]])
        other.start()
        for _ in range(200):  # until it holds the rows before that one, and waits for it
            ask("SELECT pg_stat_clear_snapshot()")
            if ask(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'AS MATERIALIZED'"
            ):
                break
            time.sleep(0.02)
        else:
            pytest.fail("the copying did not come to the row")
        ask("UPDATE workspaces_passagevector SET live = live WHERE id = %s", [keys[25]])
    other.join()
    assert not failed and parts_of(VECTORS) == 4 == parts_of(WORDS)


def test_killed_it_goes_on_and_misses_nothing_written_meanwhile(olive: User) -> None:
    said = []

    def killed(text: str) -> None:
        said.append(text)
        if "passageword: copied" in text and "copied 20 " not in text:
            raise Killed

    with pytest.raises(Killed):
        repartition(4, killed)
    assert parts_of(VECTORS) == 4 and parts_of(WORDS) == 0
    first = PassageWord.objects.order_by("place", "lexeme", "kind", "ref").first()
    assert first is not None
    Memory.objects.filter(pk=first.ref).delete()  # what had been copied
    make_memory("A room of their own is painted green", olive, Workspace.objects.get(name="Place 0"))
    before, again = rows(), []
    repartition(4, again.append)
    copied = [text for text in again if "passageword: copied" in text]
    total = len(before[1])
    assert rows() == before and parts_of(WORDS) == 4
    assert 0 < 20 * len(copied) < total  # not from the beginning
    assert ask("SELECT to_regclass('workspaces_repartition')") == [(None,)]


def test_a_copy_that_differs_takes_no_table_s_place(olive: User, monkeypatch: pytest.MonkeyPatch) -> None:
    before, compare = rows(), partitions._compare

    def spoilt(table: Table) -> str:
        ask(f"UPDATE {table.next} SET live = NOT live WHERE id = (SELECT min(id) FROM {table.next})")
        return compare(table)

    monkeypatch.setattr(partitions, "_compare", spoilt)
    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("partition", parts=4)
    assert parts_of(VECTORS) == 0 and rows() == before
    assert ask("SELECT to_regclass(%s)", [VECTORS.next]) == [(None,)]
    assert _planned() == []
    make_memory(
        "The roof is red", olive, Workspace.objects.get(name="Place 0")
    )  # nothing is mirrored any more


def test_a_long_transaction_delays_it_and_nobody_waits_long(
    olive: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "WAIT", "50ms")
    monkeypatch.setattr(partitions, "PAUSE", 0.01)
    monkeypatch.setattr(partitions, "TRIES", 3)
    reading, done = threading.Event(), threading.Event()

    def read() -> None:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN; SELECT 1 FROM workspaces_passagevector LIMIT 1")
            reading.set()
            done.wait(20)
            cursor.execute("COMMIT")
        connection.close()

    reader = threading.Thread(target=read)
    reader.start()
    reading.wait(5)
    try:
        with pytest.raises(Busy):
            repartition(4)
    finally:
        done.set()
        reader.join()
    repartition(4)
    assert parts_of(VECTORS) == 4


def two_places_of_two_parts(owner: User) -> list[Workspace]:
    """Of 64, in which any two lie together once in so many times."""
    is_in = "satisfies_hash_partition('hashed'::regclass, 64, part, %s::bigint)"
    found: dict[int, Workspace] = {}
    ask("CREATE TABLE hashed (place bigint) PARTITION BY HASH (place)")
    while len(found) < 2:
        place = make_workspace(owner=owner, name="Large")
        ((part,),) = ask(f"SELECT part FROM generate_series(0, 63) part WHERE {is_in}", [place.pk])
        found.setdefault(part, place)
    ask("DROP TABLE hashed")
    return list(found.values())


def test_vector_indexes_lie_in_the_part_of_their_place(olive: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in (("INDEX_FROM", 200), ("DROP_BELOW", 100), ("MOST_INDEXES", 1)):
        monkeypatch.setattr(indexes, name, number)
    PassageVector.objects.all().delete()
    places = two_places_of_two_parts(olive)
    made = [fill(place, 220 + 10 * number) for number, place in enumerate(places)]
    before = [find(place, olive, vectors[7]) for place, vectors in zip(places, made, strict=True)]
    indexes.keep_up(now=timezone.now())
    assert len(present()) == 1  # one is the most for a table
    repartition(64)
    assert len(_in_parts()) == 1  # brought along
    indexes.keep_up(now=timezone.now())
    assert len(_in_parts()) == 2 == VectorIndex.objects.count()  # and for each of its parts
    after = [find(place, olive, vectors[7]) for place, vectors in zip(places, made, strict=True)]
    assert after == before
    repartition(0)
    assert len(present()) == 2


def _in_parts() -> list[str]:
    statement = "SELECT tablename FROM pg_indexes WHERE starts_with(indexname, 'passages_near_')"
    return sorted(table for (table,) in ask(statement) if table.startswith("workspaces_passagevector_64_"))


def test_every_search_is_planned_for_its_places(olive: User) -> None:
    """What psycopg has prepared, Postgres soon keeps a plan of, for any places: then all parts are looked into."""

    def kept() -> int:
        connection.close()
        for _ in range(20):
            assert recall("which room is blue?", place, olive, reach=HERE, now=timezone.now()).items
        ((number,),) = ask(
            "SELECT sum(generic_plans) FROM pg_prepared_statements WHERE statement ~ 'workspaces_passage'"
        )
        return int(number)

    place = Workspace.objects.get(name="Place 1")
    assert kept() > 0
    repartition(4)
    assert kept() == 0
    repartition(0)
    assert kept() > 0


def _planned() -> list[tuple[Any, ...]]:
    return ask("SELECT 1 FROM pg_db_role_setting WHERE 'plan_cache_mode=force_custom_plan' = ANY (setconfig)")


def test_a_database_that_lost_how_it_plans_is_told_by_who_may(
    olive: User, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that was restored: a dump does not say what is set for a database."""
    repartition(4)
    ((name,),) = ask("SELECT quote_ident(current_database())")
    ask(f"ALTER DATABASE {name} RESET plan_cache_mode")
    plan_for_places = partitions._plan_for_places

    def by_another(wanted: bool) -> None:
        ask("SET LOCAL ROLE pg_monitor")
        plan_for_places(wanted)

    monkeypatch.setattr(partitions, "_plan_for_places", by_another)
    call_command("migrate", verbosity=0)
    call_command("partition")
    assert "run this with --parts 4" in capsys.readouterr().out
    monkeypatch.undo()
    call_command("migrate", verbosity=0)
    assert len(_planned()) == 1
    call_command("partition")
    assert "run this" not in capsys.readouterr().out


def test_an_attempt_ends_before_tables_change(olive: User) -> None:
    """Its trigger copies what has the columns of when it began: with one more, no memory could be saved."""
    _begin_and_be_killed()
    sender, plan = apps.get_app_config("workspaces"), [("a migration", False)]
    pre_migrate.send(sender=sender, plan=[])
    assert partitions.begun() == {VECTORS.name: 4}
    with partitions._alone(), pytest.raises(CommandError, match="partition runs"):
        pre_migrate.send(sender=sender, plan=plan)
    assert partitions.begun() == {VECTORS.name: 4}
    pre_migrate.send(sender=sender, plan=plan)
    assert partitions.begun() == {}
    ask("ALTER TABLE workspaces_passagevector ADD COLUMN later int")
    try:
        make_memory("The roof is red", olive, Workspace.objects.get(name="Place 0"))
    finally:
        ask("ALTER TABLE workspaces_passagevector DROP COLUMN later")


def test_how_many_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="2 to 256"):
        call_command("partition", parts=1)
    monkeypatch.setattr(partition, "LOCKS_A_PART", 1_000_000)
    with pytest.raises(CommandError, match="max_locks_per_transaction to 4000000"):
        call_command("partition", parts=4)
