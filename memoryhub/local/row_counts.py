"""How many rows each table of a database has: by which one is compared with another that was made of it."""

from __future__ import annotations

from typing import Any, LiteralString

import psycopg
from psycopg import sql

_TABLES: LiteralString = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname = 'public' ORDER BY c.relname
"""


def rows_of(connection: psycopg.Connection[Any]) -> dict[str, int]:
    """Counted, each table read once."""
    found = {}
    for (table,) in connection.execute(_TABLES).fetchall():
        row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
        found[table] = row[0] if row else 0
    return found


def which_differ(one: dict[str, int], other: dict[str, int]) -> list[str]:
    return sorted(table for table in one.keys() | other if one.get(table) != other.get(table))
