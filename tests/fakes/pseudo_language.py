"""A language in which each word of ours stands in brackets: what has none was not translated, and what has them was."""

from __future__ import annotations

from collections.abc import Iterator
from gettext import NullTranslations

import pytest
from django.conf import settings
from django.utils import translation
from django.utils.translation import trans_real

CODE = "de"  # asked for by this name; it calls itself by another, so that nothing takes it for German later
OPEN, CLOSED = "⟦", "⟧"


class Pseudo(NullTranslations):
    def gettext(self, message: str) -> str:
        return f"{OPEN}{message.rpartition(chr(4))[2]}{CLOSED}"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)

    def to_language(self) -> str:
        return "pseudo"


@pytest.fixture
def pseudo_language(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The header by which a browser asks for it."""
    monkeypatch.setitem(trans_real._translations, CODE, Pseudo())
    yield CODE
    translation.activate(settings.LANGUAGE_CODE)  # a stream leaves its thread in the language of its request
