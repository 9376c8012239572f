"""``manage.py partition``: the index in parts and whole again, with every row, whatever is written meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
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
from tests.workspaces.isolation.guarded import row_security
from workspaces.index import indexes, partitions
from workspaces.index.partitions import TABLES, VECTORS, WORDS, Busy, parts_of, repartition
from workspaces.isolation import policies, proof
from workspaces.models import PassageVector, PassageWord, User, VectorIndex, Workspace

pytestmark = pytest.mark.django_db(transaction=True)
_LOOKS = """
SELECT 'column ' || attname, concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, attstorage, attidentity)
FROM pg_attribute WHERE attrelid = %(t)s::regclass AND attnum > 0
UNION ALL SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %(t)s::regclass
UNION ALL SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %(t)s
UNION ALL SELECT 'storage', concat_ws(' ', reloptions, relrowsecurity, relkind)
FROM pg_class WHERE oid = %(t)s::regclass
UNION ALL SELECT 'numbers', pg_get_serial_sequence(%(t)s, 'id') WHERE %(t)s = 'workspaces_passagevector'
ORDER BY 1, 2
"""


def ask(statement: str, values: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def rows() -> tuple[set[tuple[Any, ...]], set[tuple[Any, ...]]]:
    vectors = PassageVector.objects.values_list("id", "kind", "ref", "place", "model", "live", "embedding")
    words = PassageWord.objects.values_list("place", "lexeme", "kind", "ref", "weight")
    return {(*row[:-1], str(row[-1])) for row in vectors}, set(words)


@pytest.fixture
def olive(fake_embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch) -> Iterator[User]:
    monkeypatch.setattr(partitions, "BATCH", 20)
    user = make_user("olive")
    for number in range(5):
        place = make_workspace(owner=user, name=f"Place {number}")
        for each in range(8):
            make_memory(f"Room {each} of house {number} is painted blue", user, place)
    yield user
    for table in TABLES:
        ask(f"DROP TABLE IF EXISTS {table.next} CASCADE")
        ask(f"DROP FUNCTION IF EXISTS {table.next}_mirror() CASCADE")
    ask("DROP TABLE IF EXISTS workspaces_repartition")
    repartition(0)


def test_there_and_back_with_every_row_while_people_write(olive: User) -> None:
    looked, before = {table: ask(_LOOKS, {"t": table.name}) for table in TABLES}, rows()
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
        assert [parts_of(table) for table in TABLES] == [parts, parts]
        assert set(compared) == {VECTORS.name, WORDS.name}
        assert rows() == before
        found = recall("which room is blue?", place, olive, reach=HERE, now=timezone.now())
        assert [item.memory.pk for item in found.items] == [item.memory.pk for item in asked.items]
    assert {table: ask(_LOOKS, {"t": table.name}) for table in TABLES} == looked
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
    looked, before = {table: ask(_LOOKS, {"t": table.name}) for table in TABLES}, rows()
    _begin_and_be_killed()
    assert partitions.begun() == {VECTORS.name: 4}
    call_command("partition")
    assert "--parts 4 was begun" in capsys.readouterr().out
    assert any(said.startswith("partition: it was begun") for said in troubles.troubles())
    call_command("partition", parts=0)
    assert "begun" not in capsys.readouterr().out
    assert not any(said.startswith("partition") for said in troubles.troubles())
    assert {table: ask(_LOOKS, {"t": table.name}) for table in TABLES} == looked
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
    copied = [text for text in again if "copied" in text]
    total = len(before[1])
    assert rows() == before and parts_of(WORDS) == 4
    assert 0 < 20 * len(copied) < total  # not from the beginning
    assert ask("SELECT to_regclass('workspaces_repartition')") == [(None,)]


def test_a_copy_that_differs_takes_no_table_s_place(olive: User, monkeypatch: pytest.MonkeyPatch) -> None:
    before, compare = rows(), partitions._compare

    def spoilt(table: partitions.Table) -> str:
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


def test_row_security_holds_in_parts(olive: User) -> None:
    with row_security():
        repartition(4)
        assert policies.stands() == []
        shown = "SELECT count(*) FROM {}"
        asked: Callable[[str], int] = lambda table: ask(shown.format(table))[0][0]  # noqa: E731
        assert proof.troubles_with_rights() == []
        part = max((VECTORS.part(number, 4) for number in range(4)), key=asked)
        assert asked(part) > 0
        ask("BEGIN; SET LOCAL ROLE memoryhub_rows")
        try:
            assert asked(part) == 0 == asked(VECTORS.name)
        finally:
            ask("ROLLBACK")
        repartition(0)
        assert policies.stands() == []


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


def test_how_many_is_bounded() -> None:
    with pytest.raises(CommandError, match="2 to 256"):
        call_command("partition", parts=1)
