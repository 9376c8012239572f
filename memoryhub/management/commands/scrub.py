"""`manage.py scrub`: remove forgotten data from the files of the embedded database too."""

import time
from collections.abc import Callable
from typing import Any, LiteralString

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from psycopg import sql

from memoryhub.backup.dump import kept_of_before
from memoryhub.database.startup import psycopg_settings, running_database

# PostgreSQL keeps deleted data on disk: in pages until they are reused, in column statistics, and in old segments of
# its write-ahead log (WAL). ``scrub`` rewrites the statistics and every table, and replaces the segments. It may run
# beside MemoryHub: each table is locked while it is rewritten, and the largest needs its size in free space.

PATIENCE = 60.0  # seconds to wait for older transactions, and for each table's lock
RELOAD_SECONDS = 1.0  # until every server process has reloaded its settings
MOST_SEGMENTS = 1_000  # of 16 MB each; the embedded server never keeps more

_TABLES: LiteralString = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
ORDER BY pg_total_relation_size(c.oid)
"""
# Older transactions may still see deleted rows, which VACUUM would then copy to the new table.
_OLDER: LiteralString = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < %s AND backend_type = 'client backend'
"""
# Statistics are deleted first, because ANALYZE keeps the old statistics of a table that is now empty.
_SEGMENTS: LiteralString = "SELECT name FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$' ORDER BY name"


def scrub(settings: dict[str, Any], say: Callable[[str], None]) -> None:
    """Remove deleted data from the database's files, connected as a superuser. Idempotent.

    Raises CommandError if a transaction or lock lasts more than 60 seconds, or the log grows too fast.
    """
    with psycopg.connect(**settings, autocommit=True) as connection:
        connection.execute(sql.SQL("SET lock_timeout = {}").format(sql.Literal(int(PATIENCE * 1000))))
        _wait_for_older_transactions(connection)
        _rewrite(connection, say)
        _renew_log(connection, say)


def _wait_for_older_transactions(connection: psycopg.Connection[Any]) -> None:
    """Wait until all transactions that are older than this call have ended. Raises CommandError after 60 seconds."""
    row = connection.execute("SELECT clock_timestamp()").fetchone()
    deadline = time.monotonic() + PATIENCE
    while older := connection.execute(_OLDER, row).fetchall():
        if time.monotonic() > deadline:
            ids = ", ".join(str(pid) for (pid,) in older)
            raise CommandError(
                f"Database processes {ids} have been in a transaction for more than {PATIENCE:.0f} seconds and may "
                "see what was deleted. Wait until they are done, or stop MemoryHub, and scrub again."
            )
        time.sleep(0.2)


def _rewrite(connection: psycopg.Connection[Any], say: Callable[[str], None]) -> None:
    connection.execute("DELETE FROM pg_statistic WHERE starelid >= 16384")
    tables = [*connection.execute(_TABLES).fetchall(), ("pg_catalog", "pg_statistic")]
    for number, (schema, table) in enumerate(tables, start=1):
        say(f"table {number} of {len(tables)}: {table}")
        try:
            connection.execute(sql.SQL("VACUUM (FULL, FREEZE) {}").format(sql.Identifier(schema, table)))
        except psycopg.errors.UndefinedTable:
            continue
        except psycopg.errors.LockNotAvailable:
            raise CommandError(
                f"The table {table} was in use for more than {PATIENCE:.0f} seconds. Scrub again at a quieter time."
            ) from None
    say("making the statistics anew")
    connection.execute("ANALYZE")


def _renew_log(connection: psycopg.Connection[Any], say: Callable[[str], None]) -> None:
    """Switch to new WAL segments until checkpoints have deleted all old ones. Raises CommandError if they never do."""
    connection.execute("ALTER SYSTEM SET wal_recycle = off")
    try:
        _reload(connection)
        connection.execute("CHECKPOINT")
        last = _segments(connection)[-1]
        for number in range(1, MOST_SEGMENTS):
            left = sum(name <= last for name in _segments(connection))
            if not left:
                return
            say(f"log: {left} old segments left")
            for _ in range(min(left, 8)):  # an unused segment may be an old one that was renamed
                connection.execute("SELECT pg_logical_emit_message(false, 'scrub', %s)", [str(number)])
                connection.execute("SELECT pg_switch_wal()")
            connection.execute("CHECKPOINT")
    finally:
        connection.execute("ALTER SYSTEM RESET wal_recycle")
        _reload(connection)
    raise CommandError(
        "The database's log keeps growing faster than it can be renewed. Stop MemoryHub and scrub again."
    )


def _reload(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SELECT pg_reload_conf()")
    time.sleep(RELOAD_SECONDS)


def _segments(connection: psycopg.Connection[Any]) -> list[str]:
    return [name for (name,) in connection.execute(_SEGMENTS)]


ELSEWHERE = """DATABASE_URL names a server of your own, and only who runs it can reach its files. There: VACUUM
(FULL, FREEZE) every table and pg_statistic, ANALYZE; then set wal_recycle = off for the server, SELECT pg_switch_wal()
and CHECKPOINT until every old segment is gone; and see to replicas, archived WAL and backups. Nothing was done."""
DONE = """Done in {seconds:.0f} s: what was deleted before is in no file of the database any more ({folder}).
Backups and copies made earlier keep what they hold."""


class Command(BaseCommand):
    help = (
        "Remove what was deleted from the embedded database's files as well: pages, statistics and log. Works while "
        "MemoryHub runs; a table is locked while it is written anew."
    )
    requires_system_checks = []  # the database may not be running yet

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.EMBEDDED_DATABASE:
            raise CommandError(ELSEWHERE)
        began = time.monotonic()
        with running_database():
            scrub(psycopg_settings(), self.stdout.write)
            with psycopg.connect(**psycopg_settings()) as connection:
                notice = kept_of_before(connection)
        seconds = time.monotonic() - began
        if notice:
            raise CommandError(
                f"Done in {seconds:.0f} s, but for one database: {notice}. Then run this again."
            )
        self.stdout.write(DONE.format(seconds=seconds, folder=settings.DATA_DIR))
