"""Sentences that are kept in English and translated where they are shown, by ``memoryhub.languages.translated``."""

from __future__ import annotations


def kept(*sentences: str) -> str:
    """Return the sentences joined, each marked for translation as by gettext_noop (``tests/messages.py`` collects
    them).
    """
    return " ".join(sentences)
