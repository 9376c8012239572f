"""Many vectors in and out of Postgres by COPY."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from django.db import connection
from psycopg import sql

from memoryhub.llm.base import Vectors
from workspaces.models import PassageVector

ROWS_AT_ONCE = 20_000  # stored vectors read at a time, some 15 MB of 384 dimensions


def copy_vectors(
    kind: int,
    refs: Sequence[int],
    places: Sequence[int],
    model: str,
    search: Vectors,
    statement: Vectors | None = None,
) -> None:
    """Store vectors of passages that have none, by binary COPY: rows of one length, laid out by numpy."""
    dimension, name = search.shape[1], model.encode()
    fields: list[tuple[str, str, int, object]] = [
        ("kind", ">i2", 2, kind),
        ("ref", ">i8", 8, refs),
        ("place", ">i8", 8, places),
        ("model", f"S{len(name)}", len(name), name),
        ("dimension", ">i4", 4, dimension),
        ("live", "i1", 1, 1),
    ]
    layout: list[tuple[str, str] | tuple[str, str, tuple[int]]] = [("count", ">i2")]
    for column, type_, _, _ in fields:
        layout += [(f"{column} length", ">i4"), (column, type_)]
    halfvecs = {"embedding": search} | ({} if statement is None else {"statement": statement})
    for column in halfvecs:
        layout += [(f"{column} length", ">i4"), (f"{column} size", ">i2"), (f"{column} unused", ">i2")]
        layout.append((column, ">f2", (dimension,)))
    rows = np.zeros(len(refs), dtype=np.dtype(layout))
    rows["count"] = len(fields) + len(halfvecs)
    for column, _, length, value in fields:
        rows[f"{column} length"], rows[column] = length, value
    for column, made in halfvecs.items():
        rows[f"{column} length"], rows[f"{column} size"] = 4 + 2 * dimension, dimension
        rows[column] = made
    columns = sql.SQL(", ").join(sql.Identifier(name) for name in [*(f[0] for f in fields), *halfvecs])
    copying = sql.SQL("COPY workspaces_passagevector ({}) FROM STDIN (FORMAT binary)").format(columns)
    with connection.cursor() as cursor, cursor.copy(copying) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows.tobytes() + b"\xff\xff")


def stored_vectors(kind: int, place: int, model: str, dimension: int) -> Iterable[tuple[np.ndarray, Vectors]]:
    """The live vectors of a place's passages of a kind by their statements, with their keys; some at a time."""
    rows = PassageVector.objects.filter(place=place, kind=kind, model=model, dimension=dimension, live=True)
    row = np.dtype(
        [("count", ">i2"), ("n1", ">i4"), ("ref", ">i8"), ("n2", ">i4"), ("size", ">i4"),
         ("vector", ">f2", (dimension,))]
    )  # fmt: skip
    with connection.cursor() as cursor:
        if not rows.exists():
            return
        copying = sql.SQL(
            "COPY (SELECT ref, coalesce(statement, embedding) FROM workspaces_passagevector "
            "WHERE place = {} AND kind = {} AND model = {} AND dimension = {} AND live) TO STDOUT (FORMAT binary)"
        ).format(sql.Literal(place), sql.Literal(kind), sql.Literal(model), sql.Literal(dimension))
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
    return rows["ref"].astype(np.int64), rows["vector"].astype(np.float32)
