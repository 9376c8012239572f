"""Keyset pagination of the REST lists.

A page's cursor holds the sort key of the last row seen, so that rows inserted or deleted since do not shift the next
page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.utils.translation import gettext_lazy as later
from rest_framework import serializers
from rest_framework.request import Request

from memoryhub.database.queries import PreparedQuery
from memoryhub.errors import Malformed
from workspaces.api.fields import range_errors

LIMIT = 20
MAX_LIMIT = 100


class BadCursor(Malformed):
    code = "bad_cursor"
    default_message = later(
        "This cursor does not belong to this list. Leave it out to start from the beginning."
    )


class Cursor(serializers.CharField):
    """Field for the cursor of a list, without validators: ``paged`` checks it, and responds ``bad_cursor`` (400) if it
    is wrong.
    """

    def run_validators(self, value: Any) -> None:
        return None


class PageQuery(serializers.Serializer[Any]):
    """Query parameters of every list: ``?limit=&cursor=``."""

    limit = serializers.IntegerField(
        min_value=1,
        max_value=MAX_LIMIT,
        default=LIMIT,
        help_text="How many at most.",
        error_messages=range_errors(1, MAX_LIMIT),
    )
    cursor = Cursor(
        required=False,
        allow_blank=True,
        help_text="`next_cursor` of the page before. Opaque: do not make or change one.",
    )


class PreparedList:
    """A paginated list whose first page is loaded by a prepared query, whose SQL is built once.

    ``make(**values)`` returns the queryset. ``kinds`` maps the name of each value to its type, as in
    ``PreparedQuery``. Later pages use the ORM: a prepared plan does not know the cursor's value, and
    would read all rows of a large workspace.
    """

    def __init__(self, make: Callable[..., QuerySet[Any]], **kinds: type) -> None:
        self._make, self._kinds = make, kinds
        self._ready: dict[tuple[tuple[str, ...], bool], PreparedQuery[Any]] = {}

    def of(self, **values: Any) -> ReadyRows:
        return ReadyRows(self, values)

    def rows(self, **values: Any) -> QuerySet[Any]:
        return self._make(**values)

    def first_page(self, keys: tuple[str, ...], descending: bool) -> PreparedQuery[Any]:
        if (keys, descending) not in self._ready:
            self._ready[keys, descending] = PreparedQuery(
                lambda **values: _in_order(self._make(**values), keys, descending), **self._kinds
            )
        return self._ready[keys, descending]


@dataclass(frozen=True)
class ReadyRows:
    """A ``PreparedList`` together with the ``values`` of its queryset. ``paged`` accepts it in place of a queryset."""

    list: PreparedList
    values: Mapping[str, Any]


def paged(
    request: Request,
    rows: QuerySet[Any] | ReadyRows,
    *,
    keys: Sequence[str],
    descending: bool,
    list_name: str,
    shape: Callable[[list[Any]], Any],
) -> dict[str, Any]:
    """Return the page of ``rows`` that the request's ``limit`` and ``cursor`` select, as ``{items, next_cursor,
    has_more}``.

    ``keys``: the fields that order the list, the last one unique. ``list_name``: identifies the list; a cursor of
    another list is refused. ``shape``: converts the rows of the page to JSON.
    """
    query = PageQuery(data=request.query_params.dict())
    query.is_valid(raise_exception=True)
    limit = query.validated_data["limit"]
    salt = f"cursor {list_name}"
    cursor = query.validated_data.get("cursor")
    if isinstance(rows, ReadyRows) and cursor is None:
        page = rows.list.first_page(tuple(keys), descending).all(limit=limit + 1, **rows.values)
    else:
        wanted = rows.list.rows(**rows.values) if isinstance(rows, ReadyRows) else rows
        if cursor is not None:
            last = _read(cursor, salt, wanted.model, keys)
            wanted = wanted.filter(_beyond(keys, last, descending))
        page = list(_in_order(wanted, keys, descending)[: limit + 1])
    has_more = len(page) > limit
    page = page[:limit]
    return {
        "items": shape(page),
        "next_cursor": _write(page[-1], salt, keys) if has_more else None,
        "has_more": has_more,
    }


def _in_order(rows: QuerySet[Any], keys: Sequence[str], descending: bool) -> QuerySet[Any]:
    return rows.order_by(*(f"-{key}" if descending else key for key in keys))


def _beyond(keys: Sequence[str], last: Sequence[Any], descending: bool) -> Q:
    """Return the condition for rows that come after the last row seen. ``last``: that row's values of ``keys``.

    It begins with a condition on the first key alone, which is redundant, but lets Postgres start at the right position
    of the index.
    """
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
