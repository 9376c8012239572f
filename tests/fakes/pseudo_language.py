"""A pseudo-translation that puts brackets around each translated word, so that untranslated text shows."""

from __future__ import annotations

from collections.abc import Iterator
from gettext import NullTranslations

import pytest
from django.conf import settings
from django.utils import translation
from django.utils.translation import trans_real

CODE = "de"  # requested by this code; its own name differs, so that nothing takes it for German later
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
    """Yield the language code by which a browser requests it."""
    monkeypatch.setitem(trans_real._translations, CODE, Pseudo())
    yield CODE
    # A stream leaves the language of its request active in its thread
    translation.activate(settings.LANGUAGE_CODE)
