"""Measure how fast a large file is imported and exported, and what memory that takes.

    python -m tests.bench.bench_import [--rows 100000] [--no-embedder] [--list]

Starts a database in a temporary folder, makes a MemoryHub export of so many memories (or, with ``--list``, a plain list
of statements, which is compared with everything), looks at it, stores it, stores it once more, and exports it. Prints
rates and how much the process grew.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.stack import running_stack

WORDS = [
    "amber",
    "boat",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "harbour",
    "island",
    "juniper",
    "kettle",
    "lantern",
    "meadow",
    "north",
    "orchard",
    "pine",
]


def lines(rows: int, *, plain: bool) -> Iterator[bytes]:
    """Yield statements with different words, so that few of them count as duplicates."""
    place = "ws_" + "B" * 24
    if not plain:
        yield b'{"type":"memoryhub","version":1}\n'
        yield json.dumps({"type": "workspace", "id": place, "name": "Bench"}).encode() + b"\n"
    for number in range(rows):
        at = number
        words = []
        for _ in range(5):
            at, rest = divmod(at, len(WORDS))
            words.append(WORDS[rest])
        text = f"Person {number} keeps the {' '.join(words)} key in drawer {number % 97}"
        if plain:
            yield text.encode() + b"\n"
            continue
        line = {
            "type": "memory",
            "id": f"mem_{number:024}",
            "workspace": place,
            "content": text,
            "author": "bench",
        }
        dates = {"created_at": "2025-03-01T10:00:00Z", "updated_at": "2025-03-01T10:00:00Z"}
        history = {
            "revisions": [{"action": "create", "by": "bench", "at": "2025-03-01T10:00:00Z", "before": {}}]
        }
        yield json.dumps(line | dates | history).encode() + b"\n"


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(what: str, rows: int, begun: float) -> None:
    seconds = time.perf_counter() - begun
    print(
        f"{what:32}{seconds:8.1f} s{rows / seconds:10,.0f} a second{megabytes():9,.0f} MB at most", flush=True
    )


def measure(rows: int, *, plain: bool) -> None:
    from django.utils import timezone

    from chat.import_export import import_jobs
    from chat.import_export.export import export
    from workspaces.access import default_workspace
    from workspaces.models import User

    user = User.objects.create_user("bench")
    home = default_workspace(user)
    from tests.factories import HERE
    from workspaces.index.embedding import embed_one

    embed_one("The embedder is loaded before anything is measured", "", HERE)
    print(f"{'before':32}{'':10}{'':19}{megabytes():9,.0f} MB", flush=True)
    for time_round in ("first", "second"):
        pieces = lines(rows, plain=plain)
        begun = time.perf_counter()
        imported = import_jobs.begin(
            user, workspace=home, filename="bench", pieces=pieces, now=timezone.now()
        )
        timed(f"{time_round}: upload ({imported.size / 2**20:.0f} MB)", rows, begun)
        for what in ("looked at", "stored"):
            begun = time.perf_counter()
            while import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.UNFINISHED:
                pass
            timed(f"{time_round}: {what}", rows, begun)
            if what == "looked at":
                import_jobs.start(imported, now=timezone.now())
        imported.refresh_from_db()
        print(f"  {imported.status} {imported.error} {imported.outcomes.get('memory')}")
    begun = time.perf_counter()
    size = sum(len(piece) for piece in export(user, now=timezone.now()))
    timed(f"exported ({size / 2**20:.0f} MB)", rows, begun)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--no-embedder", action="store_true", help="how fast everything but the model is")
    parser.add_argument("--list", action="store_true", dest="plain", help="a list of statements instead")
    options = parser.parse_args()
    model = {"MEMORYHUB_EMBEDDING_MODEL": "none"} if options.no_embedder else {}
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder), **model) as stack:
        os.environ.update(stack.env, DJANGO_SETTINGS_MODULE="memoryhub.settings")
        sys.argv = ["manage.py", "bench"]  # a command: no pool of connections
        import django

        django.setup()
        measure(options.rows, plain=options.plain)


if __name__ == "__main__":
    main()
