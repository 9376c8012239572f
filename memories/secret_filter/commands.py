"""Credentials in the arguments of commands and in the addresses of database drivers, and recovery phrases."""

import re

from memories.secret_filter.finding import Finding
from memories.secret_filter.names import any_of

# Each expression is anchored at the flag or the sign, which is short; what must stand before it is looked up
# after.
_FLAG = re.compile(r"\s(?:-u|--user|-p|-a)[ =]?[\"']?(?![$<{*\-])(?P<value>[^\s\"']{4,200})")
_WITH_USER = re.compile(r"[^:]{0,64}:(?![$<{*/]|[0-9]{2,5}$)\S{3,}")
_COMMAND_USER = re.compile(r"\b(?:curl|wget|http|https|xh)\s[^\n|;]*\Z")
_COMMAND_PASSWORD = re.compile(
    rf"\b(?:{any_of('mysql mysqldump mysqladmin mariadb sshpass redis-cli mongosh mongo')}|(?:docker|"
    rf"podman) login)"
    r"\s[^\n|;]*\Z"
)
_DRIVER = re.compile(r"@(?:tcp|unix)\(")
_DRIVER_USER = re.compile(r"[\w.-]{1,40}:(?![$<{*])[^\s@/:\"']{3,60}\Z")
_ORACLE = re.compile(r"jdbc:oracle:thin:[\w.-]{1,64}/(?![$<{*])([^\s@/\"']{1,100})@")
_SEED_PHRASE = re.compile(
    rf"(?:(?:{any_of('seed recovery mnemonic secret backup wallet')})[ _-](?:phrase|words|seed)|mnemonic)"
    r"[^a-z\n]{0,6}(?:is|are)?[^a-z\n]{0,6}\n?(?:[a-z]{3,8}[ ,]{1,2}){11}[a-z]{3,8}"
)
_KUBERNETES = re.compile(
    r"\bdata:\s{1,10}[\w.-]{1,60}: ?[\"']?[a-z0-9+/]{12,1000}={0,2}[\"']?\s{0,3}(?:\n|\Z)"
)
_KIND_SECRET = re.compile(r"kind: ?[\"']?secret[\"']?\s")
_PASSPHRASE = re.compile(
    r"(?:pass ?phrase|password|passwort)[\"']?\s{0,2}(?:[:=]|is:?)\s{0,3}[\"'`]?"
    r"(?P<words>(?:[a-z]{3,10}[ -]){3,7}[a-z]{3,10})[\"'`]?\s{0,2}(?:[.!\n]|\Z)"
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
    for match in _FLAG.finditer(lower):
        before = lower[max(0, match.start() - 120) : match.start()] + " "
        if _WITH_USER.fullmatch(match["value"]) and _COMMAND_USER.search(before):
            return Finding("command_password", match.start("value"), match.end("value"))
        if match.group()[1:3] in ("-p", "-a") and _COMMAND_PASSWORD.search(before):
            return Finding("command_password", match.start("value"), match.end("value"))
    for match in _DRIVER.finditer(lower):
        start = max(0, match.start() - 101)
        if user := _DRIVER_USER.search(lower, start, match.start()):
            return Finding("url_credentials", user.start(), user.end())
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
