"""Typed reading of environment variables. A wrong value raises a sentence that names the variable."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})


class Environment:
    """Reads ``PREFIX_NAME`` variables. An unset or blank variable gives the default."""

    def __init__(self, prefix: str, source: Mapping[str, str] | None = None) -> None:
        self.prefix = prefix
        self.source = os.environ if source is None else source
        self._known: set[str] = set()

    def refuse_unknown(self, *others: str) -> None:
        """Raise for a variable with the prefix that nobody has read so far and that is none of the others."""
        known = sorted(self._known | {self.prefix + name for name in others})
        for name in sorted(self.source):
            if name.startswith(self.prefix) and name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f" Is {near[0]} meant?" if near else ""
                raise ImproperlyConfigured(f"{name} is no setting.{hint} docs/options.md lists all of them.")

    def _raw(self, name: str) -> str | None:
        self._known.add(self.prefix + name)
        value = self.source.get(self.prefix + name, "").strip()
        return value or None

    def _wrong(self, name: str, value: str, allowed: str) -> ImproperlyConfigured:
        return ImproperlyConfigured(f"{self.prefix}{name} is {value!r}, but must be {allowed}.")

    def text(self, name: str, default: str = "") -> str:
        return self._raw(name) or default

    def optional(self, name: str) -> str | None:
        return self._raw(name)

    def words(self, name: str, default: str = "") -> list[str]:
        """A comma-separated list. Commas alone are a mistake: an empty list would be as good as none."""
        text = self.text(name, default)
        found = [word.strip() for word in text.split(",") if word.strip()]
        if text and not found:
            raise self._wrong(name, text, "a list such as one,two, or unset")
        return found

    def path(self, name: str, default: Path) -> Path:
        value = self._raw(name)
        return Path(value).expanduser().resolve() if value else default

    def boolean(self, name: str, default: bool | None) -> bool | None:
        value = self._raw(name)
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
        value = self._raw(name)
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

    def url(self, name: str) -> str | None:
        """An http(s) base URL without its trailing slash."""
        value = self._raw(name)
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise self._wrong(name, value, "an address such as http://localhost:11434/v1")
        return value.rstrip("/")


def database_from_url(url: str) -> dict[str, Any]:
    """Django's connection settings for ``postgres://user:password@host:port/name?option=value``.

    A socket folder goes into ``?host=/path``. Anything but Postgres raises ImproperlyConfigured.
    """
    allowed = "DATABASE_URL must look like postgres://user:password@host:5432/name."
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ImproperlyConfigured(allowed) from None
    name = unquote(parts.path.lstrip("/"))
    if parts.scheme not in {"postgres", "postgresql"} or not name:
        raise ImproperlyConfigured(allowed)
    options = dict(parse_qsl(parts.query))
    return {
        "NAME": name,
        "USER": unquote(parts.username or options.pop("user", "")),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", "") or unquote(parts.hostname or ""),
        "PORT": str(port or options.pop("port", "")),
        "OPTIONS": options,
    }


def mail_from_url(url: str) -> tuple[str, int, str, str, bool, bool]:
    """Host, port, user, password, STARTTLS and TLS of ``smtp://user:password@host:587``.

    ``smtps``: TLS from the first word. ``smtp`` asks for STARTTLS, but on this machine. Else ImproperlyConfigured.
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
