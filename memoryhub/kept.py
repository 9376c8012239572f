"""Sentences that are kept in English and translated where they are shown, by ``memoryhub.languages.translated``."""

from __future__ import annotations


def kept(*sentences: str) -> str:
    """All of them. Each is marked by itself, as by gettext_noop: ``tests/messages.py`` finds them here."""
    return " ".join(sentences)
