"""Serializer fields, and path converters for public ids.

The fields refuse values of another type, while DRF's fields convert "5" to 5 and "no" to False. A malformed id gets 404
without a query.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar

from django.urls import register_converter
from django.urls.converters import StringConverter
from django.utils.dateparse import parse_datetime
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from drf_spectacular.drainage import set_override
from rest_framework import serializers
from rest_framework.utils.html import is_html_input

from memoryhub.ids import LENGTH
from memoryhub.llm.metering import MOST_PRICE
from memoryhub.localization import translated

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


_PREFIXES = (
    "ws", "usr", "chat", "msg", "mem", "agent", "node", "asset", "imp", "conn", "key", "ask", "run", "doc", "art",
    "hook", "evt", "rtp", "prm", "link", "clr",
)  # fmt: skip
for _prefix in _PREFIXES:
    register_converter(
        type(
            f"{_prefix.title()}IdConverter",
            (StringConverter,),
            {"regex": f"{_prefix}_[A-Za-z0-9]{{{LENGTH}}}"},
        ),
        f"{_prefix}_id",
    )
