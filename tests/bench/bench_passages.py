"""Measure search in documents beside recall of as many memories.

    python -m tests.bench.command bench_passages --passages 1000000

Fills a scratch database with so many made-up memories and as many passages of documents of a hundred each, in places
of 100, 5,000 and 100,000 of both and a long tail of others, asks the same questions of both in turn with the questions'
vectors at hand, and prints p50 and p95 and their ratio. The vectors are those of ``bench_scale``.
"""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection, transaction
from django.utils import timezone
from numpy.typing import NDArray

from memories.models import Memory
from memories.models.memory import MEMORY
from memories.recalling.recall import recall
from memoryhub.database.startup import running_database
from memoryhub.llm.registry import get_embedder
from memoryhub.management import Progress
from tests.bench import bench_scale, synthetic
from tests.bench.row_copies import copy_places
from workspaces.data_policy import DataPolicy
from workspaces.documents.search import DOCUMENTS, find_passages
from workspaces.index import embedding, index_maintenance
from workspaces.index.embedding import copy_vectors
from workspaces.index.hybrid_search import index_words
from workspaces.index.question_gist import gist_of
from workspaces.models import Document, DocumentPassage, Membership, Role, User, Workspace
from workspaces.models.documents import DOCUMENT

A_DOCUMENT = 100  # passages
SENTENCES = 5  # in a passage, which has about 400 characters
BATCH = 5_000
A_TAIL = 90_000  # of each are created for the long tail; the rest are copies in other workspaces
WARM = 3  # questions that are not counted
_STAGE = """
CREATE TEMP TABLE stage (document bigint, workspace bigint, number int, begins int, text text) ON COMMIT DROP
"""
_FROM_STAGE = """
WITH made AS (
    INSERT INTO workspaces_documentpassage (document_id, workspace_id, number, page, heading, begins, text, around)
    SELECT document, workspace, number, 0, '', begins, text,
           right(coalesce(lag(text) OVER w, ''), 250) || text || left(coalesce(lead(text) OVER w, ''), 250)
    FROM stage WINDOW w AS (PARTITION BY document ORDER BY number)
    RETURNING id, document_id, number)
SELECT array_agg(id ORDER BY document_id, number) FROM made
"""


def fill(
    places: NDArray[np.int64], parts: synthetic.Parts, model: str, random: np.random.Generator
) -> Iterator[int]:
    """Create a passage for each entry of the sorted ``places``: a document is in one workspace. Yield their number."""
    for start in range(0, len(places), BATCH):
        part = places[start : start + BATCH]
        chosen = synthetic.choose(len(part) * SENTENCES, random)
        texts = [" ".join(map(synthetic.sentence, chosen[at :: len(part)])) + "\n" for at in range(len(part))]
        said = sum(
            synthetic.vectors(chosen[n * len(part) : (n + 1) * len(part)], parts, random)
            for n in range(SENTENCES)
        )
        vectors = said / np.linalg.norm(said, axis=1, keepdims=True)
        with transaction.atomic():
            ids = _store(part, texts)
            copy_vectors(DOCUMENTS.number, ids, part.tolist(), model, vectors)
            index_words(DOCUMENTS, ids)
        yield start + len(part)


def _store(places: NDArray[np.int64], texts: list[str]) -> list[int]:
    """Store the passages. Return their keys, in order."""
    cuts = [
        at for at in range(len(places)) if at == 0 or places[at] != places[at - 1] or at % A_DOCUMENT == 0
    ]
    documents = Document.objects.bulk_create(
        Document(workspace_id=int(places[at]), title="Bench", file_name=os.urandom(16).hex(), media_type="text/plain",
                 size=1, sha256=os.urandom(32).hex(), status="ready")
        for at in cuts
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_STAGE)
        with cursor.copy("COPY stage FROM STDIN") as copy:
            for document, low, high in zip(documents, cuts, [*cuts[1:], len(places)], strict=True):
                for at in range(low, high):
                    copy.write_row((document.pk, int(places[at]), at - low, 400 * (at - low), texts[at]))
        cursor.execute(_FROM_STAGE)
        return list(cursor.fetchone()[0])


def measure(
    workspace: Workspace, user: User, texts: list[str], embedder: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the seconds of each question to memories, and to documents."""
    times: list[tuple[float, float]] = []
    for number, text in enumerate(texts):
        # The effect of embedding a new question on the processor's caches
        embedder.real.embed([f"{number} {text}"])
        pair = [0.0, 0.0]
        for which in (0, 1) if number % 2 else (1, 0):
            began = time.perf_counter()
            if which:
                find_passages(text, workspace, user, limit=10, policy=DataPolicy.here(workspace))
            else:
                recall(text, workspace, user, limit=10, policy=DataPolicy.here(workspace), now=timezone.now())
            pair[which] = time.perf_counter() - began
        times.append((pair[0], pair[1]))
    memories, documents = np.array(times[WARM:]).T
    return memories, documents


def _for_much() -> None:
    """Configure the scratch database for fast filling, without durability."""
    with connection.cursor() as cursor:
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        for setting in ("synchronous_commit = off", "maintenance_work_mem = '1GB'"):
            cursor.execute(f"ALTER DATABASE {name} SET {setting}")
    connection.close()  # settings apply from the next connection on


class Command(BaseCommand):
    help = "Fill a scratch database with made-up memories and as many passages of documents, and ask both."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--passages", type=int, default=100_000, help="and as many memories (100,000)")
        parser.add_argument("--questions", type=int, default=60, help="asked in each workspace (60)")

    def handle(self, *args: Any, passages: int, questions: int, **options: Any) -> None:
        real, self.random = get_embedder(), np.random.default_rng(7)
        if real is None:
            raise CommandError("bench_passages needs an embedder: none is configured.")
        self.progress = Progress(self.stderr)
        self.embedder = bench_scale._Known(real, None, self.random)
        with (
            running_database(),
            bench_scale._scratch_database(self.progress.show),
            bench_scale._embedder(self.embedder),
        ):
            fixed = [size for size in bench_scale.SIZES if size <= passages // 2]
            user, made = self._fill(passages, fixed)
            for workspace, size in zip(made, fixed, strict=False):
                self._measure(workspace, user, size, questions)

    def _fill(self, passages: int, fixed: list[int]) -> tuple[User, list[Workspace]]:
        rest = passages - sum(fixed)
        times = max(1, rest // A_TAIL)  # copies of the long tail
        sizes = synthetic.long_tail(sum(fixed) + rest // times, max(10, rest // times // 1000), fixed)
        user = User.objects.create_user("bench")
        made = Workspace.objects.bulk_create(
            Workspace(name=f"bench {size}") for size in sizes + sizes[len(fixed) :] * (times - 1)
        )
        Membership.objects.bulk_create(
            Membership(workspace=workspace, user=user, role=Role.OWNER) for workspace in made
        )
        parts = synthetic.embed_parts(self.embedder)
        embedding.embed_texts([("the first makes the model known", "")], [DataPolicy.here(made[0])])
        keys = [workspace.pk for workspace in made[: len(sizes)]]
        places, tail, model, now = (
            np.repeat(keys, sizes),
            keys[len(fixed) :],
            self.embedder.name,
            timezone.now(),
        )
        of_memories, of_documents = self.random.spawn(2)
        began = time.monotonic()
        _for_much()
        with ThreadPoolExecutor(2) as both:
            memories = synthetic.fill(places, user.pk, model, parts, now, of_memories, batch=BATCH)
            documents = fill(places, parts, model, of_documents)
            filling = [
                both.submit(self._fill_kind, kind, each, tail, times)
                for kind, each in ((MEMORY, memories), (DOCUMENT, documents))
            ]
            for each in filling:
                each.result()
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        self.progress.end()
        self.stdout.write(
            f"{Memory.objects.count():,} memories and {DocumentPassage.objects.count():,} passages of "
            f"{Document.objects.count():,} documents, filled in {time.monotonic() - began:.0f} s"
        )
        began = time.monotonic()
        said = index_maintenance.maintain_indexes(now=timezone.now())
        self.progress.end()
        self.stdout.write(f"indexes: {said} ({time.monotonic() - began:.0f} s)")
        return user, made

    def _fill_kind(self, kind: int, filling: Iterator[int], tail: list[int], times: int) -> None:
        """Fill the table of one kind, in a thread with its own connection."""
        try:
            for stored in filling:
                self.progress.show(f"{stored:,} of kind {kind}")
            for copy in range(1, times):
                copy_places(kind, tail, copy)
                self.progress.show(f"the long tail of kind {kind} for the {copy + 1}th time")
        finally:
            connection.close()

    def _measure(self, workspace: Workspace, user: User, size: int, questions: int) -> None:
        chosen = synthetic.choose(questions + WARM, np.random.default_rng(size))
        texts = [synthetic.question(each, number) for number, each in enumerate(chosen)]
        self.embedder.embed([*texts, *map(gist_of, texts)])
        memories, documents = measure(workspace, user, texts, self.embedder)
        ratio = np.median(documents) / np.median(memories)
        said = f"memories {bench_scale._ms(memories)}, documents {bench_scale._ms(documents)}"
        self.stdout.write(f"{size:>9,} of each: {said} ms (p50 / p95), {ratio:.2f} times")
