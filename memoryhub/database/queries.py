"""Queries: the database that reads go to, querysets whose SQL is built once, prepared statements, counts and locks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import Model, QuerySet
from django.db.models.query import get_related_populators
from psycopg.types.numeric import Int8

from memoryhub.environment import libpq_settings

M = TypeVar("M", bound=Model)

_alias: ContextVar[str] = ContextVar("alias", default=DEFAULT_DB_ALIAS)  # the database of read queries


def current_connection() -> BaseDatabaseWrapper:
    """Return the connection of the current read database, for SQL statements."""
    return connections[_alias.get()]


@contextmanager
def using(alias: str) -> Iterator[None]:
    """Read from this database within the block."""
    before = _alias.set(alias)
    try:
        yield
    finally:
        _alias.reset(before)


# Placeholders for the numbered values while the SQL is built. No query contains such values itself.
_MARKS: dict[type, Callable[[int], Any]] = {
    int: lambda number: 2**62 + number,
    str: lambda number: f"\x02{number}\x03",
    datetime: lambda number: datetime(1, 1, 1, 0, 0, number, tzinfo=UTC),
}


class PreparedQuery(Generic[M]):
    """A queryset whose SQL is built once.

    ``make(**values)`` returns the queryset, and ``kinds`` maps the name of each value to its type: int (bigint), str or
    datetime. ``make`` is called once, with placeholders. So values must not change the structure of the query, and no
    value may be None. Relations work with ``select_related``, not with prefetching.
    """

    def __init__(self, make: Callable[..., QuerySet[M]], **kinds: type) -> None:
        self._make, self._kinds = make, kinds
        self._compiled: _Compiled | None = None

    def all(self, *, limit: int | None = None, **values: Any) -> list[M]:
        """Return the rows, limited to ``limit`` if given. One query."""
        compiled = self._compiled or self._compile()
        statement, params = compiled.statement, compiled.params_of(values)
        if limit is not None:
            # In the text, because a plan for an unknown limit reads too many rows.
            statement += f" LIMIT {int(limit)}"
        return compiled.objects(rows(statement, params, binary=False))

    def first(self, **values: Any) -> M | None:
        objects = self.all(limit=1, **values)
        return objects[0] if objects else None

    def count(self, **values: Any) -> int:
        """Return the number of rows. One query."""
        compiled = self._compiled or self._compile()
        statement = f"SELECT count(*) FROM ({compiled.statement}) counted"  # noqa: S608  the ORM's own text
        return int(rows(statement, compiled.params_of(values))[0][0])

    def _compile(self) -> _Compiled:
        marks = {name: _MARKS[kind](number) for number, (name, kind) in enumerate(self._kinds.items())}
        compiler: Any = self._make(**marks).query.get_compiler(DEFAULT_DB_ALIAS)
        statement, params = compiler.as_sql()
        names = {mark: name for name, mark in marks.items()}
        param_names = [names[each] for each in params if each in names]
        if unused := set(marks) - set(param_names):
            raise TypeError(f"the query does not ask for {sorted(unused)}")
        own = [each for each in params if each not in names]
        if any(isinstance(each, datetime) for each in own):
            raise TypeError("the query has a moment of its own, which would never pass: give it as a value")
        # Constants are written into the text, because Postgres otherwise does not use partial indexes.
        written = ["%s" if each in names else _literal(each) for each in params]
        statement = statement.replace("%%", "%%%%") % tuple(written)
        self._compiled = _Compiled(statement, param_names, compiler)
        return self._compiled


def _literal(value: Any) -> str:
    text: str = current_connection().ops.compose_sql("%s", [value])  # type: ignore[attr-defined]  # Postgres has it
    return text.replace("%", "%%")


class _Compiled:
    """A compiled query: its SQL, the names of its values in order, and the conversion of rows to objects.

    It is compiled once, while Django's ``ModelIterable`` repeats this work for each query.
    """

    def __init__(self, statement: str, names: Sequence[str], compiler: Any) -> None:
        self.statement, self._given = statement, names
        about, columns = compiler.klass_info, compiler.klass_info["select_fields"]
        self._model, self._own = about["model"], slice(columns[0], columns[-1] + 1)
        self._names = [column.target.attname for column, _, _ in compiler.select[self._own]]
        self._related: Any = get_related_populators(about, compiler.select, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]  # the stubs are of a later Django
        self._annotations = compiler.annotation_col_map.items()
        self._converters = compiler.get_converters([each for each, _, _ in compiler.select]).items()

    def params_of(self, values: Mapping[str, Any]) -> list[Any]:
        params = [values[name] for name in self._given]
        return [Int8(each) if type(each) is int else each for each in params]  # one type, so one plan

    def objects(self, rows: list[tuple[Any, ...]]) -> list[Any]:
        return [self._object(self._converted(row) if self._converters else row) for row in rows]

    def _converted(self, row: Sequence[Any]) -> Sequence[Any]:
        """Apply the fields' converters, such as those of JSON, to a row."""
        values = list(row)
        for at, (converters, expression) in self._converters:
            for convert in converters:
                values[at] = convert(values[at], expression, connection)
        return values

    def _object(self, row: Sequence[Any]) -> Any:
        instance = self._model.from_db(DEFAULT_DB_ALIAS, self._names, row[self._own])
        for related in self._related:
            related.populate(row, instance)
        for name, at in self._annotations:
            setattr(instance, name, row[at])
        return instance


# Prepared statements of psycopg, which are parsed once per connection and whose plans are reused.
#
# Django's own cursor binds values in the client, so Postgres parses and plans each statement every time. For a small
# workspace that is most of the cost of recall.

Params: TypeAlias = Mapping[str, Any] | Sequence[Any]


def rows(statement: str, params: Params, *, binary: bool = True) -> list[tuple[Any, ...]]:
    """Execute a prepared statement and return its rows. Raises Django's DatabaseError if it fails.

    Use a small number of different statements, because the server keeps each one until the connection closes. Values
    are sent separately, so numbers need a cast (``%(limit)s::int``), as do named collections of numbers
    (``::bigint[]``) and vectors (``::halfvec``). ``binary=False`` returns values as Django's own cursor does. The query
    is counted and logged as Django's own queries are.
    """
    if isinstance(params, Mapping):
        params = {name: _as_text(value) for name, value in params.items()}
    current = current_connection()
    if current.queries_logged:  # in tests and debugging, where the log should contain the values
        with current.cursor() as cursor:
            return _all(cursor, statement, params)
    current.ensure_connection()
    bare = psycopg.Cursor(current.connection)
    if binary:
        bare.format = psycopg.pq.Format.BINARY  # dates and numbers need no parsing
    with current.make_cursor(bare) as cursor:  # type: ignore[arg-type]  # what it wraps is psycopg's
        return _all(cursor, statement, params)


def _all(cursor: CursorWrapper, statement: str, params: Params) -> list[tuple[Any, ...]]:
    cursor.execute(statement, params)
    return cursor.fetchall() if cursor.description else []


def _as_text(value: Any) -> Any:
    """Return a vector or a collection of numbers as text, and other values unchanged. psycopg would choose a list's
    type by its largest number.
    """
    if isinstance(value, np.ndarray):
        return _halfvec(value.astype(np.float16).tobytes())
    if isinstance(value, list | tuple | set | frozenset) and all(type(each) is int for each in value):
        return "{" + ",".join(map(str, value)) + "}"
    return value


@lru_cache(maxsize=16)  # it takes 0.1 ms for 384 dimensions
def _halfvec(halves: bytes) -> str:
    return f"[{','.join(map(str, np.frombuffer(halves, dtype=np.float16).tolist()))}]"


# Row counts at a cost that does not grow with the table.

EXACT_COUNT_UP_TO = 1000


def count_or_estimate(rows: models.QuerySet[Any]) -> tuple[int, bool]:
    """Count rows exactly up to 1,000, else estimate. Return the number and whether it is an estimate. 1-2 queries.

    The estimate is the query planner's, based on the last ANALYZE.
    """
    rows = rows.order_by()
    number = rows.values("pk")[: EXACT_COUNT_UP_TO + 1].count()
    if number <= EXACT_COUNT_UP_TO:
        return number, False
    return max(number, int(json.loads(rows.explain(format="json"))[0]["Plan"]["Plan Rows"])), True


_LOCK = "SELECT pg_try_advisory_lock(hashtext(%s), %s)"
_UNLOCK = "SELECT pg_advisory_unlock(hashtext(%s), %s)"


@contextmanager
def alone(what: str, number: int = 0) -> Iterator[bool]:
    """Try to acquire the lock named by ``what`` and ``number`` for the block, and yield whether that succeeded. A
    killed process releases it.

    The lock has its own connection, because the queue may close the connection of a job that queues another job. Costs
    one connect and two queries.
    """
    key = (what, number % 2**31)
    with psycopg.connect(**_own_session(), autocommit=True) as own:
        row = own.execute(_LOCK, key).fetchone()
        is_alone = bool(row and row[0])
        try:
            yield is_alone
        finally:
            if is_alone:
                with suppress(psycopg.Error):  # the connection was lost, which released the lock
                    own.execute(_UNLOCK, key)  # releases it at once; closing the connection takes a moment


def _own_session() -> dict[str, Any]:
    """Return the settings of a direct connection. Through a pooler, other clients could use the session that holds the
    lock.
    """
    reached = settings.LISTEN_AT or libpq_settings(connection.settings_dict)
    return {**reached, "application_name": "memoryhub lock"}


def release_connection() -> None:
    """Give this thread's connection back to the pool while it is idle, for example in a stream.

    Does nothing inside a transaction.
    """
    if not connection.in_atomic_block:
        connection.close()
