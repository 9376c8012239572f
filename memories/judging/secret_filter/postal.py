"""Postal codes that go by the name of a PIN: India's, of six digits."""

import re

_CODE = re.compile("[1-8][0-9]{5}")
_PLACE = re.compile(
    r"\b(?:area|postal|post|zip|city|town|locality|delivery)(?:'s)? pin|pin ?code \w{2,3} (?!my|our|the|your|a\b)"
    r"(?![^0-9]{0,24}\b(?:card|visa|bank|sim|phone|account|app|alarm|door|gate|safe|house|laptop|debit|credit)\b)[a-z]"
    r"|[0-9]{6} ?\((?!bank|card|sim|phone|door|alarm|home|work|safe)[a-z]{3,20}\)"
)


def is_postal(word: str, number: str, around: str) -> bool:
    """Whether `number`, announced by `word`, says where something is: by what stands `around` it (lower case)."""
    return word.startswith("pin") and bool(_CODE.fullmatch(number) and _PLACE.search(around))
