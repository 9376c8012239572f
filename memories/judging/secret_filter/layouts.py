"""Credentials recognized by their position: in columns, pairs, command arguments and recovery phrases."""

import re
from functools import cache

from mnemonic import Mnemonic

from memories.judging.secret_filter import terms, values
from memories.judging.secret_filter.terms import Finding, any_of, column, fold

_LOGIN = "|".join(column("login"))
_SECRET_WORD = rf"(?:pass|{terms.PASSWORD})"
_VALUE = r"(?P<value>(?![$<{*\[%])[^\s\"'`,;|<>]{4,100})"

# "login: bob pass: …", "u: bob p: …": search for the word for the password, then for the login before it.
_PAIR = re.compile(rf"(?<=[\s,;/|])(?:{_SECRET_WORD}(?![a-z])(?:\s?[:=])?|p:)\s?{_VALUE}")
_LOGIN_BEFORE = re.compile(
    rf"(?:(?<![^\W_])(?:{_LOGIN})(?:\s?[:=]|\s)\s?[^\s:,;|]{{1,64}}|(?<![^\W_])u:\s?[^\s:]{{1,64}})"
    r"\s?[,;/|]?\s?(?:and |und |et |y |e )?\Z"
)
# "admin / …", "credentials: bob / …": search for the sign, then for the account before it.
_SLASH = re.compile(rf"[/:]\s?{_VALUE}")
_KNOWN = ("admin", "administrator", "root", "postgres", "superuser", "sysadmin")
_KNOWN_BEFORE = re.compile(rf"(?<![\w./@-])(?:{'|'.join(_KNOWN)})\s?\Z")
_CREDENTIALS = (
    "credential", "login", "zugang", "identifiants", "credenciales", "credenziali", "credenciais", "dane",
)  # fmt: skip
_CREDENTIALS_BEFORE = re.compile(
    rf"(?<![^\W_])(?:{'|'.join(_CREDENTIALS)})[a-z]{{0,8}}(?:\s?:|\s)\s?[^\s:/,;]{{1,64}}\s{{1,2}}\Z"
)
_BACK = 96  # characters before a sign that may contain the account
# A line of .pgpass: host, port, database, user and password, separated by colons.
_PGPASS = re.compile(
    r":(?:[0-9]{2,5}|\*)(?::(?=[a-z_*])[^\s:]{1,60}){2}:(?P<value>(?![$<{*])[^\s:]{4,100})[ \t]{0,3}(?:\n|\Z)"
)
# Two arguments and then the password, as in new PDO and getConnection.
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
# "… is my password", "use … as password": search for the verb, then for the value before it.
_SAID_AFTER = re.compile(
    rf"(?<=\s)(?:{terms.EQUALS}|als|como|comme|come) (?:[^\W\d_]{{1,8}}+ ){{0,2}}(?:{terms.PASSWORD})(?![^\W_])"
)
_FOR_WHAT = re.compile(rf" (?:{terms.OF}|here|there|now|too)(?!\w)")
_WIFI = re.compile(r"(?<![^\W_])wifi:(?:[a-z0-9]{1,4}:[^;\n]{0,64};){0,5}?p:(?P<value>[^;\n]{4,64});")
_QUERY = re.compile(r"[?&](?:key|auth|sig)=(?P<value>[\w-]{20,200})")
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
_ROWS, _ROW, _HEADERS = 6, 600, 200  # rows read below a header, characters per row, and headers per text

_PLACES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("password", _PAIR),
    ("password", _PGPASS),
    ("password", _POSITIONAL),
    ("secret", _TERRAFORM),
    ("secret", _STORED),
    ("authenticator_key", _SET_UP),
    ("password", _WIFI),
    ("secret", _QUERY),
)


def find_placed(text: str, lower: str) -> Finding | None:
    """Return the first credential in `text` (folded; `lower`: in lower case) that its position reveals, or None."""
    for kind, pattern in _PLACES:
        if pattern is _SET_UP and not _DIGIT.search(lower):
            continue
        for match in pattern.finditer(lower):
            start, end = match.span("value")
            value = values.trim(text[start:end], quoted=pattern in (_POSITIONAL, _TERRAFORM))
            if _is_one(pattern, match, value):
                return Finding(kind, start, start + len(value))
    return _find_said_after(text, lower) or _find_behind_account(text, lower) or _find_in_column(text, lower)


def _is_one(pattern: re.Pattern[str], match: re.Match[str], value: str) -> bool:
    if pattern is _SET_UP:
        return True
    if len(value) < 4 or values.is_placeholder(value) or values.is_status(value):
        return False
    lower, start = match.string, match.start()
    if pattern is _POSITIONAL and not lower[max(start - 16, 0) : start].endswith(_CONNECTS):
        return False
    if pattern is _WIFI:
        return True
    if pattern is _POSITIONAL or pattern is _TERRAFORM or pattern is _PGPASS:
        return not values.is_path(value)
    if pattern is _QUERY:
        return values.is_random(value, at_least=20)
    if not values.is_mixed(value, at_least=5):
        return False
    if pattern is _PAIR:
        return bool(_LOGIN_BEFORE.search(lower[max(start - _BACK, 0) : start]))
    return True


def _find_said_after(text: str, lower: str) -> Finding | None:
    """Return the value before "… is my password", unless it could be a word of a sentence."""
    for match in _SAID_AFTER.finditer(lower):
        before = text[max(match.start() - _BACK, 0) : match.start()].rstrip(" \"'`*,)")
        word = before[max(before.rfind(" "), before.rfind("\n")) + 1 :].lstrip("\"'`*(")
        if not values.may_be_random(word) and not _STRONG_SIGN.search(word):
            continue
        value = values.trim(word, quoted=False)
        harmless = values.is_technical(value) or values.is_placeholder(value)
        if harmless or not values.is_mixed(value, at_least=5):
            continue
        after = lower[match.end() : match.end() + 8]
        if values.ends_statement(after) or _FOR_WHAT.match(after):
            start = text.rindex(value, 0, match.start())
            return Finding("password", start, start + len(value))
    return None


def _find_behind_account(text: str, lower: str) -> Finding | None:
    """Return the value after "admin / …" or "credentials: bob / …"."""
    known, named = (any(map(lower.__contains__, words)) for words in (_KNOWN, _CREDENTIALS))
    for match in _SLASH.finditer(lower) if known or named else ():
        before = lower[max(match.start() - _BACK, 0) : match.start()]
        bare = match.group()[0] == ":" and match.start("value") == match.start() + 1 and before[-1:].isalpha()
        if not named and not (bare or _STRONG_SIGN.search(match["value"])):
            continue
        is_known = known and before.rstrip().endswith(_KNOWN) and _KNOWN_BEFORE.search(before)
        if not is_known and not (named and any(map(before.__contains__, _CREDENTIALS))):
            continue
        start, end = match.span("value")
        value = values.trim(text[start:end], quoted=False)
        if "/" in value or values.is_placeholder(value) or not values.is_mixed(value, at_least=5):
            continue
        if bare and is_known and _is_login(before, value):
            return Finding("password", start, start + len(value))
        if (is_known and _is_strong(value)) or (named and _CREDENTIALS_BEFORE.search(before)):
            return Finding("password", start, start + len(value))
    return None


def _is_login(before: str, value: str) -> bool:
    """Return whether it is a login such as "admin:admin123", not "postgres:16-alpine" or "root:x:0:0"."""
    if before.endswith("postgres") or ":" in value or not value[0].isalpha():
        return False
    return any(char.isdigit() for char in value) and not values.is_technical(value)


def _is_strong(value: str) -> bool:
    """Return whether the value has six characters, a symbol and two kinds of letters or digits, unlike plain words."""
    if len(value) < 6 or not _STRONG_SIGN.search(value):
        return False
    return sum(bool(kind.search(value)) for kind in _KINDS) >= 2


def _find_in_column(text: str, lower: str) -> Finding | None:
    """Return the first value of a column headed "password" in a Markdown table, CSV or similar table."""
    # With the added "\n", a match begins where the cell begins in `lower`.
    for number, header in enumerate(_COLUMN.finditer("\n" + lower)):
        if number == _HEADERS:
            return Finding("too_many_statements", *header.span())
        first = header.start() - _ROW
        begun = max(lower.rfind("\n", max(first, 0), header.start()) + 1, first)
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


# Credentials in command arguments and in addresses of database drivers, and recovery phrases.

# Each expression matches only the short flag or sign; the text required before it is checked afterwards.
_FLAG = re.compile(
    r"\s(?:(?P<user>-u|--user)|-[pa])[ =]?[\"']?(?![$<{*\-])(?(user)(?=[^\s\"':]{0,64}+:))(?P<value>[^\s\"']{4,200})"
)
_WITH_USER = re.compile(r"[^:]{0,64}:(?![$<{*/]|[0-9]{2,5}$)\S{3,}")
_COMMAND = re.compile(
    r"\b(?:(?P<user>curl|wget|https?|xh)|(?P<password>"
    rf"{any_of('mysql mysqldump mysqladmin mariadb sshpass redis-cli mongosh mongo')}|(?:docker|podman) login))"
    r"(?=\s)"
)
_BREAK = re.compile(r"[\n|;]")
_REACH = 120  # maximum characters from a command to its flag
_DRIVER = re.compile(r"@(?:tcp|unix)\(")
_DRIVER_PASSWORD = re.compile(r"(?<=[\w.-]:)(?![$<{*])[^\s@/\"']{3,60}")
_DRIVER_USER = re.compile(r"[\w.-]{1,40}\Z")
_ORACLE = re.compile(r"jdbc:oracle:thin:[\w.-]{1,64}/(?![$<{*])([^\s@/\"']{1,100})@")
_SEED_PHRASE = re.compile(
    rf"(?:(?:{any_of('seed recovery mnemonic secret backup wallet')})[ _-](?:phrase|words|seed)|mnemonic)"
    r"[^a-z\n]{0,6}(?:is|are)?[^a-z\n]{0,6}\n?(?:[a-z]{3,8}+[ ,]{1,2}){11}[a-z]{3,8}"
)
_KUBERNETES = re.compile(
    r"\bdata:\s{1,10}[\w.-]{1,60}: ?[\"']?[a-z0-9+/]{12,1000}+={0,2}[\"']?\s{0,3}(?:\n|\Z)"
)
_KIND_SECRET = re.compile(r"kind: ?[\"']?secret[\"']?\s")
_PASSPHRASE = re.compile(
    r"(?:pass ?phrase|password|passwort)[\"']?\s{0,2}(?:[:=]|is:?)\s{0,3}[\"'`]?"
    r"(?P<words>(?:[a-z]{3,10}+[ -]){3,7}[a-z]{3,10}+)[\"'`]?\s{0,2}(?:[.!\n]|\Z)"
)
# Words that show a sentence, where plain words would otherwise count as a passphrase.
_SENTENCE_WORDS = frozenset(
    any_of(
        """the and must should has have not you your for with that this from are was can will need needs use
        using when were been its our their they them then than but did does don just only also too very who
        what where why how all
        """
    ).split("|")
)


def find_command_secret(lower: str) -> Finding | None:
    """Return the first credential of a command, database driver or wallet in `lower`, a folded text in lower case."""
    if finding := _find_flag(lower):
        return finding
    for match in _DRIVER.finditer(lower):
        end = match.start()
        colon = lower.rfind(":", max(0, end - 61), end)
        if colon > 0 and _DRIVER_PASSWORD.fullmatch(lower, colon + 1, end):
            user = _DRIVER_USER.search(lower, max(0, colon - 40), colon)
            return Finding("url_credentials", user.start() if user else colon, end)
    for kind, pattern in (("url_credentials", _ORACLE), ("seed_phrase", _SEED_PHRASE)):
        if secret_match := pattern.search(lower):
            return Finding(kind, secret_match.start(), secret_match.end())
    for match in _KUBERNETES.finditer(lower):
        if _KIND_SECRET.search(lower, max(0, match.start() - 400), match.start()):
            return Finding("kubernetes_secret", match.start(), match.end())
    for match in _PASSPHRASE.finditer(lower):
        if not _SENTENCE_WORDS & set(re.split("[ -]", match["words"])):
            return Finding("password", match.start("words"), match.end("words"))
    return None


def _find_flag(lower: str) -> Finding | None:
    """Return the first password passed to a command by a flag ("mysql -p…", "curl -u name:…")."""
    ends: dict[str | None, int] = {}  # the end of the last command of each sort
    commands = _COMMAND.finditer(lower)
    command: re.Match[str] | None = None
    for flag in _FLAG.finditer(lower):
        start = flag.start()
        command = command or next(commands, None)
        while command and command.end() <= start:
            ends[command.lastgroup] = command.end()
            command = next(commands, None)
        if not command and not ends:
            return None
        for sort, end in [*ends.items()] if ends else ():
            has_password = flag["user"] is None if sort == "password" else _WITH_USER.fullmatch(flag["value"])
            if not has_password:
                continue
            if start - end < _REACH and not _BREAK.search(lower, end + 1, start):
                return Finding("command_password", *flag.span("value"))
            del ends[sort]
    return None


# The seed words of a wallet: twelve or more consecutive words of one BIP-39 list, which speech never has.

# Languages that separate words by spaces.
_LISTS = ("english", "spanish", "french", "italian", "portuguese", "czech")
_LEAST = 12  # words of the shortest phrase
_DIFFERENT = 8  # minimum number of different words among these, since a random phrase rarely repeats one
_STEP = _LEAST // 2  # only every sixth word is looked up, so at least two of each phrase are
_MOST = 200  # runs of listed words judged per text; a text with more, such as a word list, is refused
_WORD = re.compile("[a-z]+")
# Separators of two words: white space, a comma, a hyphen, the number of the next word.
_BETWEEN = re.compile(r"[\s,;.|()-]{0,6}(?:[0-9]{1,2}[\s.):-]{1,3})?")


@cache
def _listed() -> dict[str, frozenset[str]]:
    """Return the folded BIP-39 words of each language, loaded on first use."""
    return {language: frozenset(map(fold, Mnemonic(language).wordlist)) for language in _LISTS}


@cache
def _any() -> frozenset[str]:
    return frozenset[str]().union(*_listed().values())


def find_seed_words(lower: str) -> Finding | None:
    """Return the first seed phrase of a wallet in `lower`, a folded text in lower case, or None."""
    listed = _any()
    words = _WORD.findall(lower)
    places: list[re.Match[str]] = []
    at = judged = 0
    while at + _STEP < len(words):
        if words[at] in listed and words[at + _STEP] in listed and _run(words, at) >= _DIFFERENT:
            places = places or list(_WORD.finditer(lower))
            near = places[max(at - _STEP, 0) : at + 2 * _LEAST]
            for words_of in _listed().values():
                known = words_of.issuperset(words[at : at + _STEP])
                if known and (finding := _phrase(lower, near, words_of)):
                    return finding
            judged += 1
            if judged > _MOST:
                return Finding("too_many_statements", near[0].start(), near[-1].end())
            at += _STEP
        at += _STEP
    return None


def _run(words: list[str], at: int) -> int:
    """Return the number of different words in the run of listed words around index ``at``, or 0 if it is too short."""
    listed, first, last = _any(), at, at
    while first and at - first < _LEAST and words[first - 1] in listed:
        first -= 1
    while last < len(words) and last - at < _LEAST and words[last] in listed:
        last += 1
    return len(set(words[first:last])) if last - first >= _LEAST else 0


def _phrase(lower: str, places: list[re.Match[str]], listed: frozenset[str]) -> Finding | None:
    run: list[re.Match[str]] = []
    for place in places:
        if place.group() not in listed:
            run = []
            continue
        joined = run and _BETWEEN.fullmatch(lower, run[-1].end(), place.start())
        run = [*run[1 - _LEAST :], place] if joined else [place]
        if len(run) == _LEAST and len({word.group() for word in run}) >= _DIFFERENT:
            return Finding("seed_phrase", run[0].start(), place.end())
    return None
