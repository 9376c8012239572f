"""A pseudo-translation that puts brackets around each translated word, so that untranslated text shows."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from gettext import NullTranslations
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
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


@contextmanager
def stored_translations() -> Iterator[list[str]]:
    """Record the statements that write a translated word."""
    stored: list[str] = []

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if OPEN in repr(params) and not str(sql).lstrip().upper().startswith("SELECT"):
            stored.append(f"{str(sql)[:60]} {re.findall(f'{OPEN}[^{CLOSED}]*', repr(params))}")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        yield stored
