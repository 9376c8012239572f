"""The large tables in parts, and whole again (docs/decisions/0028).

The tables are made anew beside the old ones. A trigger writes there too what is written meanwhile, batches bring what
was there before, both are compared, and names are changed in one short transaction. Killed anywhere, the next run goes
on with the batch after the last. Only here, in what this imports, and in ``indexes`` is it known that a table may be in
parts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import psycopg
from django.db import OperationalError, ProgrammingError, transaction
from psycopg import errors

from memoryhub.management.database import psycopg_settings
from workspaces.index import indexes, references
from workspaces.index.parted_tables import (
    Table,
    make_next,
    parts_of,
    rows,
    run,
    tables,
    take_place,
    value,
)
from workspaces.models import VectorIndex

MOST_PARTS = 256
BATCH = 5_000
# For a lock, again and again: others wait behind it, so never long at a time. Below Postgres's deadlock_timeout: where
# this and a person wait for each other's rows or tables, the person goes first.
TRIES, WAIT, PAUSE = 60, "500ms", 3.0
Say = Callable[[str], None]
T = TypeVar("T")
_IN_THE_WAY = (errors.LockNotAvailable, errors.DeadlockDetected, errors.QueryCanceled)

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
SELECT (SELECT (count(*), sum(hashtextextended(ROW({row})::text, 0)))::text FROM {name} r),
       (SELECT (count(*), sum(hashtextextended(ROW({row})::text, 0)))::text FROM {next} r)
"""
# A plan that is kept for all values knows no place when it is made, and looks into every part.
_IS_PLANNED = """
SELECT EXISTS (
    SELECT 1 FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
    WHERE datname = current_database() AND setrole = 0 AND 'plan_cache_mode=force_custom_plan' = ANY (setconfig)
)
"""
# Those that it refers to first, as who writes goes from one to the other.
_TO_LOCK = """
SELECT t::text FROM (
    SELECT confrelid::regclass, 1 FROM pg_constraint WHERE conrelid = %(t)s::regclass AND contype = 'f'
    AND confrelid <> conrelid UNION SELECT %(t)s::regclass, 2 UNION SELECT unnest(%(referring)s::text[])::regclass, 3
) locked (t, turn) GROUP BY t ORDER BY min(turn), t
"""


class Unequal(Exception):
    """What was copied is not what there is. The old table stays, and the copy is dropped."""


class Busy(Exception):
    """Another run is at it, or the lock at the end was not to be had. What is copied stays."""


def begun() -> dict[str, int]:
    """By table how many parts an attempt is to give it that runs now, or has not ended: its trigger stands."""
    if not value("SELECT to_regclass('workspaces_repartition') IS NOT NULL", []):
        return {}
    return dict(rows("SELECT name, parts FROM workspaces_repartition", []))


def repartition(parts: int, say: Say = lambda text: None) -> dict[str, str]:
    """Put the tables into so many parts, 0: whole; by name how many rows and their sum, before and after alike.

    Outside every transaction. Readers and writers wait for the moments in which a trigger is made and names change.
    Raises Unequal, Busy and references.NotAsDjangos.
    """
    with _alone(), closing(psycopg.connect(**psycopg_settings(), autocommit=True)) as own:
        for table in tables():  # first: what cannot be is said before anything is done
            references.references_to(table)
        if parts:
            _plan_for_places(True)
        run(_NOTES)
        compared = {}
        for table in tables():
            if parts_of(table) == parts:
                _patiently(partial(_abandon, table))
                _check_references(table, say)
                continue
            _begin(table, parts)
            _copy(table, say)
            built = _build_vector_indexes(own, table, say)
            say(f"{table.name}: comparing")
            compared[table.name] = _compare(table)
            _patiently(lambda table=table, built=built: _swap(table, parts, built))  # type: ignore[misc]
            _check_references(table, say)
            say(f"{table.name}: done")
        run("DROP TABLE workspaces_repartition")
        if not parts:
            _plan_for_places(False)
        for table in tables():
            run(f"ANALYZE {table.name}")  # nobody else does it of a table in parts as a whole
    return compared


def give_up() -> None:
    """End an attempt that has not ended: it knows the tables' columns of when it began. Raises Busy where one runs."""
    if not begun():
        return
    with _alone():
        for table in tables():
            _patiently(partial(_abandon, table))
        run("DROP TABLE workspaces_repartition")


def is_planned() -> bool:
    """Whether the database plans as its tables ask. One in parts that was restored does not: a dump does not say it."""
    return bool(value(_IS_PLANNED, [])) or not any(parts_of(table) for table in tables())


def plan_as_tables_ask() -> None:
    """Where the database is ours to change: else ``manage.py partition`` says what its owner has to do."""
    if not is_planned():
        with suppress(ProgrammingError), transaction.atomic():
            _plan_for_places(True)


def _plan_for_places(wanted: bool) -> None:
    name = value("SELECT quote_ident(current_database())", [])
    change = "SET plan_cache_mode = force_custom_plan" if wanted else "RESET plan_cache_mode"
    run(f"ALTER DATABASE {name} {change}")


def _begin(table: Table, parts: int) -> None:
    """The empty table and its trigger; what a run for another number of parts left is dropped."""
    begun = rows("SELECT parts FROM workspaces_repartition WHERE name = %s", [table.name])
    if begun and begun[0][0] == parts:
        return
    _patiently(partial(_abandon, table))

    def make() -> None:
        make_next(table, parts)
        run(_MIRROR.format(next=table.next, name=table.name, same=table.same))
        run("INSERT INTO workspaces_repartition (name, parts) VALUES (%s, %s)", [table.name, parts])

    _patiently(make)


def _abandon(table: Table) -> None:
    if not value("SELECT to_regclass(%s)", [table.next]):
        return
    run(f"DROP TRIGGER {table.next}_mirror ON {table.name}; DROP FUNCTION {table.next}_mirror()")
    run(f"DROP TABLE {table.next}")
    run("DELETE FROM workspaces_repartition WHERE name = %s", [table.name])


def _copy(table: Table, say: Say) -> None:
    by = ", ".join(table.copied_by)
    (reached,) = rows("SELECT reached FROM workspaces_repartition WHERE name = %s", [table.name])[0]
    reached = json.loads(reached) if isinstance(reached, str) else reached
    total = max(1, int(value("SELECT reltuples FROM pg_class WHERE oid = %s::regclass", [table.name])))
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
        found = _patiently(partial(_copy_batch, table, statement, reached))
        if found:
            reached, number = found
            copied += number
        elif not value(f"SELECT EXISTS (SELECT 1 FROM {table.name} {after})", reached or []):  # noqa: S608
            return
        rate = copied / max(1e-3, time.monotonic() - began)
        say(f"{table.name}: copied {copied:,} of about {total:,}, {rate:,.0f} rows a second")


def _copy_batch(table: Table, statement: str, reached: Any) -> tuple[Any, int] | None:
    """How far it came, and how many rows those were; None without any."""
    found = rows(statement, reached or [])
    if not found:
        return None
    said, number = found[0]
    said = said if isinstance(said, str) else json.dumps(said)
    run("UPDATE workspaces_repartition SET reached = %s WHERE name = %s", [said, table.name])
    return json.loads(said), number


def _compare(table: Table) -> str:
    """Of one moment. ROW's sum is taken of every value, and of vectors by their digests."""
    ((before, after),) = rows(_COMPARE.format(name=table.name, next=table.next, row=table.row or "r.*"), [])
    if before != after:
        _patiently(lambda: _abandon(table))
        if not any(parts_of(each) for each in tables()):
            _plan_for_places(False)
        raise Unequal(f"{table.name}: {before} before, {after} after")
    return str(after)


def _build_vector_indexes(own: psycopg.Connection[Any], table: Table, say: Say) -> list[str]:
    """Those of large places beside the new table's rows, which are being written; their names."""
    if not table.vectors:
        return []
    recorded, built = list(VectorIndex.objects.all()), []
    for number, row in enumerate(recorded, 1):
        say(f"{row.name}: building, {number} of {len(recorded)}")
        wanted = indexes.Wanted(row.place, row.kind, row.model, row.dimension, row.vector_count)
        where = f"SELECT tableoid::regclass::text FROM {table.next} WHERE place = %s LIMIT 1"  # noqa: S608
        there = rows(where, [row.place])
        indexes.drop(own, f"{row.name}_next")  # of a run that was killed
        if there:
            indexes.build(own, wanted, table=there[0][0], name=f"{row.name}_next")
            built.append(row.name)
    return built


def _swap(table: Table, parts: int, built: list[str]) -> None:
    found = references.references_to(table)
    to_lock = rows(_TO_LOCK, {"t": table.name, "referring": [each.table for each in found]})
    run(f"SET LOCAL statement_timeout = '{WAIT}'")  # for all of them together
    run(f"LOCK TABLE {', '.join(name for (name,) in to_lock)} IN ACCESS EXCLUSIVE MODE")
    run("SET LOCAL statement_timeout TO DEFAULT")
    references.lift(table, found)
    take_place(table, parts, built)
    references.put_back(table, found, parts)
    run("DELETE FROM workspaces_repartition WHERE name = %s", [table.name])


def _check_references(table: Table, say: Say) -> None:
    """People go on writing: what they write is checked already."""
    for statement in references.unchecked(table):
        say(f"{table.name}: {statement}")
        _patiently(partial(run, statement))


def _patiently(do: Callable[[], T]) -> T:
    """In a transaction that waits for locks only so long, again and again."""
    for _ in range(TRIES):
        try:
            with transaction.atomic():
                run(f"SET LOCAL lock_timeout = '{WAIT}'")
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
