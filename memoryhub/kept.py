"""Markers for sentences that are stored in English and translated on display by ``memoryhub.languages.translated``."""

from __future__ import annotations


def kept(*sentences: str) -> str:
    """Return the sentences joined.

    Like gettext_noop, marks each for translation (``tests/messages.py`` collects them).
    """
    return " ".join(sentences)
