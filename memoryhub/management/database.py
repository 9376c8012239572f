"""The database for commands: its settings without Django's pool, and the embedded one started where none runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connections

from memoryhub.local.postgres import EmbeddedPostgres


def psycopg_settings() -> dict[str, Any]:
    """Django's settings of the database in psycopg's words."""
    database = settings.DATABASES["default"]
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    found = {theirs: database[ours] for ours, theirs in names.items() if database.get(ours)}
    return found | {name: value for name, value in database.get("OPTIONS", {}).items() if name != "pool"}


@contextmanager
def running_database() -> Iterator[None]:
    """For commands that work beside a running MemoryHub and without one.

    Starts the embedded database, up to date, unless it runs already (or another is configured), and stops only what
    it started.
    """
    server = EmbeddedPostgres(settings.DATA_DIR)
    if not settings.EMBEDDED_DATABASE or server.is_ready():
        yield
        return
    server.initialise()
    server.start()
    try:
        call_command("migrate", interactive=False, verbosity=0)
        yield
    finally:
        for connection in connections.all():
            connection.close()
            close_pool = getattr(connection, "close_pool", None)
            if close_pool:
                close_pool()
        server.stop()
