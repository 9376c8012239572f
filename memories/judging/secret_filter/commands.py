"""Credentials in the arguments of commands and in the addresses of database drivers, and recovery phrases."""

import re

from memories.judging.secret_filter.finding import Finding
from memories.judging.secret_filter.names import any_of

# Each expression is anchored at the flag or the sign, which is short; what must stand before it is looked up
# after.
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
_REACH = 120  # characters from a command to the flag that is its own
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
# Words that make a sentence of what would otherwise be a passphrase of plain words.
_SENTENCE_WORDS = frozenset(
    any_of(
        """the and must should has have not you your for with that this from are was can will need needs use
        using when were been its our their they them then than but did does don just only also too very who
        what where why how all
        """
    ).split("|")
)


def find_command_secret(lower: str) -> Finding | None:
    """Return the first credential given to a command, a driver or a wallet in `lower`, a folded lower-case
    text.
    """
    if finding := _find_flag(lower):
        return finding
    for match in _DRIVER.finditer(lower):
        end = match.start()
        colon = lower.rfind(":", max(0, end - 61), end)
        if colon > 0 and _DRIVER_PASSWORD.fullmatch(lower, colon + 1, end):
            user = _DRIVER_USER.search(lower, max(0, colon - 40), colon)
            return Finding("url_credentials", user.start() if user else colon, end)
    for kind, pattern in (
        ("url_credentials", _ORACLE),
        ("seed_phrase", _SEED_PHRASE),
    ):
        if found := pattern.search(lower):
            return Finding(kind, found.start(), found.end())
    for match in _KUBERNETES.finditer(lower):
        if _KIND_SECRET.search(lower, max(0, match.start() - 400), match.start()):
            return Finding("kubernetes_secret", match.start(), match.end())
    for match in _PASSPHRASE.finditer(lower):
        if not _SENTENCE_WORDS & set(re.split("[ -]", match["words"])):
            return Finding("password", match.start("words"), match.end("words"))
    return None


def _find_flag(lower: str) -> Finding | None:
    """Return the first password given to a command by a flag ("mysql -p…", "curl -u name:…")."""
    ends: dict[str | None, int] = {}  # where the last command of each sort ended
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
            given = flag["user"] is None if sort == "password" else _WITH_USER.fullmatch(flag["value"])
            if not given:
                continue
            if start - end < _REACH and not _BREAK.search(lower, end + 1, start):
                return Finding("command_password", *flag.span("value"))
            del ends[sort]
    return None
