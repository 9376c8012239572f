"""Writing one row by a prepared statement: what ``save()`` does, at a fifth of its cost and without signals.

Django makes the text of an INSERT anew each time (docs/decisions/0021). The fields still say what of a value is stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from django.db import connection
from django.db.models import Field, Model
from psycopg.types.numeric import Int8

from memoryhub import prepared


def insert_row(row: Model, made: Mapping[str, str] | None = None) -> None:
    """Insert a row whose key the database gives. ``made`` are columns as expressions of SQL over the others."""
    statement, fields = _insert(type(row), tuple((made or {}).items()))
    values = [_stored(field, field.pre_save(row, add=True)) for field in fields]
    ((row.pk,),) = prepared.rows(statement, values)
    row._state.adding, row._state.db = False, connection.alias


def update_row(row: Model, names: Iterable[str]) -> None:
    """Store these fields of a row that is there."""
    statement, fields = _update(type(row), tuple(names))
    values = [_stored(field, field.pre_save(row, add=False)) for field in fields]
    prepared.rows(statement, [*values, Int8(row.pk)])


@lru_cache
def _insert(model: type[Model], made: tuple[tuple[str, str], ...]) -> tuple[str, list[Any]]:
    meta, columns_made = model._meta, dict(made)
    fields = [
        each for each in meta.concrete_fields if not each.primary_key and each.column not in columns_made
    ]
    names = ", ".join(f'"{each.column}"' for each in fields)
    columns, values = ", ".join([names, *columns_made]), ", ".join([names, *columns_made.values()])
    typed = ", ".join(f"%s::{_type(each)}" for each in fields)
    statement = (
        f'INSERT INTO "{meta.db_table}" ({columns}) SELECT {values} FROM (VALUES ({typed})) given({names}) '  # noqa: S608
        f'RETURNING "{meta.pk.column}"'
    )
    return statement, fields


@lru_cache
def _update(model: type[Model], names: tuple[str, ...]) -> tuple[str, list[Any]]:
    meta = model._meta
    fields = [meta.get_field(name) for name in names]
    given = ", ".join(f'"{each.column}" = %s::{_type(each)}' for each in fields)  # type: ignore[union-attr]
    return f'UPDATE "{meta.db_table}" SET {given} WHERE "{meta.pk.column}" = %s', fields  # noqa: S608


def _type(field: Any) -> str:
    """Without its length, or a value that is too long would be cut where it must be refused."""
    return re.sub(r"\(\d+\)", "", str(field.cast_db_type(connection)))


def _stored(field: Field[Any, Any], value: Any) -> Any:
    value = field.get_db_prep_save(value, connection)
    return Int8(value) if type(value) is int else value
