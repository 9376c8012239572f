"""Rewriting a text into one statement before it is stored, where the model can."""

from __future__ import annotations

import logging

from memories.extraction.model import synthesize
from memories.extraction.run import completer
from memoryhub.llm.errors import ModelError

logger = logging.getLogger(__name__)


def statement_of(text: str) -> str | None:
    """What the configured model makes of the text: one statement. May wait for it.

    None where it is too small for that, fails, or says nothing usable: then the text is best kept as it is.
    """
    complete = completer()
    if complete is None:
        return None
    try:
        statement = synthesize(complete, text)
    except ModelError as error:
        logger.warning("A text to remember was not rewritten: %s", error.code)
        return None
    return None if statement == text else statement
