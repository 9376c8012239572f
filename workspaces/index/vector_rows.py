"""Vectors of passages, stored and taken out: each beside the label of its model."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection, transaction
from django_q.tasks import async_task

from memoryhub.database import queries
from workspaces.index.embedding import Embedded
from workspaces.index.kinds import Kind, Passage, kind_of, of_places
from workspaces.models import PassageVector

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
