"""The guard that tells a rewording of a statement from a similar one with another meaning.

Cosine similarity cannot: "the launch is on March 15" and "the launch is on March 16" are closer to each other than most
rewordings are. `may_merge` is symmetric and does not access the database. When in doubt it returns False, so that both
statements are kept.
"""

import re
import unicodedata

from memories.judging.duplicates.alignment import (
    cosine,
    head,
    measure,
    same_words,
    values_differ,
    values_of,
    words_of,
)
from memories.judging.duplicates.roles import (
    roles_differ,
    states_differ,
    with_parties_in_order,
    without_speaker,
)
from memories.judging.encoder import Encoder, logits

__all__ = ["may_merge", "normalise"]

_BLANKS = re.compile(r"\s+")
_TRAILING = ".!;,:… \u3002"
_USER = re.compile(  # the subject that extraction adds in the language of the message, but a tool may leave out
    r"(?:(?:the )?user(?:['\u2019]s)?|(?:der|die) (?:be)?nutzer(?:in)?|el usuario|la usuaria|l['\u2019]utente"
    r"|l['\u2019]utilisat(?:eur|rice)|[oa] usuári[oa]|o utilizador|de gebruiker|пользователь(?:ница)?|المستخدم) "
    r"|(?:用户|使用者|ユーザー[はが]?)\s*|사용자[는가]? ",
    re.IGNORECASE,
)


def normalise(text: str) -> str:
    """Return the form in which texts are compared and hashed: NFKC, case-folded, single spaces, no closing punctuation.

    A question mark is kept, since it changes the meaning.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _BLANKS.sub(" ", folded).strip().rstrip(_TRAILING)


def may_merge(a: str, b: str, encoder: Encoder | None, *, least: float = 0.0, likely: bool = False) -> bool:
    """Return whether `a` and `b`, which have similar vectors, may be stored as one statement.

    Return False if they differ in a number, a date, a day, who does what to whom or whether it still holds. Otherwise a
    small network, fitted on rewordings and edits in seven languages, judges the alignment of their words. Without an
    encoder, only texts with the same words merge. `least` is the minimum cosine by this encoder. `likely` lowers the
    threshold to a probability of one half, for suggestions that a person decides about. Costs two texts encoded. Raises
    EmbedderError if the encoder fails.
    """
    if bool(_USER.match(a)) != bool(_USER.match(b)):
        a, b = _USER.sub("", a, count=1), _USER.sub("", b, count=1)
    if normalise(a) == normalise(b):
        return True
    if encoder is None:
        return False
    a = with_parties_in_order(a, b)
    if normalise(a) == normalise(b):
        return True
    if ("?" in a) != ("?" in b) or values_differ(values_of(a), values_of(b)) or states_differ(a, b):
        return False
    read_a, read_b = map(words_of, encoder.states([a, b]))
    if not read_a.words or not read_b.words:
        return False
    if without_speaker(read_a.words) == without_speaker(read_b.words):
        return True
    if roles_differ(read_a, read_b):
        return False
    if same_words(read_a, read_b):
        return True
    if cosine(read_a.whole, read_b.whole) < least:
        return False
    fitted = head()
    measured = (measure(read_a, read_b) - fitted["mean"]) / fitted["scale"]
    return bool(logits(measured[None], fitted).mean() > (0.0 if likely else fitted["floor"]))
