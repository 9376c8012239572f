"""Rows of memories into Postgres by COPY. For ``many``, which knows the rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection
from django.db.models import Field, JSONField
from psycopg import sql

from memories.models import Memory
from memories.writing.indexed import SEARCH

_COLUMNS = [column for column in Memory._meta.concrete_fields if column.name != "search"]
_IDENTIFIERS: list[sql.Composable] = [sql.Identifier(str(column.column)) for column in _COLUMNS]
_NAMES = sql.SQL(", ").join(_IDENTIFIERS)
_STAGE = sql.SQL(
    "CREATE TEMP TABLE staged_memories ON COMMIT DROP AS SELECT {names} FROM memories_memory WITH NO DATA"
).format(names=_NAMES)
_INSERT = sql.SQL(
    f"INSERT INTO memories_memory ({{names}}, search) SELECT {{names}}, {SEARCH} FROM staged_memories"  # noqa: S608
).format(names=_NAMES)


def number_rows(memories: Sequence[Memory]) -> None:
    """Take keys for rows that are yet to be inserted, so that they can point at one another."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence('memories_memory', 'id')) FROM generate_series(1, %s)",
            [len(memories)],
        )
        for memory, (pk,) in zip(memories, cursor.fetchall(), strict=True):
            memory.pk = pk


def _for_copy(column: Field[Any, Any], value: Any) -> Any:
    """psycopg takes all values of a row as they are, but for JSON."""
    return column.get_db_prep_save(value, connection) if isinstance(column, JSONField) else value


def insert_rows(memories: Iterable[Memory]) -> None:
    """By COPY and one INSERT that makes ``search`` on the way: ten times as quick as saving one by one."""
    with connection.cursor() as cursor:
        cursor.execute(_STAGE)
        with cursor.copy(sql.SQL("COPY staged_memories ({}) FROM STDIN").format(_NAMES)) as copy:
            for memory in memories:
                copy.write_row([_for_copy(column, getattr(memory, column.attname)) for column in _COLUMNS])
        cursor.execute(_INSERT)
        cursor.execute("DROP TABLE staged_memories")
    for memory in memories:
        memory._state.adding, memory._state.db = False, connection.alias
