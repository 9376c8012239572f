"""An installation of an earlier version, with that version's demo in it, upgraded to this one: every row compared.

python -m tests.bench.upgraded COMMIT

The earlier version runs in today's virtual environment. A row is the same where all that both versions say of it is.
Ends with 1 where a row went.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from memoryhub.local.postgres import EmbeddedPostgres, connection_settings
from tests.migrated import ROOT, environment

Rows = list[dict[str, Any]]
OF_DJANGO = ("django_", "auth_")  # content types and permissions, which migrating makes


def main(commit: str) -> int:
    with tempfile.TemporaryDirectory(prefix="memoryhub-upgraded-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the server may run as another user
        before = folder / "before"
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(before, filter="data")
        server = EmbeddedPostgres(folder / "data", durable=False)
        server.initialise()
        server.start()
        try:
            for command in ("migrate", "seed_demo"):
                manage(before, folder / "data", command)
            old = tables(folder / "data")
            manage(ROOT, folder / "data", "migrate")
            return compare(old, tables(folder / "data"))
        finally:
            server.stop()


def manage(checkout: Path, data_dir: Path, command: str) -> None:
    at = connection_settings(data_dir)
    url = f"postgres://{at['user']}@/{at['dbname']}?host={at['host']}&port={at['port']}"
    own = environment(data_dir, DATABASE_URL=url)
    subprocess.run(
        [sys.executable, "manage.py", command], cwd=checkout, env=own, check=True, stdout=subprocess.DEVNULL
    )


def tables(data_dir: Path) -> dict[str, Rows]:
    with psycopg.connect(**connection_settings(data_dir)) as connection:  # type: ignore[arg-type]
        listed = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return {
            table: [row for (row,) in connection.execute(f'SELECT to_jsonb(t) FROM "{table}" t')]  # type: ignore[arg-type]
            for (table,) in listed
            if not table.startswith(OF_DJANGO)
        }


def compare(old: dict[str, Rows], new: dict[str, Rows]) -> int:
    lost = 0
    print(f"{'table':42} {'before':>7} {'same':>7} {'changed':>8} {'went':>6} {'new':>6}")
    for table, before in sorted(old.items()):
        after = new.get(table, [])
        shared = set.intersection(*(set(rows[0]) for rows in (before, after) if rows)) if before else set()
        was, by_now = keyed(before, shared), keyed(after, shared)
        both = was.keys() & by_now.keys()
        differing = [{name for name in shared if was[key][name] != by_now[key][name]} for key in both]
        went = len(was) - len(both)
        lost += went
        if before:
            changed = sum(map(bool, differing))
            print(
                f"{table:42} {len(was):7} {len(both) - changed:7} {changed:8} {went:6} {len(by_now) - len(both):6}  "
                f"{', '.join(sorted(set().union(*differing)))}"
            )
    print(f"{lost} rows went")
    return 1 if lost else 0


def keyed(rows: Rows, shared: set[str]) -> dict[Any, dict[str, Any]]:
    """By the key, or by all that both versions say where a row has none of one column."""
    return {row["id"] if "id" in shared else str([row[name] for name in sorted(shared)]): row for row in rows}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
