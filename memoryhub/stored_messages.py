"""Markers for sentences that are stored in English and translated by ``memoryhub.localization.translated``."""


def kept(*sentences: str) -> str:
    """Join sentences and mark each for translation (``tests/messages.py``), as gettext_noop does."""
    return " ".join(sentences)
