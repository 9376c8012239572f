"""Typed reading of environment variables. Invalid values raise ImproperlyConfigured, which names the variable."""

import json
import os
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from memoryhub.llm.metering import MOST_PRICE, Price

T = TypeVar("T")
TRUE = frozenset({"1", "true", "yes", "on"})
# libpq options for servers with a failover: a lost server is noticed in seconds instead of minutes.
SOON = {
    "connect_timeout": "3",
    "tcp_user_timeout": "5000",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "2",
}
FALSE = frozenset({"0", "false", "no", "off"})
LIBPQ_NAMES = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}


class Environment:
    """A reader of variables ``PREFIX_NAME`` or files that ``PREFIX_NAME_FILE`` names. Blank ones give the default."""

    def __init__(self, prefix: str, source: Mapping[str, str] | None = None) -> None:
        self.prefix = prefix
        self.source = os.environ if source is None else source
        self._known: set[str] = set()

    def refuse_unknown(self, *others: str) -> None:
        """Raise ImproperlyConfigured if a set variable with the prefix was never read and is not in ``others``."""
        known = sorted(
            self._known | {f"{self.prefix}{name}{end}" for name in others for end in ("", "_FILE")}
        )
        for name in sorted(self.source):
            if name.startswith(self.prefix) and name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f" Is {near[0]} meant?" if near else ""
                raise ImproperlyConfigured(f"{name} is no setting.{hint} docs/options.md lists all of them.")

    def optional(self, name: str) -> str | None:
        self._known |= {self.prefix + name, f"{self.prefix}{name}_FILE"}
        return value_or_file(self.source, self.prefix + name)

    def _wrong(self, name: str, value: str, allowed: str) -> ImproperlyConfigured:
        return ImproperlyConfigured(f"{self.prefix}{name} is {value!r}, but must be {allowed}.")

    def text(self, name: str, default: str = "") -> str:
        return self.optional(name) or default

    def secret(self, name: str, shortest: int) -> str:
        """Read a key. Raises ImproperlyConfigured if it has fewer than ``shortest`` characters."""
        value = self.text(name)
        if value and len(value) < shortest:
            raise ImproperlyConfigured(f"{self.prefix}{name} is shorter than {shortest} characters.")
        return value

    def words(self, name: str, default: str = "") -> list[str]:
        """Read a comma-separated list. Commas without words are an error."""
        text = self.text(name, default)
        entries = [word.strip() for word in text.split(",") if word.strip()]
        if text and not entries:
            raise self._wrong(name, text, "a list such as one,two, or unset")
        return entries

    def path(self, name: str, default: Path) -> Path:
        value = self.optional(name)
        return Path(value).expanduser().resolve() if value else default

    def boolean(self, name: str, default: bool | None) -> bool | None:
        value = self.optional(name)
        if value is None:
            return default
        if value.lower() in TRUE:
            return True
        if value.lower() in FALSE:
            return False
        raise self._wrong(name, value, "one of 1, true, yes, on, 0, false, no, off")

    def flag(self, name: str, default: bool) -> bool:
        return bool(self.boolean(name, default))

    def _number(self, name: str, default: T, kind: Callable[[str], T], low: Any, high: Any, word: str) -> T:
        value = self.optional(name)
        if value is None:
            return default
        try:
            number: Any = kind(value)
        except ValueError:
            raise self._wrong(name, value, f"{word} from {low} to {high}") from None
        if not low <= number <= high:
            raise self._wrong(name, value, f"{word} from {low} to {high}")
        return number

    def integer(self, name: str, default: int, *, low: int, high: int) -> int:
        return self._number(name, default, int, low, high, "a whole number")

    def number(self, name: str, default: float, *, low: float, high: float) -> float:
        return self._number(name, default, float, low, high, "a number")

    def price(self, name: str) -> Price | None:
        """Read a price per million tokens: ``in, out`` or ``in, cached, out``. None if unset."""
        words = self.words(name)
        try:
            amounts = [Decimal(word) for word in words]
        except InvalidOperation:
            amounts = []
        if not words:
            return None
        if len(amounts) not in (2, 3) or not all(
            amount.is_finite() and 0 <= amount <= MOST_PRICE for amount in amounts
        ):
            wanted = "prices of a million tokens in and out, such as 0.15,0.60, with cached ones between"
            raise self._wrong(name, ",".join(words), wanted)
        return Price(amounts[0], amounts[-1], amounts[1] if len(amounts) == 3 else None)

    def lists(self, name: str, shape: str, example: str) -> dict[str, list[str]]:
        """Read a JSON object such as ``{"a group": ["staff"]}``, whose values are one word or a list of words.

        Each word must match the pattern ``shape``; ``example`` describes it in the error.
        """
        value = self.optional(name)
        try:
            read = json.loads(value or "{}")
            mapping = {key: [each] if isinstance(each, str) else list(each) for key, each in read.items()}
            right = all(re.fullmatch(shape, word) for words in mapping.values() for word in words)
        except (ValueError, TypeError, AttributeError):
            right = False
        if not right:
            raise self._wrong(name, value or "", f'JSON such as {{"a group": ["…"]}}, each {example}')
        return mapping

    def url(self, name: str) -> str | None:
        """Read an http(s) base URL, without its trailing slash."""
        value = self.optional(name)
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise self._wrong(name, value, "an address such as http://localhost:11434/v1")
        return value.rstrip("/")


def value_or_file(source: Mapping[str, str], name: str) -> str | None:
    """Return a variable's value, or the content of the file that ``NAME_FILE`` names; None if neither is set.

    Raises ImproperlyConfigured if both are set or the file cannot be read.
    """
    value, path = source.get(name, "").strip(), source.get(f"{name}_FILE", "").strip()
    if not path:
        return value or None
    if value:
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set: leave one of them out.")
    try:
        return Path(path).read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ImproperlyConfigured(f"{name}_FILE is {path!r}, which cannot be read: {why}.") from None


def database_from_url(url: str, name: str = "DATABASE_URL") -> dict[str, Any]:
    """Return Django's settings for ``postgres://user:password@host:port/name?option=value``.

    A socket folder is given as ``?host=/path``. With several hosts, ``@one:5432,two:5432``, each new connection uses
    the host that accepts writes. Raises ImproperlyConfigured for other URLs.
    """
    allowed = f"{name} must look like postgres://user:password@host:5432/name."
    try:
        parts = urlsplit(url)
        places = [urlsplit(f"//{each}") for each in parts.netloc.rpartition("@")[2].split(",")]
        hosts = ",".join(unquote(each.hostname or "") for each in places)
        ports = ",".join(str(each.port or "") for each in places)
    except ValueError:
        raise ImproperlyConfigured(allowed) from None
    database = unquote(parts.path.lstrip("/"))
    if parts.scheme not in {"postgres", "postgresql"} or not database:
        raise ImproperlyConfigured(allowed)
    options = dict(parse_qsl(parts.query))
    config = {
        "NAME": database,
        "USER": unquote(parts.username or options.pop("user", "")),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", "") or hosts,
        "PORT": (ports.strip(",") and ports) or options.pop("port", ""),
        "OPTIONS": options,
    }
    if "," in config["HOST"]:
        # Try the next host quickly if one is down, and skip standbys, which accept no writes.
        config["OPTIONS"] = {**SOON, "target_session_attrs": "read-write"} | options
    return config


def libpq_settings(database: Mapping[str, Any]) -> dict[str, Any]:
    """Convert Django's settings of a database to libpq's names."""
    params = {theirs: database[ours] for ours, theirs in LIBPQ_NAMES.items() if database.get(ours)}
    return params | {name: value for name, value in database.get("OPTIONS", {}).items() if name != "pool"}


def mail_from_url(url: str) -> tuple[str, int, str, str, bool, bool]:
    """Return host, port, user, password, STARTTLS and TLS of ``smtp://user:password@host:587``.

    ``smtps`` uses TLS from the start. ``smtp`` uses STARTTLS, except for a server on this machine. Raises
    ImproperlyConfigured for other URLs.
    """
    try:
        parts = urlsplit(url)
        host, port, secure = parts.hostname, parts.port, parts.scheme == "smtps"
    except ValueError:
        host, port, secure = None, None, False
    if (
        not host
        or parts.scheme not in {"smtp", "smtps"}
        or parts.path.strip("/")
        or parts.query
        or parts.fragment
    ):
        raise ImproperlyConfigured(
            "MEMORYHUB_SMTP_URL must look like smtp://user:password@mail.example.org:587, or smtps:// with port 465."
        )
    here = host in {"localhost", "127.0.0.1", "::1"}
    starts_tls = not secure and not here
    port = port or (465 if secure else 25 if here else 587)
    return host, port, unquote(parts.username or ""), unquote(parts.password or ""), starts_tls, secure
