"""Credentials that the place they stand in gives away: a column called password, the half of a pair behind a login, an
argument of a call, the answer to "set-up key".

Each expression is anchored at something short that ordinary text has seldom; what belongs to it is looked up within a
bounded reach.
"""

from __future__ import annotations

import re

from memories.judging.secret_filter import names, values
from memories.judging.secret_filter.finding import Finding
from memories.judging.secret_filter.languages import column

_LOGIN = "|".join(column("login"))
_SECRET_WORD = rf"(?:pass|{names.PASSWORD})"
_VALUE = r"(?P<value>(?![$<{*\[%])[^\s\"'`,;|<>]{4,100})"

# "login: bob pass: …", "u: bob p: …": found by the word for the password; the login stands before it.
_PAIR = re.compile(rf"(?<=[\s,;/|])(?:{_SECRET_WORD}(?![a-z])(?:\s?[:=])?|p:)\s?{_VALUE}")
_LOGIN_BEFORE = re.compile(
    rf"(?:(?<![^\W_])(?:{_LOGIN})(?:\s?[:=]|\s)\s?[^\s:,;|]{{1,64}}|(?<![^\W_])u:\s?[^\s:]{{1,64}})"
    r"\s?[,;/|]?\s?(?:and |und |et |y |e )?\Z"
)
# "admin / …", "credentials: bob / …": found by the sign; the account stands before it.
_SLASH = re.compile(rf"[/:]\s?{_VALUE}")
_KNOWN = ("admin", "administrator", "root", "postgres", "superuser", "sysadmin")
_KNOWN_BEFORE = re.compile(rf"(?<![\w./@-])(?:{'|'.join(_KNOWN)})\s?\Z")
_CREDENTIALS = (
    "credential", "login", "zugang", "identifiants", "credenciales", "credenziali", "credenciais", "dane",
)  # fmt: skip
_CREDENTIALS_BEFORE = re.compile(
    rf"(?<![^\W_])(?:{'|'.join(_CREDENTIALS)})[a-z]{{0,8}}(?:\s?:|\s)\s?[^\s:/,;]{{1,64}}\s{{1,2}}\Z"
)
_BACK = 96  # characters before a sign in which the account stands
# A line of .pgpass: host, port, database, user and password, apart by colons.
_PGPASS = re.compile(
    r":(?:[0-9]{2,5}|\*)(?::(?=[a-z_*])[^\s:]{1,60}){2}:(?P<value>(?![$<{*])[^\s:]{4,100})[ \t]{0,3}(?:\n|\Z)"
)
# Two arguments and then the password, as of new PDO and of getConnection.
_ARGUMENT = r"(?:\"[^\"\n]{0,160}\"|'[^'\n]{0,160}'|[$@]?[\w.>\[\]-]{1,60})"
_POSITIONAL = re.compile(
    rf"\(\s?{_ARGUMENT},\s?{_ARGUMENT},\s?[\"'](?P<value>(?![$<{{*\"'])[^\"'\n]{{3,100}})[\"']"
)
_CONNECTS = ("pdo", "mysqli", "_connect", "getconnection", "dbi->connect", "ftp_login")
_TERRAFORM = re.compile(
    r"variable\s{1,4}\"(?=[^\"\n]{0,60}(?:passw|pwd|secret|token|key|credential))[^\"\n]{1,64}\"\s{0,4}\{[^}]{0,300}?"
    r"\bdefault\s{0,10}=\s{0,4}\"(?P<value>(?![$<{*\"])[^\"\n]{4,200})\""
)
_STORED = re.compile(
    r"secrets?(?:manager)?\b[^\n|;]{0,100}?\s(?:--(?:body|value|secret-string|secret)|-b)[ =][\"']?"
    r"(?P<value>(?![$<{*-])[^\s\"']{6,200})"
)
_SET_UP = re.compile(
    r"(?:2fa|mfa|totp|otp|two-?factor|authenticat|set-?up|secret|code|key|schlussel|cle|clave|chiave|sleutel|klucz)"
    r"[^\n]{0,32}?(?<![a-z0-9])(?P<value>(?=(?:[a-z2-7]{4} ){0,12}(?:[a-z]{1,3}[2-7]|[2-7]{1,3}[a-z]))"
    r"[a-z2-7]{4}(?: [a-z2-7]{4}){3,15})(?![a-z0-9])"
)
_CELL = rf"[ \t\"'*]{{0,4}}(?:{_SECRET_WORD}|secret|token|api[ _-]?key)[ \t\"'*]{{0,4}}"
_COLUMN = re.compile(rf"[|,;\t\n]{_CELL}(?=[|,;\t\n]|\Z)")
_DIGIT = re.compile("[2-7]")
_STRONG_SIGN = re.compile(r"[!@#$%^&*+=?~]")
_KINDS = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"))
_ROWS, _ROW, _HEADERS = 6, 600, 200  # rows that are looked at, their length, and headers that a text may have

_PLACES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("password", _PAIR),
    ("password", _PGPASS),
    ("password", _POSITIONAL),
    ("secret", _TERRAFORM),
    ("secret", _STORED),
    ("authenticator_key", _SET_UP),
)


def find_placed(text: str, lower: str) -> Finding | None:
    """Return the first credential in `text` (folded; `lower` the same in small letters) that its place gives away."""
    for kind, pattern in _PLACES:
        if pattern is _SET_UP and not _DIGIT.search(lower):
            continue
        for match in pattern.finditer(lower):
            start, end = match.span("value")
            value = values.trim(text[start:end], quoted=pattern in (_POSITIONAL, _TERRAFORM))
            if _is_one(pattern, match, value):
                return Finding(kind, start, start + len(value))
    return _find_behind_account(text, lower) or _find_in_column(text, lower)


def _is_one(pattern: re.Pattern[str], match: re.Match[str], value: str) -> bool:
    if pattern is _SET_UP:
        return True
    if len(value) < 4 or values.is_placeholder(value) or values.is_status(value):
        return False
    lower, start = match.string, match.start()
    if pattern is _POSITIONAL and not lower[max(start - 16, 0) : start].endswith(_CONNECTS):
        return False
    if pattern in (_POSITIONAL, _TERRAFORM, _PGPASS):
        return not values.is_path(value)
    if not values.is_mixed(value, at_least=5):
        return False
    if pattern is _PAIR:
        return bool(_LOGIN_BEFORE.search(lower[max(start - _BACK, 0) : start]))
    return True


def _find_behind_account(text: str, lower: str) -> Finding | None:
    """ "admin / …" and "credentials: bob / …". A text without any of these words is not looked through."""
    known, told = (any(map(lower.__contains__, words)) for words in (_KNOWN, _CREDENTIALS))
    for match in _SLASH.finditer(lower) if known or told else ():
        before = lower[max(match.start() - _BACK, 0) : match.start()]
        if not told and not _STRONG_SIGN.search(match["value"]):
            continue
        is_known = known and before.rstrip().endswith(_KNOWN) and _KNOWN_BEFORE.search(before)
        if not is_known and not (told and any(map(before.__contains__, _CREDENTIALS))):
            continue
        start, end = match.span("value")
        value = values.trim(text[start:end], quoted=False)
        if "/" in value or values.is_placeholder(value) or not values.is_mixed(value, at_least=5):
            continue
        if (is_known and _is_strong(value)) or (told and _CREDENTIALS_BEFORE.search(before)):
            return Finding("password", start, start + len(value))
    return None


def _is_strong(value: str) -> bool:
    """As rules for passwords ask for: no word or other part of a sentence that may follow an account's name."""
    if len(value) < 6 or not _STRONG_SIGN.search(value):
        return False
    return sum(bool(kind.search(value)) for kind in _KINDS) >= 2


def _find_in_column(text: str, lower: str) -> Finding | None:
    """A value in a column that its header calls a password, in Markdown, CSV and the like."""
    for number, header in enumerate(
        _COLUMN.finditer("\n" + lower)
    ):  # where a sign is in there its cell begins in `lower`
        if number == _HEADERS:
            return Finding("too_many_statements", *header.span())
        begun = max(
            lower.rfind("\n", max(header.start() - _ROW, 0), header.start()) + 1, header.start() - _ROW
        )
        line = lower[begun : _line_end(lower, header.end() - 1)]
        sign = next((sign for sign in "|\t;," if sign in line), "")
        if not sign:
            continue
        at, parts = lower.count(sign, begun, header.start()), line.count(sign)
        row = begun + len(line) + 1
        for _ in range(_ROWS):
            ending = _line_end(lower, row)
            cells = text[row:ending].split(sign)
            if row >= len(text) or len(cells) != parts + 1:
                break
            cell = cells[at].strip(" \t\"'`*")
            if values.is_mixed(cell, at_least=5) and not values.is_placeholder(cell) and " " not in cell:
                start = text.index(cell, row + sum(map(len, cells[:at])))
                return Finding("password", start, start + len(cell))
            row = ending + 1
    return None


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start, start + _ROW)
    return end if end >= 0 else min(len(text), start + _ROW)
