"""Backup and restore of many memories: seconds and bytes of each.

    python -m tests.bench.bench_backup [--memories 1000000] [--workspaces 1000]

A data folder of its own is filled past the gate, as `bench_scale` fills one: memories over a long tail of workspaces,
with their vectors, their words and the indexes of large workspaces. Then the commands are run as an operator runs them,
each a process of its own: a backup, a restore into a new, empty installation, a drill beside the database, a restore in
its place. Seconds are those of the whole command; the second one includes creating the new database.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from memoryhub.local.postgres import EmbeddedPostgres, connection_settings
from tests.migrated import environment
from tests.stack import Stack, running_stack

# Workspaces with a vector index of their own, where there are at least twice as many memories in all
LARGE = (100_000, 50_000)
_COUNTED = """
SELECT (SELECT count(*) FROM memories_memory), (SELECT count(*) FROM workspaces_passagevector),
       (SELECT count(*) FROM workspaces_passageword), pg_database_size(current_database())
"""


def fill(memories: int, workspaces: int) -> None:
    import django

    django.setup()
    import numpy as np
    from django.db import connection
    from django.utils import timezone

    from memoryhub.llm.registry import get_embedder
    from tests.bench import synthetic
    from workspaces.data_policy import DataPolicy
    from workspaces.index import embedding, index_maintenance
    from workspaces.models import Membership, Role, User, Workspace

    embedder, random = get_embedder(), np.random.default_rng(7)
    assert embedder is not None
    user = User.objects.create_user("bench")
    fixed = [size for size in LARGE if size <= memories // 2]
    sizes = synthetic.long_tail(memories, workspaces, fixed)
    made = Workspace.objects.bulk_create(Workspace(name=f"bench {size}") for size in sizes)
    Membership.objects.bulk_create(
        Membership(workspace=workspace, user=user, role=Role.OWNER) for workspace in made
    )
    embedding.embed_texts([("the first makes the model known", "")], [DataPolicy.here(made[0])])
    places = np.repeat([workspace.pk for workspace in made], sizes)
    random.shuffle(places)
    parts, began = synthetic.embed_parts(embedder), time.monotonic()
    for stored in synthetic.fill(places, user.pk, embedder.name, parts, timezone.now(), random):
        print(f"stored {stored:,} ({time.monotonic() - began:.0f} s)", file=sys.stderr)
    print(f"indexes: {index_maintenance.maintain_indexes(now=timezone.now())}", file=sys.stderr)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    connection.close()


def counted(folder: Path) -> tuple[int, int, int, int]:
    """Return the numbers of memories, vectors and words, and the bytes of the database."""
    with psycopg.connect(**connection_settings(folder)) as connection:  # type: ignore[arg-type]
        found = connection.execute(_COUNTED).fetchone()
    assert found is not None
    return found


def timed(what: str, stack: Stack, *command: str) -> None:
    began = time.monotonic()
    said = stack.manage(*command)
    print(f"{what}: {time.monotonic() - began:.0f} s")
    print("".join(f"    {line}\n" for line in said.splitlines()), end="", flush=True)


def measure(stack: Stack, there: Path) -> None:
    memories, vectors, words, size = here = counted(stack.folder)
    print(f"{memories:,} memories, {vectors:,} vectors, {words:,} words: a database of {size:,} bytes")
    file = there / "one.zip"
    timed("backup", stack, "backup", str(file))
    print(f"the file: {file.stat().st_size:,} bytes, {file.stat().st_size / size:.2f} of the database's")
    elsewhere = there / "new"
    elsewhere.mkdir(mode=0o755)
    server = EmbeddedPostgres(elsewhere)
    new = Stack(elsewhere, environment(elsewhere), server)
    timed("restore into a new installation", new, "restore", str(file))
    server.initialise()
    server.start()
    try:
        restored = counted(elsewhere)
    finally:
        server.stop()
    assert restored[:3] == here[:3], f"{restored} is not {here}"
    print(f"there: {restored[0]:,} memories, a database of {restored[3]:,} bytes")
    shutil.rmtree(elsewhere)
    timed("drill", stack, "restore", "--drill", str(file))
    timed("restore in the place of the database", stack, "restore", "--replace", str(file))
    again = counted(stack.folder)
    assert again[:3] == here[:3], f"{again} is not {here}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=1_000_000)
    parser.add_argument("--workspaces", type=int, default=1_000)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as folder,
        tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as there,
        running_stack(Path(folder), durable=True) as stack,
    ):
        Path(there).chmod(0o755)  # the server of the new installation may run as another user
        os.environ.update(stack.env, DJANGO_SETTINGS_MODULE="memoryhub.settings")
        sys.argv = ["manage.py", "bench"]  # a command: no pool of connections
        fill(options.memories, options.workspaces)
        measure(stack, Path(there))


if __name__ == "__main__":
    main()
