"""Querysets whose SQL is made once.

Django puts the text of a query together anew each time it is asked, and Postgres plans it anew: of a small query that
is nearly all that it costs (docs/decisions/0018). Here the ORM says once what is asked, and makes the objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Model, QuerySet
from django.db.models.query import get_related_populators
from psycopg.types.numeric import Int8

from memoryhub.database import prepared

M = TypeVar("M", bound=Model)

# What stands in for a value while the SQL is made, the number being which. No query has these of its own.
_MARKS: dict[type, Callable[[int], Any]] = {
    int: lambda number: 2**62 + number,
    str: lambda number: f"\x02{number}\x03",
    datetime: lambda number: datetime(1, 1, 1, 0, 0, number, tzinfo=UTC),
}


class Ready(Generic[M]):
    """``make(**values)`` is a queryset; ``kinds`` are the types of the values: int (of a bigint), str or datetime.

    It is called once, with values of no meaning: none may decide what is asked, and none is ever None. Relations come
    by ``select_related``; prefetching is not for it.
    """

    def __init__(self, make: Callable[..., QuerySet[M]], **kinds: type) -> None:
        self._make, self._kinds = make, kinds
        self._compiled: _Compiled | None = None

    def all(self, *, limit: int | None = None, **values: Any) -> list[M]:
        """The rows, at most ``limit``. One query."""
        compiled = self._compiled or self._compile()
        statement, params = compiled.statement, compiled.params_of(values)
        if limit is not None:
            statement += (
                f" LIMIT {int(limit)}"  # in the text: a plan for an unknown number reads far too much
            )
        return compiled.objects(prepared.rows(statement, params, binary=False))

    def first(self, **values: Any) -> M | None:
        found = self.all(limit=1, **values)
        return found[0] if found else None

    def count(self, **values: Any) -> int:
        """How many rows there are. One query."""
        compiled = self._compiled or self._compile()
        statement = f"SELECT count(*) FROM ({compiled.statement}) counted"  # noqa: S608  the ORM's own text
        return int(prepared.rows(statement, compiled.params_of(values))[0][0])

    def _compile(self) -> _Compiled:
        marks = {name: _MARKS[kind](number) for number, (name, kind) in enumerate(self._kinds.items())}
        compiler: Any = self._make(**marks).query.get_compiler(DEFAULT_DB_ALIAS)
        statement, params = compiler.as_sql()
        names = {mark: name for name, mark in marks.items()}
        given = [names[each] for each in params if each in names]
        if unused := set(marks) - set(given):
            raise TypeError(f"the query does not ask for {sorted(unused)}")
        own = [each for each in params if each not in names]
        if any(isinstance(each, datetime) for each in own):
            raise TypeError("the query has a moment of its own, which would never pass: give it as a value")
        # Its own values stand in the text: only so does Postgres see that an index of some rows alone has them all.
        written = ["%s" if each in names else _literal(each) for each in params]
        statement = statement.replace("%%", "%%%%") % tuple(written)
        self._compiled = _Compiled(statement, given, compiler)
        return self._compiled


def _literal(value: Any) -> str:
    text: str = connection.ops.compose_sql("%s", [value])  # type: ignore[attr-defined]  # Postgres has it
    return text.replace("%", "%%")


class _Compiled:
    """The text and the names of its values, in order, and how rows become objects: what Django's ``ModelIterable``
    finds out each time.
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
        given = [values[name] for name in self._given]
        return [Int8(each) if type(each) is int else each for each in given]  # one type, so one plan

    def objects(self, rows: list[tuple[Any, ...]]) -> list[Any]:
        return [self._object(self._converted(row) if self._converters else row) for row in rows]

    def _converted(self, row: Sequence[Any]) -> Sequence[Any]:
        """With what fields make of the values of their columns, such as of JSON."""
        values = list(row)
        for at, (converters, expression) in self._converters:
            for convert in converters:
                values[at] = convert(values[at], expression, connection)
        return values

    def _object(self, row: Sequence[Any]) -> Any:
        made = self._model.from_db(DEFAULT_DB_ALIAS, self._names, row[self._own])
        for related in self._related:
            related.populate(row, made)
        for name, at in self._annotations:
            setattr(made, name, row[at])
        return made
