"""Dumps of the database, and their restore into another database of the server, by PostgreSQL's own programs."""

import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import IO, Any, LiteralString

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql

from memoryhub.backup.storage import BackupError
from memoryhub.database.startup import close_connections, psycopg_settings
from memoryhub.local.postgres import MAJOR_VERSION, programs_folder

RESTORING, REPLACED = "_restoring", "_before_restore"  # suffixes of the database's name
# Properties that another server may not have: roles, policies, tablespaces.
_NOT_TAKEN = ("--no-owner", "--no-privileges", "--no-policies", "--no-tablespaces")
# A dump consists mostly of vectors. Compared with the default level, it takes a sixth of the time and is a quarter
# larger.
QUICKLY = "--compress=gzip:1"
# The only error of a restore into a server before 17, which does not know a parameter that our pg_dump sets.
_HARMLESS = re.compile(r'parameter "transaction_timeout"$[\s\S]+errors ignored on restore: 1\Z', re.MULTILINE)
PATIENCE = 3.0  # seconds to wait until other connections are closed
_OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


def connect(name: str | None = None, *, autocommit: bool = False) -> psycopg.Connection[Any]:
    """Connect to the installation's database, or to another database of its server."""
    return psycopg.connect(**psycopg_settings() | ({"dbname": name} if name else {}), autocommit=autocommit)


def own_name() -> str:
    return str(psycopg_settings()["dbname"])


def kept_of_before(connection: psycopg.Connection[Any]) -> str:
    """Return a sentence about the database that a restore replaced, and how to remove it; "" if there is none."""
    row = connection.execute(
        "SELECT datname FROM pg_database WHERE datname = current_database() || %s", [REPLACED]
    ).fetchone()
    if row is None:
        return ""
    remove = f"DROP DATABASE {row[0]}"
    if settings.EMBEDDED_DATABASE:
        place = connection.info
        remove = f"{programs_folder() / 'dropdb'} -h {place.host} -p {place.port} -U {place.user} {row[0]}"
    return (
        f"{row[0]} is the database of before a restore, with what was forgotten since. To remove it: {remove}"
    )


@contextmanager
def dump(snapshot: str, only: Iterable[str] = ()) -> Iterator[IO[bytes]]:
    """Yield pg_dump's output of a snapshot, limited to the tables ``only`` if given. Raises BackupError if it fails."""
    arguments = ["--format=custom", QUICKLY, *_NOT_TAKEN, f"--snapshot={snapshot}"]
    arguments += [f"--table={name}" for name in only]
    with _started("pg_dump", arguments, own_name(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process.stdout


def restore_into(name: str, source: Iterable[bytes], only: Iterable[str] = ()) -> None:
    """Create the database ``name`` from a dump or its tables ``only``, dropping an earlier one. Raises BackupError."""
    drop(name)
    with connect(autocommit=True) as open_connection:
        create = sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name))
        try:
            open_connection.execute(create)
        except psycopg.errors.InsufficientPrivilege:
            raise BackupError(
                "The user in DATABASE_URL may not make databases, and a restore is made beside the present one. "
                "Give it CREATEDB, or use pg_restore on the file database.dump of the backup, which is a ZIP."
            ) from None
        knows_all = open_connection.info.server_version >= 17_00_00
    arguments = [*_NOT_TAKEN, *(["--exit-on-error"] if knows_all else [])]
    arguments += [f"--table={name}" for name in only]
    with _started("pg_restore", arguments, name, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # pg_restore has ended; leaving the outer block raises its error
            for chunk in source:
                process.stdin.write(chunk)
            process.stdin.close()


def drop(name: str) -> None:
    with connect(autocommit=True) as open_connection:
        open_connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))


def others_connected() -> bool:
    """Return whether other clients use the installation's database, and still do after three seconds."""
    with connect(autocommit=True) as open_connection:
        deadline = time.monotonic() + PATIENCE
        while open_connection.execute(_OTHERS).fetchone() != (0,):
            if time.monotonic() > deadline:
                return True
            time.sleep(0.1)
    return False


def swap(restored: str) -> str:
    """Replace the installation's database by the restored one, atomically. Return the replaced database's new name."""
    own, earlier = own_name(), own_name() + REPLACED
    drop(earlier)
    with connect("postgres") as open_connection:
        rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
        for before, after in ((own, earlier), (restored, own)):
            open_connection.execute(rename.format(sql.Identifier(before), sql.Identifier(after)))
    return earlier


@contextmanager
def django_in(name: str) -> Iterator[None]:
    """Use another database of the server for Django's connection within the block."""
    present = connection.settings_dict["NAME"]
    close_connections()
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        close_connections()
        connection.settings_dict["NAME"] = present


@contextmanager
def _started(
    program: str, arguments: Sequence[str], database: str, **pipes: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program of PostgreSQL and yield its process. Raises BackupError with the end of its output if it fails."""
    parameters = psycopg_settings() | {"dbname": database}
    password = {"PGPASSWORD": str(parameters.pop("password"))} if "password" in parameters else {}
    libpq = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    own = {name: value for name, value in parameters.items() if name in libpq}
    address = psycopg.conninfo.make_conninfo("", **own)
    with TemporaryFile() as error_output:  # a pipe could fill up and deadlock
        with subprocess.Popen(  # noqa: S603  (PostgreSQL's own program and our arguments)
            [str(programs_folder() / program), *arguments, f"--dbname={address}"],
            env=os.environ | password,
            stderr=error_output,
            **pipes,
        ) as process:
            try:
                yield process
            except BaseException:
                process.kill()
                raise
        error_output.seek(0)
        words = error_output.read().decode(errors="replace").strip()
    if process.returncode and not _HARMLESS.search(words):
        hint = "" if "version mismatch" not in words else f" It is PostgreSQL {MAJOR_VERSION}'s."
        raise BackupError(f"{program} failed: {words[-600:]}{hint}")


_TABLES: LiteralString = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname = 'public' ORDER BY c.relname
"""


def rows_of(connection: psycopg.Connection[Any]) -> dict[str, int]:
    """Return the row count of each table. One query per table."""
    counts = {}
    for (table,) in connection.execute(_TABLES).fetchall():
        query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
        [(number,)] = connection.execute(query).fetchall()
        counts[table] = number
    return counts
