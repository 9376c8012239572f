"""Pages by keyset: the cursor names the last row seen, so inserts and deletes in between shift nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core import signing
from django.core.exceptions import ValidationError
from django.db.models import DateTimeField, Model, Q, QuerySet
from rest_framework import serializers
from rest_framework.request import Request

from memoryhub.errors import Malformed
from memoryhub.ready import Ready

LIMIT = 20
MAX_LIMIT = 100


class BadCursor(Malformed):
    code = "bad_cursor"
    default_message = "This cursor does not belong to this list. Leave it out to start from the beginning."


class Cursor(serializers.CharField):
    """Any text: what is not a cursor of the list is refused as such (400), whatever else is wrong with it."""

    def run_validators(self, value: Any) -> None:
        return None


class PageQuery(serializers.Serializer[Any]):
    """``?limit=&cursor=`` of every list."""

    limit = serializers.IntegerField(
        min_value=1,
        max_value=MAX_LIMIT,
        default=LIMIT,
        help_text="How many at most.",
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value", "max_string_length"),
            f"Must be a whole number from 1 to {MAX_LIMIT}.",
        ),
    )
    cursor = Cursor(
        required=False,
        allow_blank=True,
        help_text="`next_cursor` of the page before. Opaque: do not make or change one.",
    )


class ReadyList:
    """The queryset of a list whose statements are made once: that of its first page, and that of those after.

    ``make`` and ``kinds`` as in ``Ready``; the order is that of the list.
    """

    def __init__(self, model: type[Model], make: Callable[..., QuerySet[Any]], **kinds: type) -> None:
        self.model, self._make, self._kinds = model, make, kinds
        self._ready: dict[tuple[tuple[str, ...], bool, bool], Ready[Any]] = {}

    def of(self, **values: Any) -> ReadyRows:
        return ReadyRows(self, values)

    def ready(self, keys: tuple[str, ...], descending: bool, *, goes_on: bool) -> Ready[Any]:
        """With the parameters ``last0``, ``last1``… where it ``goes_on`` after a row."""
        if (keys, descending, goes_on) not in self._ready:
            kinds = [datetime if self._is_moment(key) else int for key in keys] if goes_on else []
            names = [f"last{number}" for number in range(len(kinds))]

            def make(**values: Any) -> QuerySet[Any]:
                last = [values.pop(name) for name in names]
                return _in_order(self._make(**values), keys, last or None, descending)

            kinds_by_name = dict(zip(names, kinds, strict=True))
            self._ready[keys, descending, goes_on] = Ready(make, **self._kinds, **kinds_by_name)
        return self._ready[keys, descending, goes_on]

    def _is_moment(self, key: str) -> bool:
        return isinstance(self.model._meta.get_field(key), DateTimeField)


@dataclass(frozen=True)
class ReadyRows:
    """The rows of such a list for these values."""

    list: ReadyList
    values: Mapping[str, Any]

    @property
    def model(self) -> type[Model]:
        return self.list.model


def paged(
    request: Request,
    rows: QuerySet[Any] | ReadyRows,
    *,
    keys: Sequence[str],
    descending: bool,
    list_name: str,
    shape: Callable[[list[Any]], Any],
) -> dict[str, Any]:
    """One page as ``{items, next_cursor, has_more}``.

    ``keys`` are the fields that order the list, the last one unique. ``list_name`` ties a cursor to its list:
    used on another, it is refused. ``shape`` turns the rows of the page into JSON.
    """
    query = PageQuery(data=request.query_params.dict())
    query.is_valid(raise_exception=True)
    limit = query.validated_data["limit"]
    salt = f"cursor {list_name}"
    last = None
    if "cursor" in query.validated_data:
        last = _read(query.validated_data["cursor"], salt, rows.model, keys)
    if isinstance(rows, ReadyRows):
        ready = rows.list.ready(tuple(keys), descending, goes_on=last is not None)
        after = {f"last{number}": value for number, value in enumerate(last or ())}
        found = ready.all(limit=limit + 1, **rows.values, **after)
    else:
        found = list(_in_order(rows, keys, last, descending)[: limit + 1])
    has_more = len(found) > limit
    found = found[:limit]
    return {
        "items": shape(found),
        "next_cursor": _write(found[-1], salt, keys) if has_more else None,
        "has_more": has_more,
    }


def _in_order(
    rows: QuerySet[Any], keys: Sequence[str], last: Sequence[Any] | None, descending: bool
) -> QuerySet[Any]:
    if last is not None:
        rows = rows.filter(_beyond(keys, last, descending))
    return rows.order_by(*(f"-{key}" if descending else key for key in keys))


def _beyond(keys: Sequence[str], last: Sequence[Any], descending: bool) -> Q:
    """Rows after ``last``. The first condition alone lets Postgres enter the index at the right place."""
    side = "lt" if descending else "gt"
    beyond = Q()
    for depth, key in enumerate(keys):
        equal = Q(**dict(zip(keys[:depth], last[:depth], strict=True)))
        beyond |= equal & Q(**{f"{key}__{side}": last[depth]})
    return Q(**{f"{keys[0]}__{side}e": last[0]}) & beyond


def _write(row: Model, salt: str, keys: Sequence[str]) -> str:
    fields = (row._meta.get_field(key) for key in keys)
    return signing.dumps([field.value_to_string(row) for field in fields], salt=salt)  # type: ignore[union-attr]


def _read(cursor: str, salt: str, model: type[Model], keys: Sequence[str]) -> list[Any]:
    try:
        values = signing.loads(cursor, salt=salt)
        fields = (model._meta.get_field(key) for key in keys)
        return [field.to_python(value) for field, value in zip(fields, values, strict=True)]  # type: ignore[union-attr]
    except (signing.BadSignature, ValueError, TypeError, ValidationError):
        raise BadCursor from None
