"""The database for commands: its settings without Django's pool, and the embedded one started where none runs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.db.migrations.loader import MigrationLoader

from memoryhub.local.postgres import EmbeddedPostgres

logger = logging.getLogger(__name__)


def psycopg_settings() -> dict[str, Any]:
    """Django's settings of the database in psycopg's words."""
    database = settings.DATABASES["default"]
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    found = {theirs: database[ours] for ours, theirs in names.items() if database.get(ours)}
    return found | {name: value for name, value in database.get("OPTIONS", {}).items() if name != "pool"}


class NewerDatabase(Exception):
    """The database was brought up to date by a later MemoryHub than this one. The message says what to do."""


@cache
def _last_migrations() -> dict[str, str]:
    """Of each of our apps the last one here."""
    folder = Path(settings.BASE_DIR)
    ours = {app.label for app in apps.get_app_configs() if Path(app.path).parent == folder}
    last: dict[str, str] = {}
    for app, name in MigrationLoader(None).disk_migrations or ():
        if app in ours:
            last[app] = max(name, last.get(app, ""))
    return last


def newer_migrations(applied: Iterable[tuple[str, str]]) -> list[str]:
    """Those of our apps beyond the last one here: with them the database has tables that this code does not know.

    One that is missing in between was taken out of the code since, and those of packages may be squashed: neither
    says that the database is newer.
    """
    last = _last_migrations()
    return sorted(f"{app} {name}" for app, name in applied if name > last.get(app, name))


def refuse_newer_database(connection: psycopg.Connection[Any]) -> None:
    """Raise NewerDatabase where this code would write into tables that it does not know."""
    try:
        applied = connection.execute("SELECT app, name FROM django_migrations").fetchall()
    except psycopg.errors.UndefinedTable:
        return
    if newer := newer_migrations(applied):
        raise NewerDatabase(
            f"The database belongs to a newer MemoryHub than this one: it has {', '.join(newer)}, which this version "
            "does not know. Start the newer version, or restore the backup that was made before the upgrade."
        )


def refuse_to_serve_newer_database() -> None:
    """End the process with a sentence for a newer database; one that is away is waited for as ever."""
    try:
        with psycopg.connect(**{**psycopg_settings(), "connect_timeout": 2}) as connection:
            refuse_newer_database(connection)
    except NewerDatabase as error:
        raise SystemExit(f"MemoryHub did not start. {error}") from None
    except psycopg.Error:
        logger.warning("The database cannot be reached yet.")


def close_connections() -> None:
    """Django's own, with their pool: the next query connects anew."""
    for connection in connections.all():
        connection.close()
        close_pool = getattr(connection, "close_pool", None)
        if close_pool:
            close_pool()


@contextmanager
def running_database() -> Iterator[None]:
    """For commands that work beside a running MemoryHub and without one.

    Starts the embedded database, up to date, unless it runs already (or another is configured), and stops only what
    it started. Ends the process where the database is a newer version's.
    """
    server = EmbeddedPostgres(settings.DATA_DIR)
    if not settings.EMBEDDED_DATABASE or server.is_ready():
        refuse_to_serve_newer_database()
        yield
        return
    server.initialise()
    server.start()
    try:
        refuse_to_serve_newer_database()
        call_command("migrate", interactive=False, verbosity=0)
        yield
    finally:
        close_connections()
        server.stop()
