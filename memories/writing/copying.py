"""Rows and vectors of memories in and out of Postgres by COPY. For ``importing``, which knows the rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import Field, JSONField
from psycopg import sql

from memories.models import Memory, MemoryEmbedding
from memories.recalling.words import SEARCH
from memoryhub.llm.base import Vectors

ROWS_AT_ONCE = 20_000  # stored vectors read at a time, some 15 MB of 384 dimensions

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


def copy_vectors(
    ids: Sequence[int],
    places: Sequence[int],
    model: str,
    search: Vectors,
    statement: Vectors | None = None,
) -> None:
    """Store vectors of memories that have none, by binary COPY: rows of one length, laid out by numpy."""
    dimension, name = search.shape[1], model.encode()
    fields: list[tuple[str, str, int, object]] = [
        ("memory_id", ">i8", 8, ids),
        ("place", ">i8", 8, places),
        ("model", f"S{len(name)}", len(name), name),
        ("dimension", ">i4", 4, dimension),
        ("live", "i1", 1, 1),
    ]
    layout: list[tuple[str, str] | tuple[str, str, tuple[int]]] = [("count", ">i2")]
    for column, kind, _, _ in fields:
        layout += [(f"{column} length", ">i4"), (column, kind)]
    halfvecs = {"embedding": search} | ({} if statement is None else {"statement": statement})
    for column in halfvecs:
        layout += [(f"{column} length", ">i4"), (f"{column} size", ">i2"), (f"{column} unused", ">i2")]
        layout.append((column, ">f2", (dimension,)))
    rows = np.zeros(len(ids), dtype=np.dtype(layout))
    rows["count"] = len(fields) + len(halfvecs)
    for column, _, length, value in fields:
        rows[f"{column} length"], rows[column] = length, value
    for column, made in halfvecs.items():
        rows[f"{column} length"], rows[f"{column} size"] = 4 + 2 * dimension, dimension
        rows[column] = made
    columns = sql.SQL(", ").join(sql.Identifier(name) for name in [*(f[0] for f in fields), *halfvecs])
    copying = sql.SQL("COPY memories_memoryembedding ({}) FROM STDIN (FORMAT binary)").format(columns)
    with connection.cursor() as cursor, cursor.copy(copying) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows.tobytes() + b"\xff\xff")


def stored_vectors(place: int, model: str, dimension: int) -> Iterable[tuple[np.ndarray, Vectors]]:
    """The live vectors of a place's statements, with their memories' keys; some at a time."""
    rows = MemoryEmbedding.objects.filter(place=place, model=model, dimension=dimension, live=True)
    row = np.dtype(
        [("count", ">i2"), ("n1", ">i4"), ("memory", ">i8"), ("n2", ">i4"), ("size", ">i4"),
         ("vector", ">f2", (dimension,))]
    )  # fmt: skip
    with connection.cursor() as cursor:
        if not rows.exists():
            return
        copying = sql.SQL(
            "COPY (SELECT memory_id, coalesce(statement, embedding) FROM memories_memoryembedding "
            "WHERE place = {} AND model = {} AND dimension = {} AND live) TO STDOUT (FORMAT binary)"
        ).format(sql.Literal(place), sql.Literal(model), sql.Literal(dimension))
        with cursor.copy(copying) as copy:
            waiting = bytearray()
            first = True
            for block in copy:
                waiting += block
                if first:
                    del waiting[:19]
                    first = False
                if len(waiting) >= ROWS_AT_ONCE * row.itemsize:
                    yield _parsed(waiting, row)
            if len(waiting) >= row.itemsize:
                yield _parsed(waiting, row)


def _parsed(waiting: bytearray, row: np.dtype) -> tuple[np.ndarray, Vectors]:
    """The whole rows at the beginning, which are taken out."""
    whole = len(waiting) // row.itemsize
    rows = np.frombuffer(bytes(waiting[: whole * row.itemsize]), dtype=row)
    del waiting[: whole * row.itemsize]
    return rows["memory"].astype(np.int64), rows["vector"].astype(np.float32)
