"""Tests of whether a value looks like a credential, a word, a placeholder or a piece of code."""

import math
import re

from memories.judging.secret_filter.terms import any_of

# Placeholders that documentation and code use instead of real values.
_PLACEHOLDER = re.compile(
    r"[<{\[(].*|\$[{(].*|\$[A-Za-z_]+|%(?:\(.*|[A-Za-z_]+%?)|&[a-z_]+|[*x.\-_•·?#0]{3,}|(?:n/a|none|null|"
    r"nil|true|false|undefined|tbd|todo|xxx+)|"
    r"(?:your|my|the|some|an?|example|sample|dummy|fake|insert|enter|put|replace)[-_].*",
    re.IGNORECASE,
)
_YOURS = re.compile(r"your[-_]?(?:password|token|key|secret|api)")
_NAMES_ITSELF = re.compile(
    r"(?:[a-z]{1,12}[_.-]?)?(?:password|passwd|passphrase|pwd|pass|secret|token|key|credentials?|value|"
    r"str|string)s?",
    re.I,
)
_TYPES = any_of(
    """await new not if return lambda func function async const let var str string bool int bytes char varchar
    text any optional"""
)
_CODE = re.compile(
    r"[A-Za-z_][\w.:]{0,60}[(\[].*|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:[(\[].*)?"
    rf"|(?:os|process|env|config|settings|self|this)\..*|(?:{_TYPES})(?:[|\[(].*)?",
    re.IGNORECASE | re.DOTALL,
)
_STANDARDS = any_of(
    """sha md aes rsa oauth bcrypt scrypt argon pbkdf base utf http web ipv rfc iso ed x hs rs es erc v mfa
    2fa 1password tls ssl windows win ios android python postgres mp covid gpt phase step version level
    chapter page part
    """
)
_TECHNICAL = re.compile(rf"(?:{_STANDARDS})[-_ ]?[0-9]|1password", re.IGNORECASE)
_FILE = any_of("py js ts json ya?ml txt md html? pem key env com org net io")
_PATH = re.compile(rf"(?:\.{{0,2}}/|~/|[A-Za-z]:\\|https?:)|.*\.(?:{_FILE})$", re.IGNORECASE)
_DURATION = re.compile(
    r"[0-9]{1,4}(?:st|nd|rd|th|s|x|am|pm|min|mins|h|hrs|hours|days|chars|characters|digits|letters|-\w+)",
    re.IGNORECASE,
)
_OTHER_KEYS = any_of(
    """primary foreign public pub sort partition range object cache idempotency dedup(?:e|lication)? lookup row
    index unique natural surrogate composite hash map dict json translation i18n s3 group order query route
    storage[_-]object file answer"""
)
_OTHER_KEY = re.compile(rf"(?<![a-z])(?:{_OTHER_KEYS})[_-]key", re.IGNORECASE)
_STATUS = frozenset(
    any_of(
        """done changed change reset required optional string text yes no true false null none unknown
        forgotten forgot expired invalid incorrect wrong correct hidden redacted removed empty blank
        missing set unset tbd todo same default any undefined encrypted hashed protected stored saved okay
        weak strong updated ready disabled enabled needed field input here below above check please sent
        confirmed accepted rejected failed success successful succeeded unchanged pending works working
        fixed compromised leaked secure insecure long short safe unsafe complete completed good great
        perfect never always sometimes maybe everything nothing something anything varchar bytes boolean
        integer number login authentication security privacy logout username email account profile settings
        options help bearer basic jwt
        """
    ).split("|")
)
# Words, numbers and words with a short number, joined by separators or in camelCase.
_SEPARATOR = r"[-_./:+,@]"
_WORDS = re.compile(
    rf"{_SEPARATOR}*(?:(?:[A-Z]?[a-z]+|[A-Z]{{1,8}}[a-z]?|[A-Za-z][a-z]*[0-9]{{1,4}}|v?[0-9]{{1,6}}"
    rf"|[0-9]{{1,3}}(?:[a-z]|(?<![a-z])[A-Z]){{1,5}})(?:{_SEPARATOR}+|(?<=[a-z])(?=[A-Z])|\Z))*+"
)
_LONG_PART = re.compile(r"[^-_./:+,@]{20}")
_NEXT_FIELD = re.compile(r"[,;|]|&(?=\w+=)")
_ENCODED_QUOTE = re.compile(r"%22|&quot;|&#39;")
# Scripts that may follow a value without a space.
_JOINED = re.compile("[\u1100-\u11ff\u3040-\u30ff\u4e00-\u9fff]")
_DIGIT, _LETTER, _SYMBOL = re.compile(r"\d"), re.compile(r"[^\W\d_]"), re.compile(r"[!@#$%^&*+=?~|]")
_ENDS = re.compile(r"[\"'`*_)\]}]{0,4}\s{0,3}(?:$|[\n,;!|#]|\.(?:\s|$)|</|and |but |\(|-- |//)")
_IDENTIFIER = re.compile(
    r"^--|[A-Z0-9]_[A-Z0-9]|[a-z0-9]_[a-z]|[a-z][A-Z]|(?:client|api|access|auth|private|app)-[a-z]|(?i:x-)[A-Za-z]"
)


def trim(value: str, *, quoted: bool) -> str:
    """Return the value without adjacent signs of the sentence or code, such as a full stop or a bracket."""
    if not quoted and (following := _NEXT_FIELD.search(value)):
        value = value[: following.start()]
    if ("%" in value or "&" in value) and (closing_quote := _ENCODED_QUOTE.search(value)):
        value = value[: closing_quote.start()]
    value = value.rstrip("\\")
    if quoted:
        return value
    if value and value[0] <= "~" < value[-1] and (joined := _JOINED.search(value)):
        value = value[: joined.start()]
    value = value.rstrip(".,;:!?*_")
    for opening, closing in ("()", "[]", "{}"):
        while value.endswith(closing) and value.count(closing) > value.count(opening):
            value = value[:-1].rstrip(".,;:")
    return value


def is_placeholder(value: str) -> bool:
    """Return whether the value is a placeholder such as <token>, ${TOKEN}, ****** or your-key-here."""
    lower = value.lower()
    return bool(
        value.endswith("...")
        or _PLACEHOLDER.fullmatch(value)
        or "redacted" in lower
        or "placeholder" in lower
        or lower.endswith(("_here", "-here"))
        or ("your" in lower and _YOURS.search(lower))
        or _NAMES_ITSELF.fullmatch(value.rstrip("=:"))
    )


def is_code(value: str, rest: str) -> bool:
    """Return whether the value is an expression or a type, not a literal. ``rest``: the text after it."""
    return bool(_CODE.fullmatch(value)) or (value.isidentifier() and rest[:1] in ("(", "["))


def is_path(value: str) -> bool:
    """Return whether the value is a file, a folder or a URL, which may locate a secret but is none."""
    return bool(_PATH.match(value))


def names_no_secret(name: str) -> bool:
    """Return whether the name is a key of a table, store or cache: primary_key, cache-key, idempotency_key."""
    return bool(_OTHER_KEY.search(name))


def is_status(value: str) -> bool:
    """Return whether the value is a word for a state, as in "reset password: done"."""
    return value.lower() in _STATUS


def is_technical(value: str) -> bool:
    """Return whether the value begins like the name of an algorithm, standard or product with letters and digits."""
    return bool(_TECHNICAL.match(value))


def is_identifier(name: str) -> bool:
    """Return whether a name is written as in code (API_KEY, client_secret, accessToken) and not as in speech."""
    return bool(_IDENTIFIER.search(name))


def ends_statement(rest: str) -> bool:
    """Return whether ``rest``, the text after a value, begins with the end of a line, clause or sentence."""
    return bool(_ENDS.match(rest))


def is_mixed(value: str, *, at_least: int) -> bool:
    """Return whether letters are mixed with digits or symbols, as in hunter2 or S!mple, not as in well-known or 2nd."""
    if len(value) < at_least or is_path(value):
        return False
    has_digit = bool(_DIGIT.search(value))
    has_symbol = bool(_SYMBOL.search(value, 0, len(value) - 1))
    if not _LETTER.search(value):
        return has_digit and has_symbol and len(value) >= 6
    return (has_digit or has_symbol) and not _DURATION.fullmatch(value)


def is_word(value: str) -> bool:
    """Return whether every part of the value is a word, a number or a word with a short number: user-v2-settings."""
    return bool(_WORDS.fullmatch(value))


def is_random(value: str, *, at_least: int) -> bool:
    """Return whether the value looks randomly generated. ``at_least`` is the minimum length.

    It has letters and high entropy, and is no path. It has a digit or letters of both cases, and is not made of words,
    unless a part has 20 characters or more.
    """
    if len(value) < at_least or is_path(value) or not may_be_random(value) or not _LETTER.search(value):
        return False
    return bool(_LONG_PART.search(value) or not is_word(value)) and has_entropy(value)


def may_be_random(value: str) -> bool:
    """Return whether the value has a digit, both cases or a long part, without which it is not random."""
    return bool(
        _DIGIT.search(value)
        or (value != value.lower() and value != value.upper())
        or _LONG_PART.search(value)
    )


def has_entropy(value: str) -> bool:
    """Return whether the value's Shannon entropy is that of a random one: 2.5 bits per character, less if short."""
    size = len(value)
    repeats = sum(count * math.log2(count) for count in map(value.count, set(value)) if count > 1)
    return math.log2(size) - repeats / size >= min(2.5, math.log2(size) - 0.8) - 1e-9
