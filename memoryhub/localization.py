"""Languages of pages, mails and errors, and how names, numbers and stored texts are shown in them.

Pages and mails use the user's choice, else the browser's first supported language. The REST API follows only the
request's ``Accept-Language``, so that answers do not depend on the key's owner; error codes are the same in all
languages. Texts for models are English: ``/v1``, ``/mcp`` and prompts. Messages are stored in English and translated
for their reader on display (``translated``).
"""

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

# A number, or a size in the format of file_size.
NUMBER = re.compile(r"\d+(?:\.\d)?\xa0(?:[KMGTP]B|bytes?)|\d{1,3}(?:,\d{3})+|\d+")
FIELD = re.compile(r"(\w+): (.+)\.", re.DOTALL)  # a field's error in a message
SENTENCES_END = re.compile(r"(?<=[.!?]) ")
# Unicode bidirectional classes that can change a line's direction.
TURNS = {"R", "AL", "RLE", "LRE", "RLO", "LRO", "RLI", "LRI", "FSI", "PDI", "PDF"}


def isolated(name: str) -> str:
    """Return a name, wrapped in Unicode isolates if its text direction could affect the text around it."""
    if translation.get_language_bidi() or any(bidirectional(letter) in TURNS for letter in name):
        return f"\u2068{name}\u2069"
    return name


def chosen_by(person: Any) -> str:
    """Return the language of the user's profile if it is supported, else an empty string."""
    language: str = getattr(person, "language", "")
    return language if language in dict(settings.LANGUAGES) else ""


def translated(text: str) -> str:
    """Translate a text that is stored in English, with its numbers. Sentences without a translation stay English."""
    return " ".join(_sentence(each) for each in SENTENCES_END.split(text)) if text else ""


def _sentence(english: str) -> str:
    text = translation.gettext(english)
    if text == english and "%" not in english:
        text = _with_its_numbers(english)
    if text == english and (named := FIELD.fullmatch(english)):
        return f"{named[1]}: {_sentence(named[2])}."
    return text


def _with_its_numbers(english: str) -> str:
    """Translate a sentence that contains numbers. In the catalogue, the numbers are placeholders."""
    numbers = [*NUMBER.finditer(english)]
    for number in numbers:
        before, after = english[: number.start()], english[number.start() :]
        text = translation.gettext(before + NUMBER.sub("%s", after))
        if text != before + NUMBER.sub("%s", after):
            return text % tuple(_number(digits) for digits in NUMBER.findall(after))
    return english


def _number(english: str) -> str:
    if "\xa0" in english:
        return english.replace(".", formats.get_format("DECIMAL_SEPARATOR"))
    return grouped(int(english.replace(",", ""))) if "," in english else english


def grouped(value: int | Decimal) -> str:
    """Format a number with the active language's thousands separators, such as 1,204 or 1.204."""
    return formats.number_format(value, use_l10n=True, force_grouping=True)


def file_size(size: int) -> str:
    """Format a size, such as 812 bytes, 1.5 MB or 50 MB. Django's filter gives 50.0 MB and wrong Arabic plurals."""
    if size < 1024:
        return avoid_wrapping(ngettext("%(count)s byte", "%(count)s bytes", size) % {"count": grouped(size)})
    return filesizeformat(size).replace(f"{formats.get_format('DECIMAL_SEPARATOR')}0\xa0", "\xa0")


def speaking_to(person: Any) -> AbstractContextManager[None]:
    """Activate this user's language inside the block, or English if the user has not chosen one."""
    return translation.override(chosen_by(person) or settings.LANGUAGE_CODE)
