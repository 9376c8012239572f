"""Rewriting a text into one statement before it is stored, where the model can."""

from __future__ import annotations

import logging

from memories.judging.extraction.model import Complete, synthesize
from memoryhub.llm.errors import ModelError

logger = logging.getLogger(__name__)


def statement_of(text: str, complete: Complete | None) -> str | None:
    """What the model makes of the text: one statement. May wait for it.

    None where there is none able enough for that, or it fails or says nothing usable: then the text is kept as it is.
    """
    if complete is None:
        return None
    try:
        statement = synthesize(complete, text)
    except ModelError as error:
        logger.warning("A text to remember was not rewritten: %s", error.code)
        return None
    return None if statement == text else statement
