"""The two large tables of the index in parts by place, and whole again (docs/decisions/0028).

The tables are made anew beside the old ones. A trigger writes there too what is written meanwhile, batches bring what
was there before, both are compared, and names are changed in one short transaction. Killed anywhere, the next run goes
on with the batch after the last. Only here and in ``indexes`` is it known that a table may be in parts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import psycopg
from django.db import OperationalError, ProgrammingError, connection, transaction

from memoryhub.management.database import psycopg_settings
from workspaces.index import indexes
from workspaces.isolation import policies
from workspaces.models import VectorIndex

MOST_PARTS = 256
BATCH = 10_000
TRIES, WAIT, PAUSE = 60, "2s", 3.0  # for the lock at the end: others wait behind it, so never long at a time
# Below Postgres's deadlock_timeout: where a batch and a person wait for each other's rows, the person goes first.
WAIT_OF_BATCH = "500ms"
Say = Callable[[str], None]
T = TypeVar("T")
_IN_THE_WAY = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)


@dataclass(frozen=True)
class Table:
    """``copied_by`` orders its rows. ``keys`` and ``indexes`` by name, "" is the primary key; with ``{place}`` one says
    the place too, as those of a table in parts must, last, so that a row is still found without it. ``row``: what
    tells rows apart.
    """

    name: str
    copied_by: tuple[str, ...]
    keys: tuple[tuple[str, str], ...]
    indexes: tuple[tuple[str, str], ...]
    storage: str
    row: str

    @property
    def next(self) -> str:
        return f"{self.name}_next"

    @property
    def primary(self) -> str:
        """Its key's name: a table keeps that of before it was renamed."""
        return str(_value(_PRIMARY, [self.name]))

    def part(self, number: int, parts: int) -> str:
        return f"{self.name}_{parts}_{number}"


VECTORS = Table(
    "workspaces_passagevector",
    ("id",),
    (
        ("", "PRIMARY KEY (id{place})"),
        ("one_vector_a_passage", "UNIQUE (kind, ref, model{place})"),
    ),
    (("passage_of_place", "(place, kind, model) WHERE live"),),
    "WITH (toast_tuple_target = 128)",
    "id, kind, ref, place, model, dimension, live, md5(halfvec_send(embedding)), "
    "coalesce(md5(halfvec_send(statement)), '')",
)
WORDS = Table(
    "workspaces_passageword",
    ("place", "lexeme", "kind", "ref"),
    (("", "PRIMARY KEY (place, lexeme, kind, ref) INCLUDE (weight)"),),
    (),
    "",
    "place, lexeme, kind, ref, weight",
)
TABLES = (VECTORS, WORDS)

_NOTES = """
CREATE TABLE IF NOT EXISTS workspaces_repartition (name text PRIMARY KEY, parts int NOT NULL, reached jsonb);
ALTER TABLE workspaces_repartition ENABLE ROW LEVEL SECURITY
"""
# As its owner, whoever writes: they may be let into the table that it stands for, and not into this one.
_MIRROR = """
CREATE FUNCTION {next}_mirror() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM {next} WHERE {same};
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO {next} SELECT NEW.*;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER {next}_mirror AFTER INSERT OR UPDATE OR DELETE ON {name}
FOR EACH ROW EXECUTE FUNCTION {next}_mirror()
"""
# Rows are held until the batch is in, so whoever changes one afterwards finds it there to be changed.
_COPY = """
WITH batch AS MATERIALIZED (
    SELECT * FROM {name} {after} ORDER BY {by} LIMIT {batch} FOR SHARE
), put AS (
    INSERT INTO {next} SELECT * FROM batch ON CONFLICT DO NOTHING
)
SELECT json_build_array({by}), (SELECT count(*) FROM batch) FROM batch ORDER BY {descending} LIMIT 1
"""
_COMPARE = """
SELECT (SELECT (count(*), sum(hashtextextended(ROW({row})::text, 0)))::text FROM {name}),
       (SELECT (count(*), sum(hashtextextended(ROW({row})::text, 0)))::text FROM {next})
"""
_PRIMARY = "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'p'"
# A plan that is kept for all values knows no place when it is made, and looks into every part.
_IS_PLANNED = """
SELECT EXISTS (
    SELECT 1 FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
    WHERE datname = current_database() AND setrole = 0 AND 'plan_cache_mode=force_custom_plan' = ANY (setconfig)
)
"""
_PARTS = "SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass(%s)"


class Unequal(Exception):
    """What was copied is not what there is. The old table stays, and the copy is dropped."""


class Busy(Exception):
    """Another run is at it, or the lock at the end was not to be had. What is copied stays."""


def parts_of(table: Table) -> int:
    """0: it is whole."""
    return int(_value(_PARTS, [table.name]))


def begun() -> dict[str, int]:
    """By table how many parts an attempt is to give it that runs now, or has not ended: its trigger stands."""
    if not _value("SELECT to_regclass('workspaces_repartition') IS NOT NULL", []):
        return {}
    return dict(_rows("SELECT name, parts FROM workspaces_repartition", []))


def repartition(parts: int, say: Say = lambda text: None) -> dict[str, str]:
    """Put both tables into so many parts, 0: whole; by name how many rows and their sum, before and after alike.

    Outside every transaction. Readers and writers wait for the moments in which a trigger is made and names change.
    Raises Unequal and Busy.
    """
    with _alone(), closing(psycopg.connect(**psycopg_settings(), autocommit=True)) as own:
        if parts:  # first: who does not own the database is told so before anything is done
            _plan_for_places(True)
        _run(_NOTES)
        compared = {}
        for table in TABLES:
            if parts_of(table) == parts:
                _patiently(partial(_abandon, table))
                continue
            _begin(table, parts)
            _copy(table, say)
            built = _build_vector_indexes(own, table, say)
            say(f"{table.name}: comparing")
            compared[table.name] = _compare(table)
            _patiently(lambda table=table, built=built: _swap(table, parts, built))  # type: ignore[misc]
            say(f"{table.name}: done")
        _run("DROP TABLE workspaces_repartition")
        if not parts:
            _plan_for_places(False)
        for table in TABLES:
            _run(f"ANALYZE {table.name}")  # nobody else does it of a table in parts as a whole
    return compared


def give_up() -> None:
    """End an attempt that has not ended: it knows the tables' columns of when it began. Raises Busy where one runs."""
    if not begun():
        return
    with _alone():
        for table in TABLES:
            _patiently(partial(_abandon, table))
        _run("DROP TABLE workspaces_repartition")


def is_planned() -> bool:
    """Whether the database plans as its tables ask. One in parts that was restored does not: a dump does not say it."""
    return bool(_value(_IS_PLANNED, [])) or not any(parts_of(table) for table in TABLES)


def plan_as_tables_ask() -> None:
    """Where the database is ours to change: else ``manage.py partition`` says what its owner has to do."""
    if not is_planned():
        with suppress(ProgrammingError), transaction.atomic():
            _plan_for_places(True)


def _plan_for_places(wanted: bool) -> None:
    name = _value("SELECT quote_ident(current_database())", [])
    change = "SET plan_cache_mode = force_custom_plan" if wanted else "RESET plan_cache_mode"
    _run(f"ALTER DATABASE {name} {change}")


def _begin(table: Table, parts: int) -> None:
    """The empty table and its trigger; what a run for another number of parts left is dropped."""
    begun = _rows("SELECT parts FROM workspaces_repartition WHERE name = %s", [table.name])
    if begun and begun[0][0] == parts:
        return
    _patiently(partial(_abandon, table))

    def make() -> None:
        like = "INCLUDING CONSTRAINTS INCLUDING STORAGE INCLUDING COMPRESSION"
        by = "PARTITION BY HASH (place)" if parts else table.storage
        _run(f"CREATE TABLE {table.next} (LIKE {table.name} {like}) {by}")
        for number in range(parts):
            part = table.part(number, parts)
            values = f"FOR VALUES WITH (MODULUS {parts}, REMAINDER {number})"
            _run(f"CREATE TABLE {part} PARTITION OF {table.next} {values} {table.storage}")
            # Nobody but its owner reads a part by its name.
            _run(f"ALTER TABLE {part} ENABLE ROW LEVEL SECURITY")
        _run(f"ALTER TABLE {table.next} ENABLE ROW LEVEL SECURITY")
        for name, key in table.keys:
            said = key.format(place=", place" if parts else "")
            _run(f"ALTER TABLE {table.next} ADD CONSTRAINT {name or table.primary}_next {said}")
        for name, index in table.indexes:
            _run(f"CREATE INDEX {name}_next ON {table.next} {index}")
        same = " AND ".join(f"{each} = OLD.{each}" for each in {"place": 0, **dict.fromkeys(table.copied_by)})
        _run(_MIRROR.format(next=table.next, name=table.name, same=same))
        _run("INSERT INTO workspaces_repartition (name, parts) VALUES (%s, %s)", [table.name, parts])

    _patiently(make)


def _abandon(table: Table) -> None:
    if not _value("SELECT to_regclass(%s)", [table.next]):
        return
    _run(f"DROP TRIGGER {table.next}_mirror ON {table.name}; DROP FUNCTION {table.next}_mirror()")
    _run(f"DROP TABLE {table.next}")
    _run("DELETE FROM workspaces_repartition WHERE name = %s", [table.name])


def _copy(table: Table, say: Say) -> None:
    by = ", ".join(table.copied_by)
    (reached,) = _rows("SELECT reached FROM workspaces_repartition WHERE name = %s", [table.name])[0]
    reached = json.loads(reached) if isinstance(reached, str) else reached
    total = max(1, int(_value("SELECT sum(greatest(reltuples, 0)) FROM pg_class WHERE oid = %s::regclass "
                              "OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = %s::regclass)",
                              [table.name] * 2)))  # fmt: skip
    began, copied = time.monotonic(), 0
    while True:
        after = f"WHERE ({by}) > ({', '.join(['%s'] * len(table.copied_by))})" if reached else ""
        statement = _COPY.format(
            name=table.name,
            next=table.next,
            after=after,
            by=by,
            batch=BATCH,
            descending=", ".join(f"{each} DESC" for each in table.copied_by),
        )
        found = _patiently(partial(_copy_batch, table, statement, reached), WAIT_OF_BATCH)
        if found:
            reached, number = found
            copied += number
        elif not _value(f"SELECT EXISTS (SELECT 1 FROM {table.name} {after})", reached or []):  # noqa: S608
            return
        rate = copied / max(1e-3, time.monotonic() - began)
        say(f"{table.name}: copied {copied:,} of about {total:,}, {rate:,.0f} rows a second")


def _copy_batch(table: Table, statement: str, reached: Any) -> tuple[Any, int] | None:
    """How far it came, and how many rows those were; None without any."""
    found = _rows(statement, reached or [])
    if not found:
        return None
    said, number = found[0]
    said = said if isinstance(said, str) else json.dumps(said)
    _run("UPDATE workspaces_repartition SET reached = %s WHERE name = %s", [said, table.name])
    return json.loads(said), number


def _compare(table: Table) -> str:
    """Of one moment. ROW's sum is taken of every value, and of vectors by their digests."""
    ((before, after),) = _rows(_COMPARE.format(name=table.name, next=table.next, row=table.row), [])
    if before != after:
        _patiently(lambda: _abandon(table))
        if not any(parts_of(each) for each in TABLES):
            _plan_for_places(False)
        raise Unequal(f"{table.name}: {before} before, {after} after")
    return str(after)


def _build_vector_indexes(own: psycopg.Connection[Any], table: Table, say: Say) -> list[str]:
    """Those of large places beside the new table's rows, which are being written; their names."""
    if table is not VECTORS:
        return []
    recorded, built = list(VectorIndex.objects.all()), []
    for number, row in enumerate(recorded, 1):
        say(f"{row.name}: building, {number} of {len(recorded)}")
        wanted = indexes.Wanted(row.place, row.kind, row.model, row.dimension, row.vector_count)
        where = f"SELECT tableoid::regclass::text FROM {table.next} WHERE place = %s LIMIT 1"  # noqa: S608
        there = _rows(where, [row.place])
        indexes.drop(own, f"{row.name}_next")  # of a run that was killed
        if there:
            indexes.build(own, wanted, table=there[0][0], name=f"{row.name}_next")
            built.append(row.name)
    return built


def _swap(table: Table, parts: int, built: list[str]) -> None:
    name = table.name
    _run(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
    primary = table.primary
    guarded = _value("SELECT relrowsecurity FROM pg_class WHERE oid = %s::regclass", [name])
    sequence = _value("SELECT pg_get_serial_sequence(%s, 'id')", [name]) if table is VECTORS else None
    start = int(_value(f"SELECT last_value + 1 FROM {sequence}", [])) if sequence else 0  # noqa: S608
    _run(f"DROP TABLE {name}; DROP FUNCTION {table.next}_mirror()")
    _run(f"ALTER TABLE {table.next} RENAME TO {name}")
    for key in (key or primary for key, _ in table.keys):
        _run(f"ALTER TABLE {name} RENAME CONSTRAINT {key}_next TO {key}")
    for index in [*(index for index, _ in table.indexes), *built]:
        _run(f"ALTER INDEX {index}_next RENAME TO {index}")
    if sequence and parts:  # before Postgres 17 no part may have an identity
        _run(f"CREATE SEQUENCE {name}_id_seq START {start} OWNED BY {name}.id")
        _run(f"ALTER TABLE {name} ALTER COLUMN id SET DEFAULT nextval('{name}_id_seq')")
    elif sequence:
        identity = f"GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME {name}_id_seq START {start})"
        _run(f"ALTER TABLE {name} ALTER COLUMN id ADD {identity}")
    if guarded:
        policies.guard(name, policies.table_rules()[name])
    else:
        _run(f"ALTER TABLE {name} DISABLE ROW LEVEL SECURITY")
    _run("DELETE FROM workspaces_repartition WHERE name = %s", [name])


def _patiently(do: Callable[[], T], wait: str = "") -> T:
    """In a transaction that waits for locks only so long, again and again."""
    for _ in range(TRIES):
        try:
            with transaction.atomic():
                _run(f"SET LOCAL lock_timeout = '{wait or WAIT}'")
                return do()
        except OperationalError as error:
            if not isinstance(error.__cause__, _IN_THE_WAY):
                raise
            time.sleep(PAUSE)
    raise Busy


@contextmanager
def _alone() -> Iterator[None]:
    """Nor does the job build indexes meanwhile."""
    with closing(psycopg.connect(**psycopg_settings(), autocommit=True)) as own:
        locked = own.execute("SELECT pg_try_advisory_lock(%s)", [indexes.LOCK]).fetchone()
        if not locked or not locked[0]:
            raise Busy
        yield


def _run(statement: str, values: list[Any] | None = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def _rows(statement: str, values: list[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()


def _value(statement: str, values: list[Any]) -> Any:
    return _rows(statement, values)[0][0]
