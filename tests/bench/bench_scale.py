"""Measure growth with the number of memories, in a scratch database.

python -m tests.bench.command bench_scale --memories 1000000 --workspaces 1000
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql

from memories.recalling.recall import Recall, recall
from memories.writing.drafts import Draft
from memoryhub.database.startup import close_connections, psycopg_settings, running_database
from memoryhub.llm.base import Embedder, Vectors
from memoryhub.llm.registry import get_embedder
from memoryhub.management import Progress
from tests.bench import synthetic
from tests.bulk import save_memories
from workspaces.data_policy import DataPolicy
from workspaces.index import embedding, index_maintenance
from workspaces.index.embedding import Embedded
from workspaces.models import EmbeddingModel, Membership, Role, User, Workspace

SIZES = (100, 5_000, 100_000)
FIRST = 10_000  # rows of the small table that a small workspace is compared with
SMALL = 100
ROUNDS = 3  # repetitions, in the small and the large table in turn
WORDS = (("memories", 50_000, "how many in all"), ("workspaces", 50, "over how many workspaces, unevenly"))
_BARE = """
SELECT ref FROM workspaces_passagevector
WHERE place = %s AND kind = 1 AND model = %s AND dimension = %s AND live ORDER BY embedding <=> %s LIMIT 10
"""


class _Known:
    """An embedder with the questions' vectors precomputed, so that recall is timed without it; any dimension."""

    def __init__(self, real: Embedder, dimension: int | None, random: np.random.Generator) -> None:
        self.real, self.known = real, dict[str, Vectors]()
        size = real.embed(["size"]).shape[1]
        self.turn = (
            None
            if dimension in {None, size}
            else random.standard_normal((size, dimension or size), dtype=np.float32)
        )
        self.name = real.name if self.turn is None else f"{real.name} turned to {dimension}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        missing = [text for text in texts if text not in self.known]
        if missing:
            made = self.real.embed(missing)
            if self.turn is not None:
                made = made @ self.turn
                made /= np.linalg.norm(made, axis=1, keepdims=True)
            self.known |= dict(zip(missing, made, strict=True))
        return np.stack([self.known[text] for text in texts])

    embed_question = embed


class Command(BaseCommand):
    help = "Fill a scratch database with made-up memories, and print how recall and import fare as it grows."

    def add_arguments(self, parser: CommandParser) -> None:
        for name, default, what in WORDS:
            parser.add_argument(f"--{name}", type=int, default=default, help=f"{what} ({default:,})")
        parser.add_argument("--dimension", type=int, help="of the vectors; the embedder's own unless given")
        parser.add_argument("--questions", type=int, default=60, help="asked in each workspace (60)")
        parser.add_argument("--inserts", type=int, default=2_000, help="memories to import (2,000)")
        parser.add_argument("--seed", type=int, default=7)

    def handle(self, *args: Any, **options: Any) -> None:
        real = get_embedder()
        if real is None:
            raise CommandError("bench_scale needs an embedder: none is configured.")
        self.random = np.random.default_rng(options["seed"])
        self.embedder = _Known(real, options["dimension"], self.random)
        self.questions, self.inserts = options["questions"], options["inserts"]
        self.progress = Progress(self.stderr)
        with running_database(), _scratch_database(self.progress.show) as keep_copy, _embedder(self.embedder):
            self._run(options["memories"], options["workspaces"], keep_copy)

    def _run(self, memories: int, workspaces: int, keep_copy: Callable[[], str]) -> None:
        fixed = [size for size in SIZES if size <= memories // 2]
        sizes = synthetic.long_tail(memories, workspaces, fixed)
        self.user = User.objects.create_user("bench")
        made = Workspace.objects.bulk_create(Workspace(name=f"bench {size}") for size in sizes)
        Membership.objects.bulk_create(
            Membership(workspace=workspace, user=self.user, role=Role.OWNER) for workspace in made
        )
        self.progress.show("embedding the parts of the sentences")
        self.parts = synthetic.embed_parts(self.embedder)
        embedding.embed_texts([("the first makes the model known", "")], [DataPolicy.here(made[0])])
        places = np.repeat([workspace.pk for workspace in made], sizes)
        self.random.shuffle(places)
        # The small workspace is complete among the first rows, so that it is the same at both sizes of the table.
        places = np.concatenate([places[places == made[0].pk], places[places != made[0].pk]])
        early = min(FIRST, len(places) // 2)
        self._fill(places[:early], 0, len(places))
        small_table = keep_copy()
        self._fill(places[early:], early, len(places))
        self.progress.show("building indexes")
        began = time.monotonic()
        said = index_maintenance.maintain_indexes(now=timezone.now())
        self.stdout.write(f"indexes: {said} ({time.monotonic() - began:.0f} s)")
        self._vacuum()
        self._print([(size, *self._measure(made[n], size)) for n, size in enumerate(fixed)])
        self._print_growth(made[0], small_table, early, len(places))
        self._import()

    def _fill(self, places: NDArray[np.int64], before: int, total: int) -> None:
        began = time.monotonic()
        for done in synthetic.fill(
            places, self.user.pk, self.embedder.name, self.parts, timezone.now(), self.random
        ):
            self.progress.show(
                f"stored {before + done:,} of {total:,} ({done / (time.monotonic() - began):,.0f}/s)"
            )
        self._vacuum()

    def _vacuum(self) -> None:
        self.progress.show("vacuum, as autovacuum would")
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")

    def _measure(self, workspace: Workspace, size: int) -> tuple[NDArray, NDArray, NDArray, float]:
        """Return the seconds of embedding, of vector search alone and of recall for each question, and recall@10."""
        texts = self._questions(size)
        times: list[tuple[float, float, float]] = []
        shares = []
        for number, text in enumerate(texts):
            self.progress.show(f"asked {number + 1} of {len(texts)} in {workspace.name}")
            exact = self._exactly(text, workspace)
            began = time.perf_counter()
            self._embed_anew(text, number)
            embedded = time.perf_counter()
            self._bare(text, workspace)
            searched = time.perf_counter()
            found = [item.memory.pk for item in self._recall(text, workspace).items]
            times.append(
                (embedded - began, searched - embedded, time.perf_counter() - searched),
            )
            shares.append(len(set(found) & set(exact)) / max(1, len(exact)))
        columns = np.array(times).T
        return columns[0], columns[1], columns[2], float(np.mean(shares))

    def _questions(self, seed: int) -> list[str]:
        chosen = synthetic.choose(self.questions, np.random.default_rng(seed))
        return [synthetic.question(parts, number) for number, parts in enumerate(chosen)]

    def _embed_anew(self, text: str, number: int) -> None:
        """Embed a question as recall does for one never asked before: itself and its gist."""
        self.embedder.real.embed([f"{text} {secrets.token_hex(2)}", f"{number} {text}"])

    def _bare(self, text: str, workspace: Workspace) -> None:
        vector = self.embedder.embed([text])[0]
        with connection.cursor() as cursor:
            cursor.execute(
                _BARE, [workspace.pk, self.embedder.name, len(vector), HalfVector(vector).to_text()]
            )
            cursor.fetchall()

    def _exactly(self, text: str, workspace: Workspace) -> list[int]:
        """Return the same ranking by exact search: every vector and every memory with a matching word is compared."""
        return [item.memory.pk for item in self._recall(text, workspace, exact=True).items]

    def _recall(self, text: str, workspace: Workspace, *, exact: bool = False) -> Recall:
        policy, now = DataPolicy.here(workspace), timezone.now()
        return recall(text, workspace, self.user, limit=10, exact=exact, policy=policy, now=now)

    def _print(self, rows: list[tuple[int, NDArray, NDArray, NDArray, float]]) -> None:
        self.progress.end()
        heads = ("workspace", "embedding", "bare vector", "whole recall", "to embed", "to bare", "recall@10")
        self.stdout.write("".join(f"{head:>16}" for head in heads) + "   (p50 / p95 ms; ratios of p50)")
        for size, embedded, bare, whole, share in rows:
            cells = [f"{size:,}", _ms(embedded), _ms(bare), _ms(whole)]
            cells += [
                f"{np.median(whole) / np.median(embedded):.2f}",
                f"{np.median(whole) / np.median(bare):.2f}",
            ]
            self.stdout.write("".join(f"{cell:>16}" for cell in [*cells, f"{share:.3f}"]))

    def _print_growth(self, workspace: Workspace, small_table: str, early: int, rows: int) -> None:
        """Print times of the same workspace in the small and in the large table, question by question in turn."""
        before, after = _connection_to(small_table), connections[DEFAULT_DB_ALIAS]
        questions = self._questions(SMALL) * ROUNDS
        times: list[tuple[float, float]] = []
        for number, text in enumerate(questions):
            self.progress.show(f"asked {number + 1} of {len(questions)} in the small table and in the large")
            pair = [0.0, 0.0]
            for which in (0, 1) if number % 2 else (1, 0):
                self._embed_anew(text, number)
                with _connected(after if which else before):
                    began = time.perf_counter()
                    self._recall(text, workspace)
                    pair[which] = time.perf_counter() - began
            times.append((pair[0], pair[1]))
        small, large = np.array(times[len(questions) // ROUNDS :]).T
        before.close()
        self.progress.end()
        self.stdout.write(
            f"a workspace of {SMALL}: {_ms(small)} ms among {early:,} memories, {_ms(large)} ms among {rows:,}, "
            f"asked in turn: {np.median(large) / np.median(small):.2f} times"
        )

    def _import(self) -> None:
        # A new user, since the number of workspaces of one user is limited
        user = User.objects.create_user("bench import")
        for given in (False, True):
            workspace = Workspace.objects.create(name="bench import")
            chosen = synthetic.choose(self.inserts, self.random)
            drafts = [
                Draft(content=synthetic.sentence(parts), workspace=workspace, author=user) for parts in chosen
            ]
            vectors = [
                Embedded(self.embedder.name, vector, vector)
                for vector in synthetic.vectors(chosen, self.parts, self.random)
            ]
            self.progress.show(f"importing {self.inserts:,}")
            began = time.monotonic()
            save_memories(drafts, by=user, now=timezone.now(), vectors=vectors if given else None)
            rate = self.inserts / (time.monotonic() - began)
            self.stdout.write(f"import {'with vectors given' if given else 'with embedding'}: {rate:,.0f}/s")
        self.progress.end()


def _ms(seconds: NDArray) -> str:
    return f"{1000 * np.median(seconds):.1f} / {1000 * np.percentile(seconds, 95):.1f}"


@contextmanager
def _embedder(known: _Known) -> Iterator[None]:
    """Make recall and import use this embedder during the measurement."""
    usual = embedding.get_embedder, embedding.vectors_of

    def vectors_of(model: EmbeddingModel, texts: Sequence[str], *, asked: bool = False) -> Vectors:
        return known.embed(texts)

    embedding.get_embedder, embedding.vectors_of = lambda: known, vectors_of
    try:
        yield
    finally:
        embedding.get_embedder, embedding.vectors_of = usual


def _connection_to(name: str) -> BaseDatabaseWrapper:
    """Return a separate connection, outside the pool, to another database of the same server."""
    other = connections.create_connection(DEFAULT_DB_ALIAS)
    options = {key: value for key, value in other.settings_dict["OPTIONS"].items() if key != "pool"}
    other.settings_dict = {**other.settings_dict, "NAME": name, "OPTIONS": options}
    return other


@contextmanager
def _connected(to: BaseDatabaseWrapper) -> Iterator[None]:
    """Send the project's queries to this connection."""
    usual = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = to
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = usual


@contextmanager
def _scratch_database(say: Any) -> Iterator[Callable[[], str]]:
    """Create a database beside the real one; yield a function that copies it. Both are dropped at the end."""
    name, usual = f"bench_scale_{secrets.token_hex(4)}", settings.DATABASES["default"]["NAME"]
    copy = f"{name}_before"

    def keep_copy() -> str:
        close_connections()  # and the pool, which would go on to serve the database before
        outside.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(copy), sql.Identifier(name))
        )
        return copy

    with psycopg.connect(**psycopg_settings(), autocommit=True) as outside:
        outside.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        close_connections()
        try:
            settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name
            say("migrating a scratch database")
            call_command("migrate", interactive=False, verbosity=0)
            yield keep_copy
        finally:
            close_connections()
            settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = usual
            for each in (name, copy):
                outside.execute(
                    sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(each))
                )
