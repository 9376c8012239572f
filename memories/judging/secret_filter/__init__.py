"""Find credentials in text, so that none is ever stored.

Pure and linear: every quantifier is bounded or can only start where the previous attempt ended, and judging what they
find may read no more than the text is long. The worst of 111 kinds of hostile text costs about what real talk does
per byte, and 1.2 times as much as made-up prose of ASCII alone (tests/bench/bench_secret_filter.py). The finding says
what kind of credential it is and where it stands; the credential itself is never kept or returned.
"""

from memories.judging.secret_filter.assignments import find_assignment
from memories.judging.secret_filter.finding import Finding
from memories.judging.secret_filter.folding import fold, original_span
from memories.judging.secret_filter.shapes import find_shape
from memories.judging.secret_filter.version import RULES

__all__ = ["RULES", "Finding", "find_secret"]


def find_secret(text: str) -> Finding | None:
    """Return the first credential found in `text`, or None. Positions count characters of `text` as given.

    Recognisable shapes (a GitHub token, a private key, a URL with a password) are looked for first, then
    values that are called a secret by the words before them ("password = …", "API key: …").
    """
    folded = fold(text)
    finding = find_shape(folded) or find_assignment(folded)
    if finding is None or folded == text:
        return finding
    start, end = original_span(text, finding.start, finding.end)
    return Finding(finding.kind, start, end)
