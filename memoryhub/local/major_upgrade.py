"""The embedded database, brought to a later major version of PostgreSQL: dumped, loaded beside, compared, put in place.

The old cluster is only read, by programs of its own version, until the new one is whole. Two renames put that in its
place; after a kill between them the next start does the second (`EmbeddedPostgres.initialise`), after a kill at any
other moment it begins anew. The old cluster is kept under another name: it is the way back.

The supervisor runs it as a process of its own (`python -m memoryhub.local.major_upgrade FOLDER`), and nobody else:
only the holder of the run lock may start a server on a cluster that others know.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from memoryhub.local.postgres import USER, EmbeddedPostgres
from memoryhub.local.postgres_programs import MAJOR_VERSION, PORT, PostgresError, is_brought, programs_folder
from memoryhub.local.row_counts import rows_of, which_differ

UPGRADING, BEFORE = "postgres.upgrading", f"postgres.before-{MAJOR_VERSION}"
START_SECONDS = 600.0  # one that was killed replays its log first
EVERY = 10.0  # seconds between two lines
ROOM = 2**30  # bytes beside the copy, for the log of the server that it is loaded into
GB = 10**9
# A copy that is not whole is thrown away: nothing has to be on the disk before the checkpoint at the end.
AT_EASE = {"PGOPTIONS": "-c synchronous_commit=off"}
_DATABASES: LiteralString = """
SELECT datname, pg_database_size(oid) FROM pg_database WHERE NOT datistemplate AND datname <> 'postgres' ORDER BY 1
"""
Say = Callable[[str], object]


def is_due(data_dir: Path) -> bool:
    """Whether an older version made the cluster, and the wheel has its programs too."""
    postgres = EmbeddedPostgres(data_dir)
    if not postgres.cluster.exists():
        return False
    version = postgres.version()
    return version.isdecimal() and int(version) < int(MAJOR_VERSION) and is_brought(version)


def kept_before(data_dir: Path) -> list[Path]:
    """Clusters that upgrades took the place of."""
    return sorted(data_dir.glob("postgres.before-*"))


def upgrade(data_dir: Path, say: Say) -> None:
    """Bring the cluster to our version. Raises PostgresError; the cluster is then as it was."""
    found = EmbeddedPostgres(data_dir).version()
    old = EmbeddedPostgres(data_dir, major=found, role="postgres-old")
    new = EmbeddedPostgres(data_dir, cluster=UPGRADING, role="postgres-new")
    new.account = old.account  # whose the cluster is, whoever else could run one
    new.clear_leftovers()
    for left in (new.cluster, old.upgraded):  # by an attempt that was killed
        shutil.rmtree(left, ignore_errors=True)
    say(
        f"The database is of PostgreSQL {found}, and goes on with {MAJOR_VERSION}. It stays as it is until a copy"
    )
    say("is whole: stop this whenever you like, and the next start begins anew.")
    try:
        with _serving(old):
            databases = _ask(old, _DATABASES)
            _require_room(data_dir, sum(size for _, size in databases))
            with _serving(new):
                _take_roles(old, new)
                for name, size in databases:
                    _load(old, new, name, size, say)
                    _compare(old, new, name, say)
                _ask(new, "CHECKPOINT")
        kept = _put_in_place(old, new)
    except BaseException:
        shutil.rmtree(new.cluster, ignore_errors=True)
        raise
    say(
        f"PostgreSQL {MAJOR_VERSION} has taken over. The database of before is kept in {kept}: remove it once"
    )
    say("you will not go back. What is forgotten for good from now on is still in there.")


@contextmanager
def _serving(server: EmbeddedPostgres) -> Iterator[None]:
    server.initialise()
    try:
        server.serve(START_SECONDS)
        yield
    finally:
        server.stop()
        shutil.rmtree(server.socket_folder, ignore_errors=True)


def _require_room(data_dir: Path, needed: int) -> None:
    free = shutil.disk_usage(data_dir).free
    if free < needed + ROOM:
        raise PostgresError(
            f"The copy for PostgreSQL {MAJOR_VERSION} needs {(needed + ROOM) / GB:.1f} GB, and {free / GB:.1f} GB are "
            f"free in {data_dir}. Make room and start again, or go back to the version before: nothing was changed."
        )


def _take_roles(old: EmbeddedPostgres, new: EmbeddedPostgres) -> None:
    """What stands beside the databases: roles and their settings."""
    dumping = subprocess.run(  # noqa: S603  (PostgreSQL's own program, here and below)
        _command("pg_dumpall", old, "postgres", "--globals-only"),
        env=old.environment(),
        stdout=subprocess.PIPE,
    )
    roles = dumping.stdout.replace(f"CREATE ROLE {USER};\n".encode(), b"")  # initdb made it
    loading = subprocess.run(  # noqa: S603
        _command(
            "psql", new, "postgres", "--no-psqlrc", "--quiet", "--output=/dev/null", "--set=ON_ERROR_STOP=1"
        ),
        env=new.environment(),
        input=roles,
    )
    _all_well(dumping.returncode, loading.returncode)


def _load(old: EmbeddedPostgres, new: EmbeddedPostgres, name: str, size: int, say: Say) -> None:
    """One database with its settings, owners and rights, saying now and then how much of it is there."""
    dump = _command("pg_dump", old, name, "--format=custom", "--compress=none")
    load = _command("pg_restore", new, "postgres", "--create", "--exit-on-error")
    with (
        subprocess.Popen(dump, env=old.environment(), stdout=subprocess.PIPE) as dumping,  # noqa: S603
        subprocess.Popen(load, env=new.environment() | AT_EASE, stdin=dumping.stdout) as loading,  # noqa: S603
    ):
        assert dumping.stdout is not None
        dumping.stdout.close()  # ours: pg_dump has to notice when pg_restore ends
        while loading.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                loading.wait(EVERY)
                break
            done = dict(_ask(new, _DATABASES)).get(name, 0)
            say(f"{name}: {done / GB:.2f} of some {size / GB:.2f} GB are there")
    _all_well(dumping.returncode, loading.returncode)
    _ask(new, "ANALYZE", name)


def _compare(old: EmbeddedPostgres, new: EmbeddedPostgres, name: str, say: Say) -> None:
    with _connected(old, name) as before, _connected(new, name) as after:
        counted, copied = rows_of(before), rows_of(after)
    if differing := which_differ(counted, copied):
        raise PostgresError(
            f"The copy of {name} has not the same rows in {', '.join(differing)}: it is not used."
        )
    say(f"{name}: {sum(copied.values()):,} rows in {len(copied)} tables, as they were counted")


def _put_in_place(old: EmbeddedPostgres, new: EmbeddedPostgres) -> Path:
    """Where the old cluster is from now on."""
    kept, number = old.cluster.with_name(BEFORE), 1
    while kept.exists():  # of somebody who went back, and comes once more
        number += 1
        kept = old.cluster.with_name(f"{BEFORE}-{number}")
    with old.exclusively():
        new.cluster.rename(old.upgraded)
        old.cluster.rename(kept)
        old.upgraded.rename(old.cluster)
    return kept


def _all_well(*statuses: int) -> None:
    if any(statuses):
        raise PostgresError("The database could not be copied; the lines above say why. Nothing was changed.")


def _command(program: str, server: EmbeddedPostgres, database: str, *arguments: str) -> list[str]:
    """Of our version, which reads older ones; against a server of either."""
    address = psycopg.conninfo.make_conninfo(
        host=str(server.socket_folder), port=PORT, user=USER, dbname=database
    )
    return [str(programs_folder() / program), *arguments, f"--dbname={address}"]


def _connected(server: EmbeddedPostgres, database: str = "postgres") -> psycopg.Connection[Any]:
    return psycopg.connect(**{**server.maintenance_settings(), "dbname": database})  # type: ignore[arg-type]


def _ask(
    server: EmbeddedPostgres, statement: LiteralString, database: str = "postgres"
) -> list[tuple[Any, ...]]:
    with _connected(server, database) as connection:
        found = connection.execute(statement)
        return found.fetchall() if found.description else []


def main() -> None:
    try:
        upgrade(Path(sys.argv[1]), lambda text: print(text, flush=True))  # noqa: T201
    except (PostgresError, psycopg.Error, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
