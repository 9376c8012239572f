"""Which tables ``partitions`` puts into parts, and how another is made like one: the same keys, indexes, rights.

What stands on a table is read from the catalogue, so that nothing is said twice and no later migration is forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection

from workspaces.index.indexes import PREFIXES


@dataclass(frozen=True)
class Table:
    """``by``: the column whose hash says a row's part. ``copied_by`` orders its rows. ``row``: what
    tells rows apart, empty: all of it. ``vectors``: it has the indexes that ``indexes`` builds.
    """

    name: str
    by: str
    copied_by: tuple[str, ...]
    row: str = ""
    vectors: bool = False

    @property
    def next(self) -> str:
        return f"{self.name}_next"

    @property
    def same(self) -> str:
        """SQL: it is the row OLD."""
        return " AND ".join(f"{each} = OLD.{each}" for each in {self.by: 0, **dict.fromkeys(self.copied_by)})

    def part(self, number: int, parts: int) -> str:
        return f"{self.name}_{parts}_{number}"


VECTORS = Table(
    "workspaces_passagevector",
    "place",
    ("id",),
    row="id, kind, ref, place, model, dimension, live, md5(halfvec_send(embedding)), "
    "coalesce(md5(halfvec_send(statement)), '')",
    vectors=True,
)
WORDS = Table("workspaces_passageword", "place", ("place", "lexeme", "kind", "ref"))
_tables = [VECTORS, WORDS]

_PARTS = "SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass(%s)"
# Keys (with their constraint's definition) and indexes.
_INDEXES = """
SELECT c.relname, coalesce(pg_get_constraintdef(k.oid), ''), pg_get_indexdef(c.oid)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
LEFT JOIN pg_constraint k ON k.conindid = c.oid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u')
WHERE i.indrelid = %s::regclass AND NOT EXISTS (SELECT 1 FROM unnest(%s::text[]) own WHERE starts_with(c.relname, own))
ORDER BY c.oid
"""
# Called as the table's: who is refused by a key is told its name, and who reads a plan knows it.
_INDEXES_OF_PARTS = """
SELECT i.indexrelid::regclass::text, i.indrelid::regclass::text, c.relname
FROM pg_index i JOIN pg_inherits h ON h.inhrelid = i.indexrelid JOIN pg_class c ON c.oid = h.inhparent
JOIN pg_index whole ON whole.indexrelid = c.oid WHERE whole.indrelid = %s::regclass
"""
_REFERRING = """
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = %s::regclass AND contype = 'f' AND confrelid <> conrelid AND conparentid = 0
"""
# A table in parts has none of its own: its parts have.
_STORAGE = """
SELECT array_to_string(reloptions, ', ') FROM pg_class
WHERE oid = coalesce((SELECT min(inhrelid::oid) FROM pg_inherits WHERE inhparent = %(t)s::regclass), %(t)s::regclass)
"""
_TRIGGERS = """
SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
WHERE tgrelid = %s::regclass AND NOT tgisinternal AND NOT starts_with(p.proname, %s) ORDER BY tgname
"""
_FUNCTIONS = """
SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid)
FROM pg_proc p JOIN pg_class c ON c.reltype = ANY (p.proargtypes) WHERE c.oid = %s::regclass
"""
_RIGHTS = """
SELECT r.privilege_type, CASE r.grantee WHEN 0 THEN 'PUBLIC' ELSE r.grantee::regrole::text END,
       CASE WHEN r.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
FROM pg_class c, aclexplode(c.relacl) r WHERE c.oid = %s::regclass
"""


def register_table(table: Table) -> None:
    """Each room above says it of its own, once."""
    if table not in _tables:
        _tables.append(table)


def tables() -> list[Table]:
    return list(_tables)


def parts_of(table: Table) -> int:
    """0: it is whole."""
    return int(value(_PARTS, [table.name]))


def make_next(table: Table, parts: int) -> None:
    """An empty table like it, in so many parts, with its keys and indexes and what it refers to."""
    storage = value(_STORAGE, {"t": table.name})
    storage = f"WITH ({storage})" if storage else ""
    like = "INCLUDING CONSTRAINTS INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING COMPRESSION"
    kept_in = f"PARTITION BY HASH ({table.by})" if parts else storage
    run(f"CREATE TABLE {table.next} (LIKE {table.name} {like}) {kept_in}")
    if "id" in table.copied_by:  # numbered by the old one's numbers, which end with it
        run(f"ALTER TABLE {table.next} ALTER COLUMN id DROP DEFAULT")
    for number in range(parts):
        part = table.part(number, parts)
        values = f"FOR VALUES WITH (MODULUS {parts}, REMAINDER {number})"
        run(f"CREATE TABLE {part} PARTITION OF {table.next} {values} {storage}")
    for name, key, index in _indexes(table):
        if key:
            run(f"ALTER TABLE {table.next} ADD CONSTRAINT {_beside(name)} {_with_part(key, table, parts)}")
        else:
            run(
                re.sub(r" INDEX .*? USING ", f" INDEX {_beside(name)} ON {table.next} USING ", index, count=1)
            )
    for index, part, name in rows(_INDEXES_OF_PARTS, [table.next]):
        run(f"ALTER INDEX {index} RENAME TO {part}_{name.removesuffix('_next')}")
    for name, key in rows(_REFERRING, [table.name]):
        run(f"ALTER TABLE {table.next} ADD CONSTRAINT {name} {key}")


def take_place(table: Table, parts: int, built: list[str]) -> None:
    """``next`` becomes the table, which is locked and ends. ``built``: its vector indexes."""
    name = table.name
    found = _indexes(table)
    triggers = [made for (made,) in rows(_TRIGGERS, [name, table.name])]
    functions, rights = rows(_FUNCTIONS, [name]), rows(_RIGHTS, [name])
    for signature, _ in functions:
        run(f"DROP FUNCTION {signature}")
    with _same_numbers(table, parts):
        run(f"DROP TABLE {name}; DROP FUNCTION {table.next}_mirror()")
        run(f"ALTER TABLE {table.next} RENAME TO {name}")
    for index, key, _ in found:
        what = f"ALTER TABLE {name} RENAME CONSTRAINT" if key else "ALTER INDEX"
        run(f"{what} {_beside(index)} {'' if key else 'RENAME '}TO {index}")
    for index in built:
        run(f"ALTER INDEX {_beside(index)} RENAME TO {index}")
    for _, definition in functions:
        run(definition)
    for made in triggers:
        run(made)
    for _, grantee, _ in rows(_RIGHTS, [name]):
        run(f"REVOKE ALL ON {name} FROM {grantee}")
    for right, grantee, how in rights:
        run(f"GRANT {right} ON {name} TO {grantee}{how}")


@contextmanager
def _same_numbers(table: Table, parts: int) -> Iterator[None]:
    """Whoever numbers rows goes on after the last number, though the old table ends meanwhile."""
    sequence = (
        value("SELECT pg_get_serial_sequence(%s, 'id')", [table.name]) if "id" in table.copied_by else None
    )
    if not sequence:
        yield
        return
    run(
        f"ALTER SEQUENCE {sequence} CACHE 1"
    )  # as it is: to wait for who takes a number, and to have them wait
    start = int(value(f"SELECT last_value + 1 FROM {sequence}"))  # noqa: S608  from the catalogue
    yield
    name = table.name
    if parts:  # before Postgres 17 no part may have an identity
        run(f"CREATE SEQUENCE {name}_id_seq START {start} OWNED BY {name}.id")
        run(f"ALTER TABLE {name} ALTER COLUMN id SET DEFAULT nextval('{name}_id_seq')")
    else:
        identity = f"GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME {name}_id_seq START {start})"
        run(f"ALTER TABLE {name} ALTER COLUMN id ADD {identity}")


def _indexes(table: Table) -> list[tuple[str, str, str]]:
    return rows(_INDEXES, [table.name, PREFIXES if table.vectors else []])


def _beside(index: str) -> str:
    """Its name on the next table: one in a schema has it."""
    return f"{index[:58]}_next"


def _with_part(key: str, table: Table, parts: int) -> str:
    """A key of a table in parts says what makes the part, last, so that a row is still found without it."""
    kind, columns, more = re.fullmatch(r"([A-Z ]+) \((.*?)\)(.*)", key).groups()  # type: ignore[union-attr]
    names = columns.split(", ")
    if parts and table.by not in names:
        names.append(table.by)
    if not parts and names[-1] == table.by:
        names.pop()
    return f"{kind} ({', '.join(names)}){more}"


def run(statement: str, values: Any = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def rows(statement: str, values: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()


def value(statement: str, values: Any = None) -> Any:
    return rows(statement, values)[0][0]
