"""Rules for the fields of a memory: stripped and checked, one field at a time (docs/api.md)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from memories.models.memory import CATEGORY_LENGTH, CONTENT_LENGTH, KEY_LENGTH
from memoryhub.errors import Invalid
from memoryhub.languages import grouped

TAG_LENGTH = 50
TAGS = 20
LABEL_LENGTH = 50
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # Postgres stores neither


def clean_text(name: str, value: Any, limit: int) -> str:
    if not isinstance(value, str):
        raise ValueError(_("must be text"))
    if UNSTORABLE.search(value):
        raise ValueError(_("has a character that cannot be stored (NUL or half of a surrogate pair)"))
    value = value.strip()
    if len(value) > limit:
        numbers = grouped(limit), grouped(len(value))
        raise ValueError(_("may have at most %s characters and has %s") % numbers)
    return value


def _content(name: str, value: Any) -> str:
    text = clean_text(name, value, CONTENT_LENGTH)
    if not text:
        raise ValueError(_("is required: 1 to %s characters") % grouped(CONTENT_LENGTH))
    return text


def _label(limit: int) -> Any:
    def clean(name: str, value: Any) -> str | None:
        return None if value is None else clean_text(name, value, limit) or None

    return clean


def _tags(name: str, value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(_("must be a list of short texts"))
    tags = [clean_text(name, tag, TAG_LENGTH) for tag in value]
    tags = list(dict.fromkeys(tag for tag in tags if tag))
    if len(tags) > TAGS:
        raise ValueError(_("may have at most %s entries") % TAGS)
    return tags


def _importance(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(_("must be a number from 0 to 1"))
    if not 0 <= value <= 1:
        raise ValueError(_("must be from 0 to 1"))
    return float(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(_("must be true or false"))
    return value


def _moment(name: str, value: Any) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError(_("must be a date and time with a time zone, or empty"))
    return value


CLEANERS: dict[str, Any] = {
    "content": _content,
    "summary": _label(CONTENT_LENGTH),
    "key": _label(KEY_LENGTH),
    "category": _label(CATEGORY_LENGTH),
    "tags": _tags,
    "importance": _importance,
    "pinned": _flag,
    "expires_at": _moment,
    "valid_from": _moment,
    "valid_to": _moment,
}


def check_validity(valid_from: datetime | None, valid_to: datetime | None) -> None:
    """Raises Invalid where something would end before it begins."""
    if valid_from is not None and valid_to is not None and valid_to < valid_from:
        raise Invalid(fields={"valid_to": _("must not be before it begins to hold")})
