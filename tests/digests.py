"""Digests of the database's tables in one statement: cheap enough to run around each request."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from django.db import connection, models


def digests(selects: Mapping[str, str], parameters: Sequence[Any] = ()) -> dict[str, str | None]:
    """Return a digest of the rows of each statement, in any order; None if there are none."""
    each = "(SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM ({}) t)"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(map(each.format, selects.values()))}", parameters or None)
        return dict(zip(selects, cursor.fetchone() or (), strict=True))


def digests_of(*tables: type[models.Model], without: frozenset[str] = frozenset()) -> dict[str, str | None]:
    """Return a digest of all rows of each table, without the columns in ``without``."""
    return digests({table.__name__: _select(table, without) for table in tables})


@cache
def _select(table: type[models.Model], without: frozenset[str]) -> str:
    names = [f'"{field.column}"' for field in table._meta.concrete_fields if field.attname not in without]
    return f"SELECT {', '.join(names)} FROM {table._meta.db_table}"
