"""Vectors of passages, stored and taken out: each beside the label of its model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from django.db import connection, transaction
from django_q.tasks import async_task
from psycopg import sql

from memoryhub.database import queries
from memoryhub.llm.base import Vectors
from workspaces.index.embedding import Embedded
from workspaces.models import PassageVector
from workspaces.models.index import Kind, Passage, kind_of, of_places

# Locked until commit, so that the switch to another model waits for writers of vectors of this one.
_STILL_USED = """
SELECT 1 FROM workspaces_embeddingmodel WHERE label = %s AND state IN ('active', 'building') FOR SHARE
"""

# One row of ``put_vectors``, which does the same for many. ON CONFLICT is not needed: the passage's row is locked.
_PUT = f"""
WITH used AS MATERIALIZED ({_STILL_USED.replace("%s", "%(model)s::text")})
INSERT INTO workspaces_passagevector (kind, ref, place, model, dimension, live, embedding, statement)
SELECT %(kind)s::smallint, %(ref)s::bigint, %(place)s::bigint, %(model)s::text, %(dimension)s::int, %(live)s::boolean,
       %(embedding)s::halfvec, %(statement)s::halfvec
FROM used
RETURNING id
"""  # noqa: S608  constants only
_DROP = """
DELETE FROM workspaces_passagevector
WHERE place = %(place)s::bigint AND kind = %(kind)s::smallint AND ref = %(ref)s::bigint
"""
_DROP_OF = """
DELETE FROM workspaces_passagevector v USING {table} m
WHERE m.id = ANY(%(refs)s::bigint[]) AND v.place = {place} AND v.kind = {number} AND v.ref = m.id
  AND v.place = ANY(%(places)s::bigint[])
RETURNING 1
"""


def store_vector(passage: Passage, embedded: Embedded, *, is_new: bool = False) -> None:
    """Set the vector of a new text; those of a text before are removed, of all models.

    If recall went over to another model since it was made, the passage is queued for that one instead. A model that
    is being built gets its own from the rebuild, which looks for what is missing until the switch.
    """
    kind = kind_of(passage)
    given = {
        "kind": kind.number,
        "ref": passage.pk,
        "place": passage.place,
        "model": embedded.model,
        "dimension": len(embedded.search),
        "live": kind.is_live(passage),
        "embedding": queries.halfvec(embedded.search),
        "statement": None if embedded.search is embedded.statement else queries.halfvec(embedded.statement),
    }
    if not is_new:
        queries.rows(_DROP, given)
    if not queries.rows(_PUT, given):
        queue_embedding(kind, [passage.pk])


def drop_vectors(of: Kind, refs: Sequence[int]) -> int:
    """Take the vectors of these out; how many. While the rows are there, by which their places are known."""
    statement = _DROP_OF.format(**vars(of), table=of.table)
    return len(queries.rows(statement, of_places(of, refs)))


def put_vectors(label: str, pairs: Sequence[tuple[Passage, Embedded]]) -> bool:
    """Store vectors of this model beside any of others. False, and nothing stored, if the model is in use no more.

    Part of a transaction that holds the passages' rows (or made them): they cannot be edited or deleted until it ends.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STILL_USED, [label])
        if cursor.fetchone() is None:
            return False
    rows = [
        PassageVector(
            kind=(kind := kind_of(passage)).number,
            ref=passage.pk,
            place=passage.place,
            model=label,
            dimension=len(embedded.search),
            live=kind.is_live(passage),
            embedding=embedded.search,
            statement=None if embedded.search is embedded.statement else embedded.statement,
        )
        for passage, embedded in pairs
    ]
    for kind_number in {row.kind for row in rows}:
        before = {"place__in": {row.place for row in rows}, "ref__in": {row.ref for row in rows}}
        PassageVector.objects.filter(kind=kind_number, model=label, **before).delete()
    PassageVector.objects.bulk_create(rows)
    return True


def queue_embedding(kind: Kind, refs: Sequence[int]) -> None:
    """Embed these in the background, once the running transaction has committed."""
    ids, name = list(refs), f"embed {kind.name}"

    def queue() -> None:
        if kind.queue:
            kind.queue(ids)
        else:
            async_task("workspaces.tasks.embed_passages", kind=kind.number, refs=ids, task_name=name)

    transaction.on_commit(queue)


# Many vectors in and out of Postgres by COPY.

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
