"""Statements on psycopg itself, prepared: parsed once a connection, and planned once where one plan serves all.

Django's own cursor binds values in the client, so Postgres parses and plans each statement anew; for a small workspace
that is most of what recall costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import psycopg
from django.db import connection
from django.db.backends.utils import CursorWrapper

from memoryhub.llm.base import Vectors

Params: TypeAlias = Mapping[str, Any] | Sequence[Any]


def rows(statement: str, params: Params, *, binary: bool = True) -> list[tuple[Any, ...]]:
    """What a statement gives. Its text must be one of few: each is kept by the server for as long as the connection.

    Values are sent apart from the text, so numbers need their type written beside them (``%(limit)s::int``) or
    ``bigints``. ``binary=False`` gives values as Django's own cursor does. Raises Django's DatabaseError, and is
    counted and logged as Django's own queries are.
    """
    if connection.queries_logged:  # by tests and in debugging: values are wanted in the text
        with connection.cursor() as cursor:
            return _all(cursor, statement, params)
    connection.ensure_connection()
    bare = psycopg.Cursor(connection.connection)
    if binary:
        bare.format = psycopg.pq.Format.BINARY  # moments and numbers need no parsing
    with connection.make_cursor(bare) as cursor:  # type: ignore[arg-type]  # what it wraps is psycopg's
        return _all(cursor, statement, params)


def _all(cursor: CursorWrapper, statement: str, params: Params) -> list[tuple[Any, ...]]:
    cursor.execute(statement, params)
    return cursor.fetchall() if cursor.description else []


def halfvec(vector: Vectors) -> str:
    """For a ``::halfvec``. A tenth of a millisecond for 384 dimensions, and one question asks with it twice."""
    return _text(vector.astype(np.float16).tobytes())


@lru_cache(maxsize=16)
def _text(halves: bytes) -> str:
    return f"[{','.join(map(str, np.frombuffer(halves, dtype=np.float16).tolist()))}]"


def bigints(numbers: Iterable[int]) -> str:
    """Numbers for a ``::bigint[]``, as text: a list would be sent as whatever type its largest number needs."""
    return "{" + ",".join(map(str, numbers)) + "}"
