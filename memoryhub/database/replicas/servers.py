"""Which of the servers cannot be reached: found out once for all threads, without waiting for a pool to give up."""

from __future__ import annotations

import logging
import threading
import time
from functools import cache
from typing import Any

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS

from memoryhub.environment import libpq_settings

logger = logging.getLogger(__name__)
FRESH = 0.5  # seconds for which an answer is everybody's
AGAIN = 1.0  # seconds after which one that was away is looked at again
PATIENCE = "2"  # seconds to connect in


class Server:
    """What is known of one. At first it is there, until a connection to it was cut."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self._lock = threading.Lock()
        self._away, self._checked_at, self._aside_until = False, 0.0, 0.0

    def is_away(self) -> bool:
        """As far as is known; while it is away one thread a second looks again, the others go by what it found last."""
        if not self._away:
            return False
        if self._lock.locked() or time.monotonic() - self._checked_at < AGAIN:
            return True
        return self.check()

    def set_aside(self) -> None:
        """Not to be asked for a second: it is there, and of no use at the moment."""
        self._aside_until = time.monotonic() + AGAIN

    def is_aside(self) -> bool:
        return time.monotonic() < self._aside_until

    def check(self) -> bool:
        """Whether it is away now, by a connection of its own; who asks meanwhile is given the same answer."""
        with self._lock:
            if time.monotonic() - self._checked_at > FRESH:
                away = not self._answers()
                if away != self._away:
                    logger.warning("The database %r %s.", self.alias, "is away" if away else "is back")
                self._away, self._checked_at = away, time.monotonic()
            return self._away

    def _answers(self) -> bool:
        try:
            with psycopg.connect(**connection_settings(self.alias)) as connection:
                connection.execute("SELECT")
        except psycopg.Error:
            return False
        return True


def connection_settings(alias: str) -> dict[str, Any]:
    """Of a connection beside the pool, and past a pooler, which answers for a server that is away."""
    own = settings.LISTEN_AT if alias == DEFAULT_DB_ALIAS else {}
    return libpq_settings(settings.DATABASES[alias]) | own | {"connect_timeout": PATIENCE}


@cache
def server(alias: str = DEFAULT_DB_ALIAS) -> Server:
    return Server(alias)
