"""A hand-written corpus for the secret filter, split in two at random before its rules were written.

``python -m tests.memories.secret_corpus`` prints what is caught and what is refused wrongly, in either half.
"""

import random
from collections.abc import Sequence

from tests.memories.secret_corpus_hostile import CREDENTIALS, PERSONAL
from tests.memories.secret_corpus_talk import TALK

HALVES = ("tuned on", "held back")
_SEED = 20261122


def half(items: Sequence[str], which: str) -> list[str]:
    """Return the items of one of ``HALVES``, drawn by a fixed seed."""
    shuffled = sorted(items)
    random.Random(_SEED).shuffle(shuffled)
    middle = len(shuffled) // 2
    return shuffled[:middle] if which == HALVES[0] else shuffled[middle:]


def corpus(which: str) -> tuple[list[str], list[str], list[str]]:
    """Return credentials, personal numbers and talk of one half. Talk is drawn language by language."""
    talk = [line for lines in TALK.values() for line in half(lines, which)]
    return half(CREDENTIALS, which), half(PERSONAL, which), talk
