"""The database as a process finds it: is it of this version, and the embedded one started for commands."""

from __future__ import annotations

import json
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
from django.db import connection as django_connection
from django.db import connections
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from memoryhub.environment import libpq_settings
from memoryhub.local.postgres import EmbeddedPostgres, PostgresError

logger = logging.getLogger(__name__)

FROM_BEFORE = (
    "The database is of an earlier MemoryHub whose tables this one cannot take over: export what it holds with the "
    "version you have (Profile → Export), then import that into this version with a new database; nothing was changed."
)
_LISTED = "SELECT obj_description(to_regclass('django_migrations'), 'pg_class')"


def psycopg_settings() -> dict[str, Any]:
    """Return Django's settings of the database under psycopg's names."""
    return libpq_settings(settings.DATABASES["default"])


class OtherVersion(Exception):
    """The tables are of a version that this one cannot continue. The message says what to do."""


@cache
def _our_migrations() -> dict[tuple[str, str], Migration]:
    folder = Path(settings.BASE_DIR)
    ours = {app.label for app in apps.get_app_configs() if Path(app.path).parent == folder}
    found = MigrationLoader(None).disk_migrations or {}
    return {(app, name): migration for (app, name), migration in found.items() if app in ours}


def newer_migrations(applied: Iterable[tuple[str, str]]) -> list[str]:
    """Return our apps' migrations beyond the last one here: with them the database has tables unknown to this code.

    One that is missing in between was taken out of the code since, and those of packages may be squashed: neither
    says that the database is newer.
    """
    last: dict[str, str] = {}
    for app, name in _our_migrations():
        last[app] = max(name, last.get(app, ""))
    return sorted(f"{app} {name}" for app, name in applied if name > last.get(app, name))


def is_from_before(applied: Iterable[tuple[str, str]]) -> bool:
    """Return whether these migrations are older than 0100_initial, with which each app began again
    (docs/decisions/0002).
    """
    first: dict[str, str] = {}
    for app, name in _our_migrations():
        first[app] = min(name, first.get(app, name))
    return any(name[:4] < first.get(app, name)[:4] for app, name in applied)


def note_what_older_may_run_with(**_signal: Any) -> None:
    """Store the list of migrations with ``older_may_run = True`` in the database, before and after migrating.

    A migration that only adds what older code need not know says so of itself. Older code cannot read it, but the list:
    a rolling upgrade, and the way back, are open as long as all that it does not know is listed. Before, so that no
    older process looks in between; after, where there was no table to leave it at.
    """
    with django_connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('django_migrations') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return
        cursor.execute(_LISTED)
        listed = set(json.loads(cursor.fetchone()[0] or "[]"))
        mild = {
            f"{app} {name}"
            for (app, name), each in _our_migrations().items()
            if getattr(each, "older_may_run", False)
        }
        if mild - listed:
            said = sql.SQL("COMMENT ON TABLE django_migrations IS {}").format(
                json.dumps(sorted(listed | mild))
            )
            cursor.execute(said.as_string())


def what_is_newer(connection: psycopg.Connection[Any], applied: Iterable[tuple[str, str]]) -> list[str]:
    """Return the database's migrations that this code does not know and may not run with."""
    (listed,) = connection.execute(_LISTED).fetchone() or (None,)
    return sorted(set(newer_migrations(applied)) - set(json.loads(listed or "[]")))


def refuse_other_version(connection: psycopg.Connection[Any]) -> None:
    """Raise OtherVersion where this code would write into tables that it does not know."""
    if connection.execute("SELECT to_regclass('django_migrations')").fetchone() == (None,):
        return  # asked for first: otherwise a first start would log an error
    applied = connection.execute("SELECT app, name FROM django_migrations").fetchall()
    if is_from_before(applied):
        raise OtherVersion(FROM_BEFORE)
    if newer := what_is_newer(connection, applied):
        raise OtherVersion(
            f"The database belongs to a newer MemoryHub than this one: it has {', '.join(newer)}, which this version "
            "does not know. Start the newer version, or restore the backup that was made before the upgrade."
        )


def refuse_to_serve_other_version() -> None:
    """End the process with a sentence if the database is of another version. One that is away is waited for."""
    try:
        with psycopg.connect(**{**psycopg_settings(), "connect_timeout": 2}) as connection:
            refuse_other_version(connection)
    except OtherVersion as error:
        raise SystemExit(f"MemoryHub did not start. {error}") from None
    except psycopg.Error:
        logger.warning("The database cannot be reached yet.")


def close_connections() -> None:
    """Close Django's connections and their pool. The next query connects again."""
    for connection in connections.all():
        connection.close()
        close_pool = getattr(connection, "close_pool", None)
        if close_pool:
            close_pool()


@contextmanager
def running_database() -> Iterator[None]:
    """Run the block with a database, for commands that work beside a running MemoryHub and without one.

    Starts the embedded database, up to date, unless it runs already (or another is configured), and stops only what
    it started. Ends the process where that cannot be, or the database is another version's.
    """
    server = EmbeddedPostgres(settings.DATA_DIR)
    if not settings.EMBEDDED_DATABASE or server.is_ready():
        refuse_to_serve_other_version()
        yield
        return
    try:
        server.initialise()
        server.start()
    except PostgresError as error:
        raise SystemExit(str(error)) from error
    try:
        refuse_to_serve_other_version()
        call_command("migrate", interactive=False, verbosity=0)
        yield
    finally:
        close_connections()
        server.stop()
