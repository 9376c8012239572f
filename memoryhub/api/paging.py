"""Pages by keyset: the cursor names the last row seen, so inserts and deletes in between shift nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.core import signing
from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from rest_framework import serializers
from rest_framework.request import Request

from memoryhub.errors import Malformed

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


def paged(
    request: Request,
    rows: QuerySet[Any],
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
    if "cursor" in query.validated_data:
        last = _read(query.validated_data["cursor"], salt, rows.model, keys)
        rows = rows.filter(_beyond(keys, last, descending))
    found = list(rows.order_by(*(f"-{key}" if descending else key for key in keys))[: limit + 1])
    has_more = len(found) > limit
    found = found[:limit]
    return {
        "items": shape(found),
        "next_cursor": _write(found[-1], salt, keys) if has_more else None,
        "has_more": has_more,
    }


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
