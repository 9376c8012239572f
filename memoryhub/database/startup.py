"""Checks of the database's version at startup, and a context in which the embedded database runs."""

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
    """Convert Django's settings of the default database to psycopg's names."""
    return libpq_settings(settings.DATABASES["default"])


class OtherVersion(Exception):
    """Raised when the tables belong to a version that this code cannot use. The message says what to do."""


@cache
def _our_migrations() -> dict[str, dict[str, Migration]]:
    """Return the migrations of our apps, by app and name."""
    ours: dict[str, dict[str, Migration]] = {}
    for (app, name), migration in (MigrationLoader(None).disk_migrations or {}).items():
        if Path(apps.get_app_config(app).path).parent == Path(settings.BASE_DIR):
            ours.setdefault(app, {})[name] = migration
    return ours


def newer_migrations(applied: Iterable[tuple[str, str]]) -> list[str]:
    """Return applied migrations that are newer than our last ones. Unknown ones in between were removed or squashed."""
    last = {app: max(names) for app, names in _our_migrations().items()}
    return sorted(f"{app} {name}" for app, name in applied if name > last.get(app, name))


def is_from_before(applied: Iterable[tuple[str, str]]) -> bool:
    """Return whether a migration is older than 0100_initial, with which each app began again (docs/decisions/0002)."""
    first = {app: min(names) for app, names in _our_migrations().items()}
    return any(name[:4] < first.get(app, name)[:4] for app, name in applied)


def store_backward_compatible_migrations(**_signal: Any) -> None:
    """Store the list of migrations with ``older_may_run = True`` in the database. A receiver of migrate signals.

    Such a migration only adds what older code can ignore. Older code does not have the migration but can read the list,
    so rolling upgrades and rollbacks work as long as every unknown migration is listed. The list is written before
    migrating, so that older processes find it in time, and afterwards, in case the table did not exist before.
    """
    with django_connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('django_migrations') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return
        cursor.execute(_LISTED)
        listed = set(json.loads(cursor.fetchone()[0] or "[]"))
        mild = {
            f"{app} {name}"
            for app, migrations in _our_migrations().items()
            for name, migration in migrations.items()
            if getattr(migration, "older_may_run", False)
        }
        if mild - listed:
            statement = sql.SQL("COMMENT ON TABLE django_migrations IS {}").format(
                json.dumps(sorted(listed | mild))
            )
            cursor.execute(statement.as_string())


def what_is_newer(connection: psycopg.Connection[Any], applied: Iterable[tuple[str, str]]) -> list[str]:
    """Return applied migrations that this code neither knows nor can ignore. One query."""
    (listed,) = connection.execute(_LISTED).fetchone() or (None,)
    return sorted(set(newer_migrations(applied)) - set(json.loads(listed or "[]")))


def refuse_other_version(connection: psycopg.Connection[Any]) -> None:
    """Raise OtherVersion if the database is too new or too old for this code. Up to three queries."""
    if connection.execute("SELECT to_regclass('django_migrations')").fetchone() == (None,):
        return  # checked first, because the server would log an error at the first start
    applied = connection.execute("SELECT app, name FROM django_migrations").fetchall()
    if is_from_before(applied):
        raise OtherVersion(FROM_BEFORE)
    if newer := what_is_newer(connection, applied):
        raise OtherVersion(
            f"The database belongs to a newer MemoryHub than this one: it has {', '.join(newer)}, which this version "
            "does not know. Start the newer version, or restore the backup that was made before the upgrade."
        )


def refuse_to_serve_other_version() -> None:
    """Exit with a message if the database is of another version. An unavailable database is only logged."""
    try:
        with psycopg.connect(**{**psycopg_settings(), "connect_timeout": 2}) as connection:
            refuse_other_version(connection)
    except OtherVersion as error:
        raise SystemExit(f"MemoryHub did not start. {error}") from None
    except psycopg.Error:
        logger.warning("The database cannot be reached yet.")


def close_connections() -> None:
    """Close Django's connections and their pool. The next query opens a new connection."""
    for connection in connections.all():
        connection.close()
        close_pool = getattr(connection, "close_pool", None)
        if close_pool:
            close_pool()


@contextmanager
def running_database() -> Iterator[None]:
    """Run the block with a running database, for commands that work with or without a running MemoryHub.

    Starts and migrates the embedded database if it is configured and not running, and stops it afterwards. Exits with a
    message if that fails or the database is of another version.
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
