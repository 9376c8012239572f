"""A database whose index lies in parts by place, and which of them each statement looked into.

The server's own counts say so, of what ran and not of what was planned: a part that was pruned while the statement ran
is not counted, and what a trigger did is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from psycopg import sql

from workspaces.index import partitions
from workspaces.index.parted_tables import tables

PARTS = 8
TABLE = re.compile(r"workspaces_passage(vector|word)\b|memories_memory\b")
# As pg_stat_xact_user_tables adds it up, of the parts alone.
_LOOKED_INTO = """
SELECT relname, pg_stat_get_xact_numscans(oid) + pg_stat_get_xact_tuples_inserted(oid)
    + pg_stat_get_xact_tuples_updated(oid) + pg_stat_get_xact_tuples_deleted(oid)
    + (SELECT coalesce(sum(pg_stat_get_xact_numscans(indexrelid)), 0) FROM pg_index WHERE indrelid = oid)
FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = ANY(%s::regclass[])
"""


@contextmanager
def parted(parts: int = PARTS) -> Iterator[None]:
    partitions.repartition(parts)
    try:
        yield
    finally:
        partitions.repartition(0)


class Watched:
    """By statement, without its values' differing lengths: the most parts of one table that it looked into."""

    def __init__(self) -> None:
        self.parts: dict[str, int] = defaultdict(int)

    def __call__(self, execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        shown = statement.as_string() if isinstance(statement, sql.Composable) else statement
        is_about = bool(TABLE.search(shown)) or shown.lstrip().startswith("DELETE")
        before = _looked_into() if is_about else {}
        result = execute(statement, params, many, context)
        if is_about:
            new = [name for name, times in _looked_into().items() if times != before.get(name)]
            of_table = [sum(name.startswith(f"{table.name}_") for name in new) for table in tables()]
            text = " ".join(re.sub(r"(%s, )+%s", "%s", shown).split())
            self.parts[text] = max(self.parts[text], *of_table)
        return result


@contextmanager
def watched() -> Iterator[Watched]:
    """In a transaction: the counts are of one. Planned as for large tables: of a few rows all are read and hashed."""
    seen = Watched()
    with connection.cursor() as cursor:
        for way in ("hashjoin", "mergejoin", "seqscan"):
            cursor.execute(f"SET LOCAL enable_{way} = off")
    with connection.execute_wrapper(seen):
        yield seen


def _looked_into() -> dict[str, int]:
    bare = connection.connection.cursor()
    return dict(bare.execute(_LOOKED_INTO, [[table.name for table in tables()]]).fetchall())
