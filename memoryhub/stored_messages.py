"""Markers for sentences that are stored in English and translated on display by ``memoryhub.languages.translated``."""


def kept(*sentences: str) -> str:
    """Return the sentences joined.

    Marks each sentence for translation, as gettext_noop does (``tests/messages.py`` collects them).
    """
    return " ".join(sentences)
