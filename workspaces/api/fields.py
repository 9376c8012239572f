"""Serializer fields, path converters for public ids, and keyset pagination.

The fields refuse values of another type, while DRF's fields convert "5" to 5 and "no" to False. A malformed id gets 404
without a query. A page's cursor holds the sort key of the last row seen, so that rows inserted or deleted since do not
shift the next page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar

from django.core import signing
from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.urls import register_converter
from django.utils.dateparse import parse_datetime
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from drf_spectacular.drainage import set_override
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.utils.html import is_html_input

from memoryhub.database.queries import PreparedQuery
from memoryhub.errors import Malformed
from memoryhub.ids import LENGTH
from memoryhub.languages import translated
from memoryhub.llm.metering import MOST_PRICE

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.IGNORECASE)


class Body(serializers.Serializer[Any]):
    """A request body. An unknown field is refused by name, so that a misspelled one is not ignored."""

    at_least_one_of: ClassVar[tuple[str, ...]] = ()

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise serializers.ValidationError({"body": _("Must be a JSON object.")})
        unknown = [name for name in data if name not in self.fields]
        if unknown:
            why = _("There is no such field here.")
            if self.fields:
                why += " " + _("Allowed: %s.") % ", ".join(self.fields)
            raise serializers.ValidationError({str(name)[:60]: why for name in unknown[:10]})
        values = super().to_internal_value(data)
        if self.at_least_one_of and not any(name in values for name in self.at_least_one_of):
            wanted = _("At least one of these is needed: %s.") % ", ".join(self.at_least_one_of)
            raise serializers.ValidationError(dict.fromkeys(self.at_least_one_of, wanted))
        return values


class Text(serializers.CharField):
    """A JSON string without the characters that a database or an encoder refuses (NUL, lone surrogates)."""

    default_error_messages = {
        "invalid": later("Must be a string."),
        "blank": later("Must not be blank."),
        "max_length": later("Must have at most {max_length} characters."),
    }

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Flag(serializers.BooleanField):
    default_error_messages = {"invalid": later("Must be true or false.")}

    def to_internal_value(self, data: Any) -> bool:
        if is_html_input(self.parent.initial_data):  # a form, beside a file, has only text
            data = {"true": True, "false": False}.get(data, data)
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class Number(serializers.FloatField):
    default_error_messages = {
        "invalid": later("Must be a number."),
        "min_value": later("Must be at least {min_value}."),
        "max_value": later("Must be at most {max_value}."),
    }

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        try:
            number = float(data)
        except OverflowError:
            self.fail("invalid")
        if not math.isfinite(number):
            self.fail("invalid")
        return number


class Money(serializers.DecimalField):
    """An amount of the installation's currency, as a JSON string ("0.15") or number with at most six decimal places.

    Null means no amount.
    """

    default_error_messages = {"invalid": later('Must be an amount such as "0.15".')}

    def __init__(self, **kwargs: Any) -> None:
        shape = {"max_digits": 13, "decimal_places": 6, "min_value": 0, "max_value": MOST_PRICE}
        super().__init__(**{**shape, "required": False, "allow_null": True, **kwargs})
        digits = len(str(int(self.max_value or 0))) - 1
        # drf-spectacular's own pattern lets "-" and "." through.
        pattern = rf"^\d{{1,{digits}}}(\.\d{{1,{self.decimal_places}}})?$"
        set_override(self, "field", {"type": "string", "format": "decimal", "pattern": pattern})

    def to_internal_value(self, data: Any) -> Decimal:
        if isinstance(data, bool) or not isinstance(data, str | int | float):
            self.fail("invalid")
        amount: Decimal = super().to_internal_value(data)
        return amount


class WholeNumber(serializers.IntegerField):
    default_error_messages = {
        "invalid": later("Must be a whole number."),
        "min_value": later("Must be at least {min_value}."),
        "max_value": later("Must be at most {max_value}."),
    }

    def to_internal_value(self, data: Any) -> int:
        whole = isinstance(data, int) or (isinstance(data, float) and data.is_integer())
        if isinstance(data, bool) or not whole:
            self.fail("invalid")
        return int(data)


class Choice(serializers.ChoiceField):
    """A choice field whose error lists the choices and never repeats the input."""

    def __init__(self, choices: Iterable[str], **kwargs: Any) -> None:
        words = list(choices)
        refusal = format_lazy(later("Must be one of {words}."), words=", ".join(words))
        kwargs.setdefault("error_messages", {"invalid_choice": refusal})
        super().__init__(choices=words, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("invalid_choice")
        return data


class Words(serializers.ListField):
    """A list of short strings."""

    default_error_messages = {
        "not_a_list": later("Must be a list of strings."),
        "min_length": later("Must have at least {min_length} entries."),
        "max_length": later("Must have at most {max_length} entries."),
    }

    def __init__(self, *, word_length: int, **kwargs: Any) -> None:
        super().__init__(child=Text(max_length=word_length), **kwargs)


class Moment(serializers.DateTimeField):
    """A time. Input is ISO 8601 with a time zone; output is UTC with ``Z``."""

    default_error_messages = {
        "invalid": later("Must be a time with its time zone, such as 2026-03-15T12:00:00Z.")
    }

    def to_internal_value(self, value: Any) -> datetime:
        if not isinstance(value, str) or not MOMENT.fullmatch(value):
            self.fail("invalid", format="")
        try:
            moment = parse_datetime(value.upper())
            return moment.astimezone(UTC) if moment else self.fail("invalid", format="")
        except (ValueError, OverflowError):
            self.fail("invalid", format="")

    def to_representation(self, value: datetime) -> str:
        return iso(value)


class StoredSentence(serializers.CharField):
    """A message that was stored in English, translated to the language of the request."""

    def to_representation(self, value: str) -> str:
        return translated(value)


def range_errors(least: int, most: int) -> dict[str, Any]:
    """Return the error messages of an integer query parameter from ``least`` to ``most``."""
    why = format_lazy(later("Must be a whole number from {least} to {most}."), least=least, most=most)
    return dict.fromkeys(("invalid", "min_value", "max_value", "max_string_length"), why)


def iso(value: datetime) -> str:
    """Return a moment in UTC as ISO 8601, such as ``2026-03-07T10:30:00.000000Z``."""
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class PublicIdConverter:
    prefix = ""

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


_PREFIXES = (
    "ws", "usr", "chat", "msg", "mem", "agent", "node", "asset", "imp", "conn", "key", "ask", "run", "doc", "art",
    "hook", "evt", "rtp", "prm", "link", "clr",
)  # fmt: skip
for _prefix in _PREFIXES:
    register_converter(
        type(
            f"{_prefix.title()}IdConverter",
            (PublicIdConverter,),
            {"prefix": _prefix, "regex": f"{_prefix}_[A-Za-z0-9]{{{LENGTH}}}"},
        ),
        f"{_prefix}_id",
    )


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
