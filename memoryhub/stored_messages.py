"""Markers for sentences that are stored in English and translated on display by ``memoryhub.languages.translated``."""


def kept(*sentences: str) -> str:
    """Join sentences and mark each for translation (``tests/messages.py``), as gettext_noop does."""
    return " ".join(sentences)
