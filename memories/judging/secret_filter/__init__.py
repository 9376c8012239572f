"""Find credentials in text, so that none is ever stored, and numbers of somebody's own, so that none is stored unasked.

Pure and linear: every quantifier is bounded or can only start where the previous attempt ended, and judging what they
find may read no more than the text is long. The worst of 139 kinds of hostile text costs about a third more per byte
than made-up prose of ASCII alone (tests/bench/bench_secret_filter.py). The finding says what kind it is and where it
stands; the credential or number itself is never kept or returned.
"""

from memories.judging.secret_filter import personal
from memories.judging.secret_filter.assignments import find_assignment
from memories.judging.secret_filter.encoded import find_encoded
from memories.judging.secret_filter.finding import Finding
from memories.judging.secret_filter.folding import fold, original_span
from memories.judging.secret_filter.shapes import find_shape
from memories.judging.secret_filter.version import RULES

__all__ = ["RULES", "Finding", "find_personal", "find_secret"]


def find_secret(text: str) -> Finding | None:
    """Return the first credential found in `text`, or None. Positions count characters of `text` as given.

    Recognisable shapes (a GitHub token, a private key, a URL with a password) are looked for first, then
    values that are called a secret by the words before them ("password = …", "API key: …").
    """
    folded = fold(text)
    finding = find_shape(folded) or find_assignment(folded) or find_encoded(folded)
    return _placed(finding, text, folded)


def find_personal(text: str) -> Finding | None:
    """Return the first number of a person's own in `text` (a card, a PIN, an account, an identity, a recovery code, a
    wallet's key), or None. Positions as of ``find_secret``, which does not look for these.
    """
    folded = fold(text)
    return _placed(personal.find_personal(folded), text, folded)


def _placed(finding: Finding | None, text: str, folded: str) -> Finding | None:
    """The finding where it stands in the text as given."""
    if finding is None or folded == text:
        return finding
    start, end = original_span(text, finding.start, finding.end)
    return Finding(finding.kind, start, end)
