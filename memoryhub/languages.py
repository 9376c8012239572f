"""Languages of pages, mails and errors: the person's choice, else the browser's first supported one.

Pages follow both. REST follows the request's ``Accept-Language`` alone: a program gets the same answers with any key
holds, and its errors' codes are the same in all languages. What models read is English: ``/v1``, ``/mcp``, prompts.
So is what is stored; it is translated where it is shown (``translated``), for its reader.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import Any
from unicodedata import bidirectional

from django.conf import settings
from django.template.defaultfilters import filesizeformat
from django.utils import formats, translation
from django.utils.html import avoid_wrapping
from django.utils.translation import ngettext

# Or a size, as file_size says it.
NUMBER = re.compile(r"\d+(?:\.\d)?\xa0(?:[KMGTP]B|bytes?)|\d{1,3}(?:,\d{3})+|\d+")
FIELD = re.compile(r"(\w+): (.+)\.", re.DOTALL)  # a field's error in a message
SENTENCES_END = re.compile(r"(?<=[.!?]) ")
# Bidirectional classes that may turn a line's direction, by Unicode's names.
TURNS = {"R", "AL", "RLE", "LRE", "RLO", "LRO", "RLI", "LRI", "FSI", "PDI", "PDF"}


def isolated(name: str) -> str:
    """Return a name isolated from the text direction around it, where either could turn the other round."""
    if translation.get_language_bidi() or any(bidirectional(letter) in TURNS for letter in name):
        return f"\u2068{name}\u2069"
    return name


def chosen_by(person: Any) -> str:
    """Return the language of the person's profile if it is still supported; else an empty string."""
    language: str = getattr(person, "language", "")
    return language if language in dict(settings.LANGUAGES) else ""


def translated(text: str) -> str:
    """Translate a stored English text of ours sentence by sentence, with its numbers. Quoted texts of others stay."""
    return " ".join(_sentence(each) for each in SENTENCES_END.split(text)) if text else ""


def _sentence(english: str) -> str:
    said = translation.gettext(english)
    if said == english and "%" not in english:
        said = _with_its_numbers(english)
    if said == english and (named := FIELD.fullmatch(english)):
        return f"{named[1]}: {_sentence(named[2])}."
    return said


def _with_its_numbers(english: str) -> str:
    """Return the translation of a sentence, with its numbers filled in."""
    numbers = [*NUMBER.finditer(english)]
    for number in numbers:
        before, after = english[: number.start()], english[number.start() :]
        said = translation.gettext(before + NUMBER.sub("%s", after))
        if said != before + NUMBER.sub("%s", after):
            return said % tuple(_number(found) for found in NUMBER.findall(after))
    return english


def _number(english: str) -> str:
    if "\xa0" in english:
        return english.replace(".", formats.get_format("DECIMAL_SEPARATOR"))
    return grouped(int(english.replace(",", ""))) if "," in english else english


def grouped(value: int | Decimal) -> str:
    """As a sentence says it in the language that is spoken: 1,204 or 1.204."""
    return formats.number_format(value, use_l10n=True, force_grouping=True)


def file_size(size: int) -> str:
    """Return a size such as 812 bytes, 1.5 MB or 50 MB. Django's has 50.0 MB, and wrong Arabic plurals."""
    if size < 1024:
        return avoid_wrapping(ngettext("%(count)s byte", "%(count)s bytes", size) % {"count": grouped(size)})
    return filesizeformat(size).replace(f"{formats.get_format('DECIMAL_SEPARATOR')}0\xa0", "\xa0")


def speaking_to(person: Any) -> AbstractContextManager[None]:
    """Use this person's language inside the block; English for a person who leaves it to a browser."""
    return translation.override(chosen_by(person) or settings.LANGUAGE_CODE)
