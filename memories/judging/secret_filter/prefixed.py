"""Keys of issuers that nobody listed: a short label, a sign and a long draw by chance, as in "acme_live_9fKq…".

Most services that started to issue keys in the last years follow this form so that scanners can tell them. Ids have
it too; they are shorter (24 characters at most services, and here), so a label that speaks of a credential makes a
short draw suspicious, any other label only a long one.
"""

import re

from memories.judging.secret_filter import values
from memories.judging.secret_filter.finding import Finding
from memories.judging.secret_filter.names import any_of

_TELLING = frozenset(
    any_of(
        """live test prod production sandbox sk pk rk ak pat key apikey api token tok tkn secret sec auth access
        oauth private priv server admin personal refresh session webhook bot deploy service"""
    ).split("|")
)
# Fingerprints of what everybody may know, and encodings that hold whole texts.
_FINGERPRINTS = frozenset(
    any_of(
        """sha sha1 sha224 sha256 sha384 sha512 md5 blake2b blake3 crc32 hash digest checksum commit rev revision
        git etag cid build image img photo screenshot video file chunk bundle layer blob tree v1 base64 urn uuid
        bc1 ltc1 addr1 did"""
    ).split("|")
)
_LONG, _SHORT = 28, 16
# A whole token: nothing of one stands before it, nor the "/" or "." of an address or a path.
_TOKEN = re.compile(
    r"(?<![\w/.@#-])(?P<labels>[A-Za-z][A-Za-z0-9]{0,15}[_-](?:[A-Za-z0-9]{1,12}[_-]){0,3}?)"
    r"(?P<body>(?=[A-Za-z]{0,300}+[0-9])[A-Za-z0-9_-]{16,300})(?![\w/@-]|\.[a-z0-9]{2,5}(?!\w))"
)
_PUBLIC_ID = re.compile(r"[a-z]{2,5}_[A-Za-z0-9]{24}")  # ours (see memoryhub.ids)
_DIGIT = re.compile("[0-9]")
_HEXADECIMAL = re.compile(r"[0-9a-f]+|[0-9A-F]+")


def find_prefixed(text: str) -> Finding | None:
    """Return the first token in `text` (folded) that is a label and a long draw."""
    harmless: set[str] = set()  # a text that repeats itself is judged once
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in harmless:
            continue
        if _is_key(token):
            return Finding("prefixed_key", match.start(), match.end())
        harmless.add(token)
    return None


def _is_key(token: str) -> bool:
    parts = token.replace("-", "_").split("_")
    long = [part for part in parts if len(part) >= _SHORT]
    if not long:
        return False
    labels = {*map(str.lower, parts)}
    enough = _LONG if labels.isdisjoint(_TELLING) else _SHORT
    if sum(map(len, long)) < enough or not labels.isdisjoint(_FINGERPRINTS):
        return False
    if "_" not in token and all(map(_HEXADECIMAL.fullmatch, long)):
        return False
    drawn = [part for part in long if _is_drawn(part)]
    if sum(map(len, drawn)) < enough or _PUBLIC_ID.fullmatch(token):
        return False
    return "_" in token or not all(map(_HEXADECIMAL.fullmatch, drawn))


def _is_drawn(part: str) -> bool:
    various = len(set(part)) > 5  # fewer cannot have the entropy of a draw
    return various and bool(_DIGIT.search(part)) and values.is_random(part, at_least=_SHORT)
