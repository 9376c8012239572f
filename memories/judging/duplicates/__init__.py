"""Tell an honest rewording of a statement from one that says something else in nearly the same words.

Cosine similarity cannot: "the launch is on March 15" and "the launch is on March 16" are closer to each other
than most rewordings are. `may_merge` is the guard beside it. It is pure, symmetric and careful: in doubt it
says no, and two statements are kept where one would have done.
"""

import re
import unicodedata

from memories.judging.duplicates.differences import differs
from memories.judging.duplicates.reading import read

__all__ = ["may_merge", "normalise"]

_BLANKS = re.compile(r"\s+")
_TRAILING = ".!;,:… \u3002"


def normalise(text: str) -> str:
    """Return the form in which two texts are compared for equality and hashed: NFKC, case folded, single
    blanks, no punctuation at the end. A question mark stays, since it changes what is said.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _BLANKS.sub(" ", folded).strip().rstrip(_TRAILING)


def may_merge(a: str, b: str) -> bool:
    """True when `a` and `b`, already known to be near by their vectors, may be kept as one statement.

    False when they differ in a number, a unit, a date or time, a negation, a name, who does what to whom, an
    opposite, or one replaced slot of one or two words that are no known synonyms.
    """
    if normalise(a) == normalise(b):
        return True
    return not differs(read(a), read(b))
