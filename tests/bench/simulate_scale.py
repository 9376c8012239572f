"""How many hosts serve 5,000 recalls a second over 100 million memories of 100,000 workspaces, computed from what a
recall costs here.

    python -m tests.bench.simulate_scale [--memories 200000] [--dimension N] [--questions 40]

Three steps, each printed. Measured: processor time and pages of a recall in workspaces of several sizes, while the
table grows under them; the last size is predicted from those before, and the error printed. Planned: the tables are put
into parts, files and statistics made as large as they would be (the files are sparse: the planner finds their pages),
and the plans of recall looked at. Computed: hosts, from the costs and the sizes. On the embedded Postgres in a folder
of its own, whose files it reaches; nothing else is touched.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from memories.management.synthetic import Parts
    from workspaces.models import User, Workspace

MEMORIES, WORKSPACES, RECALLS, PARTS = 100_000_000, 100_000, 5_000, 64
CORES, BUSY, RAM = 32, 0.6, 256e9  # of a host; how busy its cores may be; what of memory is there
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000)  # the last is large enough for a vector index
GROWN = (0.5, 0.75, 1.0)  # of the part, at which it is measured
LEAST = int(sum(SIZES) / GROWN[0])
WARM_UP = 12  # beyond the runs after which Postgres may keep a plan
SEGMENT, PAGE = 131_072, 8192
TABLES = ("workspaces_passagevector", "workspaces_passageword", "memories_memory")
_PAGES = "SELECT blks_hit + blks_read, blks_read FROM pg_stat_database WHERE datname = current_database()"
_SIZES = """
SELECT c.relname, pg_total_relation_size(c.oid), greatest(c.reltuples, 1) FROM pg_class c WHERE c.relname = ANY(%s)
"""
_FILES = """
SELECT c.oid::regclass::text, c.relkind, pg_relation_filepath(c.oid), pg_relation_size(c.oid) / 8192, c.reltuples
FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.relkind IN ('r', 'i') AND coalesce(i.indrelid, c.oid) IN (
    SELECT oid FROM pg_class WHERE relname = %s
    UNION SELECT inhrelid FROM pg_inherits WHERE inhparent = %s::regclass)
"""


@dataclass(frozen=True)
class Cost:
    """Of one recall: milliseconds of processor time in Postgres and in this process, pages, and the wait."""

    postgres: float
    python: float
    pages: float
    wall: float


def rows(statement: str, values: Any = None) -> list[tuple[Any, ...]]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def kept_plans() -> int:
    """How often a prepared statement on the index was not planned for its values: such a plan looks into every part."""
    kept = "SELECT coalesce(sum(generic_plans), 0) FROM pg_prepared_statements WHERE statement ~ 'workspaces_passage'"
    return int(rows(kept)[0][0])


def on_cpu(pid: int) -> float:
    """Milliseconds that the process has been on a core."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


class Simulation:
    def __init__(self, memories: int, questions: int, embedder: Any, say: Any) -> None:
        from memories.management import synthetic

        self.memories, self.embedder, self.say = memories, embedder, say
        self.random = np.random.default_rng(7)
        chosen = synthetic.choose(questions + WARM_UP, np.random.default_rng(3))
        self.texts = [synthetic.question(parts, number) for number, parts in enumerate(chosen)]
        self.user: User
        self.places: dict[int, Workspace] = {}
        self.parts: Parts

    def fill(self) -> Iterator[int]:
        """Up to each of ``GROWN``; the measured workspaces are whole from the first on."""
        from django.utils import timezone

        from memories.management import synthetic
        from workspaces.index import embedding
        from workspaces.leaving_machine import Reach
        from workspaces.models import Membership, Role, User, Workspace

        self.user = User.objects.create_user("bench")
        tail = synthetic.long_tail(self.memories, max(1, self.memories * WORKSPACES // MEMORIES), [*SIZES])
        made = Workspace.objects.bulk_create(Workspace(name=f"bench {size}") for size in tail)
        Membership.objects.bulk_create(
            Membership(workspace=each, user=self.user, role=Role.OWNER) for each in made
        )
        self.places = dict(zip(SIZES, made, strict=False))
        self.say("embedding the parts of the sentences")
        self.parts = synthetic.embed_parts(self.embedder)
        embedding.embed_texts([("the first makes the model known", "")], [Reach.here(made[0])])
        first = np.repeat([each.pk for each in made[: len(SIZES)]], SIZES)
        others = np.repeat([each.pk for each in made[len(SIZES) :]], tail[len(SIZES) :])
        self.random.shuffle(first)
        self.random.shuffle(others)
        where, done = np.concatenate([first, others])[: self.memories], 0
        for share in GROWN:
            until = max(len(first), int(share * self.memories))
            for stored in synthetic.fill(
                where[done:until], self.user.pk, self.embedder.name, self.parts, timezone.now(), self.random
            ):
                self.say(f"stored {done + stored:,} of {len(where):,}")
            done = until
            self.settle()
            yield done

    def settle(self) -> None:
        from django.utils import timezone

        from workspaces.index import indexes

        self.say("building indexes, vacuum")
        indexes.keep_up(now=timezone.now())
        rows("VACUUM ANALYZE")

    def cost(self, size: int) -> Cost:
        """Of a recall in the workspace of this size, the questions' vectors at hand."""
        from django.utils import timezone

        from memories.recalling.recall import recall
        from workspaces.leaving_machine import Reach

        place = self.places[size]
        self.embedder.embed(self.texts)
        reach, ((pid,),) = Reach.here(place), rows("SELECT pg_backend_pid()")
        for text in self.texts[:WARM_UP]:
            recall(text, place, self.user, limit=10, reach=reach, now=timezone.now())
        before = on_cpu(pid), time.thread_time(), self._pages(), time.perf_counter()
        for text in self.texts[WARM_UP:]:
            assert recall(text, place, self.user, limit=10, reach=reach, now=timezone.now()).items
        wall = time.perf_counter() - before[3]
        spent = on_cpu(pid) - before[0], 1e3 * (time.thread_time() - before[1]), self._pages() - before[2]
        asked = len(self.texts) - WARM_UP
        return Cost(*(each / asked for each in (*spent, 1e3 * wall)))

    def _pages(self) -> int:
        rows("SELECT pg_stat_force_next_flush()")
        return int(rows(_PAGES)[0][0])

    def web(self) -> float:
        """Milliseconds of a web process for a recall over REST without embedding: all but what the database does."""
        from django.test import Client

        client = Client()
        client.force_login(self.user)
        address = f"/chat/api/workspaces/{self.places[1_000].public_id}/recall"
        taken = []
        for text in self.texts:
            began = time.thread_time()
            answer = client.post(address, {"query": text}, content_type="application/json")
            taken.append(time.thread_time() - began)
            assert answer.status_code == 200, answer.content
        return 1e3 * float(np.mean(taken[WARM_UP:]))

    def embedding(self) -> float:
        """Milliseconds of all cores for a question that nobody asked before and its gist."""
        began = time.process_time()
        for number, text in enumerate(self.texts):
            self.embedder.real.embed([f"{text} {number}", f"{number} {text}"])
        return 1e3 * (time.process_time() - began) / len(self.texts)

    def plans(self, size: int) -> tuple[set[str], int, bool]:
        """The indexes that recall's plans go by, how many parts of one table they name at most, and whether a large
        table is read whole.
        """
        from django.db import connection
        from django.test.utils import CaptureQueriesContext
        from django.utils import timezone

        from memories.recalling.recall import recall
        from workspaces.leaving_machine import Reach

        place = self.places[size]
        with CaptureQueriesContext(connection) as captured:
            recall(self.texts[0], place, self.user, limit=10, reach=Reach.here(place), now=timezone.now())
        asked = [
            query["sql"] for query in captured.captured_queries if any(t in query["sql"] for t in TABLES)
        ]
        used: set[str] = set()
        parts: set[str] = set()
        whole = False
        for statement in asked:
            if not statement.lstrip().startswith(("SELECT", "WITH")):
                continue
            found = rows(f"EXPLAIN (FORMAT json) {statement}")[0][0]
            waiting = [top["Plan"] for top in (json.loads(found) if isinstance(found, str) else found)]
            while waiting:
                node = waiting.pop()
                waiting += node.get("Plans", [])
                relation = node.get("Relation Name", "")
                if relation.startswith(TABLES):
                    whole |= node["Node Type"] == "Seq Scan"
                    parts.add(relation)
                used |= {_index(node["Index Name"])} if "Index Name" in node else set()
        of_table = [sum(each.startswith(f"{table}_") for each in parts) for table in TABLES]
        return used, max(of_table), whole


def _index(name: str) -> str:
    """A part's, as that of the whole table is called; those of large places alike."""
    name = re.sub(rf"^.*_{PARTS}_[0-9]+_", "", name)
    return "passages_near" if name.startswith("passages_near") else name


def blow_up(folder: Path, here: int) -> None:
    """Files and statistics of the tables as they would be with all memories: zeros, where nobody reads."""
    for table in TABLES:
        files = rows(_FILES, [table, table])
        for name, kind, path, pages, tuples in files:
            factor = MEMORIES / here
            # Alike, as by hash over many places, whatever few have brought it here.
            alike = [each for each in files if each[1] == kind and _plain(each[0]) == _plain(name)]
            pages, tuples = (sum(max(0, each[at]) for each in alike) / PARTS for at in (3, 4))
            wanted = int(max(1, pages) * factor)
            extend(folder / path, wanted)
            rows(
                "SELECT pg_restore_relation_stats('schemaname', 'public', 'relname', %s, 'relpages', %s::int, "
                "'reltuples', %s::real, 'relallvisible', %s::int)",
                [name, wanted, float(max(0, tuples) * factor), wanted if kind == "r" else 0],
            )
            if kind == "r":
                by = "workspace_id" if table == "memories_memory" else "place"
                rows(
                    "SELECT pg_restore_attribute_stats('schemaname', 'public', 'relname', %s, 'attname', %s, "
                    "'inherited', false, 'null_frac', 0::real, 'avg_width', 8, 'n_distinct', %s::real)",
                    [name, by, WORKSPACES / PARTS],
                )


def _plain(name: str) -> str:
    return re.sub(rf"_{PARTS}_[0-9]+", "", name)


def extend(path: Path, pages: int) -> None:
    for segment in range(pages // SEGMENT + 1):
        size = min(SEGMENT, pages - segment * SEGMENT) * PAGE
        each = path if not segment else path.with_name(f"{path.name}.{segment}")
        if size and (not each.exists() or each.stat().st_size < size):
            is_new = not each.exists()
            with each.open("ab") as file:
                file.truncate(size)
            if is_new:
                os.chown(each, path.stat().st_uid, path.stat().st_gid)
                each.chmod(0o600)


def mean_cost(costs: dict[int, Cost], sizes: Sequence[int], by_size: bool) -> float:
    """Of Postgres, over workspaces of these sizes that ask alike, or as often as they are large."""
    known = np.log([*costs])
    each = np.interp(np.log(np.maximum(1, sizes)), known, [cost.postgres for cost in costs.values()])
    return float(np.average(each, weights=sizes if by_size else None))


def print_plans(simulation: Simulation, before: dict[int, set[str]]) -> None:
    print(f"\nplans with the sizes of {MEMORIES:,} memories in {PARTS} parts:")
    for size, used in before.items():
        now, parts, whole_read = simulation.plans(size)
        others = ", ".join(sorted(now ^ used)) or "the same indexes as of whole tables here"
        said = "A LARGE TABLE IS READ WHOLE" if whole_read else "no table read whole"
        print(f"  {size:>6,}: {parts} parts, {said}; {others}")


def run(memories: int, dimension: int | None, questions: int) -> None:
    from django.core.management.base import OutputWrapper
    from django.db import connection

    from memories.management import synthetic
    from memories.management.commands.bench_scale import _embedder, _Known
    from memoryhub.llm.registry import get_embedder
    from memoryhub.management.progress import Progress
    from workspaces.index import indexes, partitions

    real, progress = get_embedder(), Progress(OutputWrapper(sys.stderr))
    assert real is not None
    known = _Known(real, dimension, np.random.default_rng(7))
    simulation = Simulation(memories, questions, known, progress.show)
    with _embedder(known):  # type: ignore[arg-type]
        rows("SET max_parallel_workers_per_gather = 0")  # all of a recall's work is its own backend's
        grown: dict[int, dict[int, Cost]] = {}
        for stored in simulation.fill():
            grown[stored] = {size: simulation.cost(size) for size in SIZES}
            progress.end()
            print(f"\n{stored:,} memories in the table; a recall in a workspace of …")
            for size, cost in grown[stored].items():
                print(f"  {size:>6,}: Postgres {cost.postgres:6.2f} ms, recall's Python {cost.python:5.2f} ms, "
                      f"{cost.pages:7,.0f} pages, {cost.wall:6.2f} ms in all")  # fmt: skip
        predicted(grown)
        whole = grown[max(grown)]
        bytes_each = {name: size / count for name, size, count in rows(_SIZES, [[*TABLES]])}
        words = rows("SELECT count(*) FROM workspaces_passageword")[0][0] / memories
        web, embedding = simulation.web(), simulation.embedding()
        before = {size: simulation.plans(size) for size in SIZES}
        partitions.repartition(PARTS, progress.show)
        connection.close()  # what is prepared from now on is planned for parts
        rows("SET max_parallel_workers_per_gather = 0")
        kept = kept_plans()
        costs = {size: simulation.cost(size) for size in SIZES}
        progress.end()
        print(f"\nin {PARTS} parts, Postgres: " + ", ".join(
            f"{size:,}: {cost.postgres:.2f} ms ({cost.postgres - whole[size].postgres:+.2f})"
            for size, cost in costs.items()))  # fmt: skip
        again = kept_plans() - kept
        asked = len(SIZES) * (questions + WARM_UP)
        print(f"of {asked} recalls in parts, statements on its tables took a kept plan {again} times")
        blow_up(Path(rows("SHOW data_directory")[0][0]), memories)
        progress.end()
        print_plans(simulation, {size: used for size, (used, _, _) in before.items()})
    sizes = synthetic.long_tail(MEMORIES, WORKSPACES, [])
    computed(costs, sizes, web, embedding, bytes_each, words, indexes.INDEX_FROM, indexes.MOST_INDEXES)


def predicted(grown: dict[int, dict[int, Cost]]) -> None:
    """The last size of the table from those before (a straight line over its logarithm), and each workspace's cost from
    its two neighbours, as the computation takes it."""
    *before, last = sorted(grown)
    print(
        f"\npredicted for {last:,} memories in the table from {' and '.join(f'{each:,}' for each in before)}:"
    )
    for size in SIZES:
        line = np.polyfit(np.log(before), [grown[each][size].postgres for each in before], 1)
        said, found = float(np.polyval(line, np.log(last))), grown[last][size].postgres
        print(f"  {size:>6,}: {said:6.2f} ms, measured {found:6.2f} ms, error {said / found - 1:+.0%}")
    print("predicted for each size of workspace from the next smaller and larger:")
    for at in range(1, len(SIZES) - 1):
        left, size, right = SIZES[at - 1 : at + 2]
        ends = [grown[last][left].postgres, grown[last][right].postgres]
        said = float(np.interp(np.log(size), np.log([left, right]), ends))
        found = grown[last][size].postgres
        print(f"  {size:>6,}: {said:6.2f} ms, measured {found:6.2f} ms, error {said / found - 1:+.0%}")


def computed(
    costs: dict[int, Cost],
    sizes: Sequence[int],
    web: float,
    embedding: float,
    bytes_each: dict[str, float],
    words: float,
    index_from: int,
    most_indexes: int,
) -> None:
    middle, largest = int(np.median(sizes)), max(sizes)
    print(f"\nfor {RECALLS:,} recalls a second, {MEMORIES:,} memories, {len(sizes):,} workspaces "
          f"(half under {middle:,}, the largest {largest:,}); hosts of {CORES} cores, {BUSY:.0%} busy")  # fmt: skip
    for title, by_size in (("each asks alike", False), ("each asks as often as it is large", True)):
        postgres = mean_cost(costs, sizes, by_size)
        print(f"  {title}:")
        for name, each in (("Postgres", postgres), ("web", web), ("embedding", embedding)):
            cores = RECALLS * each / 1000
            hosts = np.ceil(cores / BUSY / CORES)
            print(f"    {name:10} {each:6.2f} ms a recall, {cores:6,.0f} cores, {hosts:3.0f} hosts")
    large = sum(size >= index_from for size in sizes)
    print(
        f"  {large:,} workspaces are large enough for a vector index; {PARTS} parts may have {PARTS * most_indexes:,}"
    )
    per = {
        "vectors": bytes_each[TABLES[0]],
        "words": bytes_each[TABLES[1]] * words,
        "memories": bytes_each[TABLES[2]],
    }
    for name, each in per.items():
        size = each * MEMORIES / 1e9
        print(f"  {name}: {each:,.0f} bytes a memory, {size:,.0f} GB, {size / PARTS:.1f} GB a part")
    total = sum(per.values()) * MEMORIES
    print(f"  memory of {RAM / 1e9:.0f} GB holds {0.75 * RAM / total:.0%} of all without a disk")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--memories", type=int, default=200_000)
    parser.add_argument("--dimension", type=int)
    parser.add_argument("--questions", type=int, default=40)
    args = parser.parse_args()
    if args.memories < LEAST:
        parser.error(
            f"--memories: {LEAST:,} or more, so that the table grows around the workspaces measured."
        )
    with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as folder:
        os.environ |= {"MEMORYHUB_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
        os.environ |= {"MEMORYHUB_TURN_RATE": "1000000"}
        os.environ.pop("DATABASE_URL", None)
        Path(folder).chmod(0o755)
        import django

        django.setup()
        from django.conf import settings
        from django.core.management import call_command

        from memoryhub.management.database import running_database

        settings.ALLOWED_HOSTS = ["*"]
        settings.DATABASES["default"]["OPTIONS"].pop("pool", None)
        with running_database():
            call_command("migrate", interactive=False, verbosity=0)
            rows("ALTER SYSTEM SET autovacuum = off; ")
            rows("SELECT pg_reload_conf()")
            run(args.memories, args.dimension, args.questions)


if __name__ == "__main__":
    main()
