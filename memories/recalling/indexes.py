"""Indexes where they pay and nowhere else: large places get a vector index of their own and counts made beforehand.

One index over all vectors would be slow for small places and silently short of results (docs/decisions/0003), so each
large place has a partial one. Small and middling places are scanned exactly: that is quicker than it takes to keep an
index up to date. Nothing depends on this job having run: without it recall gives the same, slower.
"""

from __future__ import annotations

import logging
import time
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b

from django.db import connection, transaction
from psycopg import Connection, sql
from psycopg import connect as psycopg_connect

from memories.models import CommonWord, PlaceStatistics, VectorIndex
from memories.models.memory import PLACE
from memories.recalling.candidates import MOST_DIMENSIONS_OF_HALFVEC_INDEX
from memoryhub.management.database import psycopg_settings

logger = logging.getLogger(__name__)
PREFIX = "memories_near_"
INDEX_FROM = 20_000  # live vectors of one place and model: from here an exact scan takes tens of milliseconds
DROP_BELOW = 12_000  # lower, so that a place near the limit does not gain and lose an index every few minutes
MOST_INDEXES = 32  # each one costs every insert and every plan a little
MOST_DIMENSIONS = 64_000  # of pgvector's bit indexes
COUNT_FROM = 2_000  # live memories of a place: from here counting them for every question is what takes time
FORGET_COUNTS_BELOW = 1_000
COMMON_FROM = (
    0.01  # share of a place's memories in which a word is common: its memories are counted beforehand
)
RECOUNT_AFTER = 0.05  # of a place's memories have come or gone since it was counted
LOCK = 7_221_903_441  # one such job at a time, whatever process it runs in

_LIVE_VECTORS = """
SELECT place, model, dimension, count(*) FROM memories_memoryembedding WHERE live
GROUP BY place, model, dimension HAVING count(*) >= %s ORDER BY count(*) DESC
"""
_LIVE_MEMORIES = f"""
SELECT {PLACE} AS place, count(*) FROM memories_memory WHERE deleted_at IS NULL
GROUP BY place HAVING count(*) >= %s
"""  # noqa: S608  constants only
_COMMON = """
INSERT INTO memories_commonword (place, lexeme, memory_count)
SELECT place, lexeme, count(*) FROM memories_memoryword WHERE place = %s
GROUP BY place, lexeme HAVING count(*) >= %s
"""
_PRESENT = """
SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = 'memories_memoryembedding'::regclass AND starts_with(c.relname, %s)
"""
_HALFVEC = "((embedding::halfvec({size})) halfvec_cosine_ops)"
_BITS = "((binary_quantize(embedding)::bit({size})) bit_hamming_ops)"


@dataclass(frozen=True)
class Wanted:
    """One place's vectors by one model, and how many are live."""

    place: int
    model: str
    dimension: int
    vectors: int

    @property
    def name(self) -> str:
        what = blake2b(f"{self.model} {self.dimension}".encode(), digest_size=6).hexdigest()
        return f"{PREFIX}{'of_user_' if self.place < 0 else ''}{abs(self.place)}_{what}"


@dataclass
class Upkeep:
    """What one run did, said in a sentence."""

    built: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    counted: int = 0
    busy: bool = False

    def __str__(self) -> str:
        if self.busy:
            return "another run is at it"
        said = [f"built {name}" for name in self.built] + [f"dropped {name}" for name in self.dropped]
        if self.counted:
            said.append(f"counted the words of {self.counted} large places")
        return ", ".join(said) or "nothing to do"


def keep_up(*, now: datetime) -> Upkeep:
    """Build what pays, drop what no longer does or was left half-made, and count large places anew.

    Outside every transaction, on a connection of its own: an index is built beside running writes. A job killed in
    the middle leaves an index that Postgres finishes, or an invalid one that the next run drops; until the building
    has ended, its lock keeps other runs away.
    """
    done = Upkeep()
    with closing(psycopg_connect(**psycopg_settings(), autocommit=True)) as own:
        locked = own.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone()
        if not locked or not locked[0]:
            done.busy = True
            return done
        _keep_indexes(own, done, now)
        _keep_counts(done, now)
    if str(done) != "nothing to do":
        logger.info("Indexes of memories: %s", done)
    return done


def _keep_indexes(own: Connection, done: Upkeep, now: datetime) -> None:
    counts = {
        (place, model, size): Wanted(place, model, size, vectors)
        for place, model, size, vectors in own.execute(_LIVE_VECTORS, [DROP_BELOW]).fetchall()
        if size <= MOST_DIMENSIONS
    }
    present: dict[str, bool] = dict(own.execute(_PRESENT, [PREFIX]).fetchall())
    wanted = [found for found in counts.values() if found.vectors >= INDEX_FROM or present.get(found.name)][
        :MOST_INDEXES
    ]
    names = {found.name for found in wanted}
    for name, valid in present.items():
        if not valid or name not in names:
            _drop(own, name)
            done.dropped.append(name)
    VectorIndex.objects.exclude(name__in=[name for name in names if present.get(name)]).delete()
    recorded = set(VectorIndex.objects.values_list("name", flat=True))
    for found in wanted:
        began = time.monotonic()
        if not present.get(found.name):
            _build(own, found)
            done.built.append(found.name)
        if found.name not in recorded:  # also one that Postgres finished after its job had been killed
            _record(found, time.monotonic() - began, now)


def _build(own: Connection, wanted: Wanted) -> None:
    kind = _HALFVEC if wanted.dimension <= MOST_DIMENSIONS_OF_HALFVEC_INDEX else _BITS
    size = sql.Literal(wanted.dimension)
    own.execute(
        sql.SQL(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON memories_memoryembedding USING hnsw "
            + kind
            + " WHERE place = {place} AND model = {model} AND dimension = {size} AND live"
        ).format(
            name=sql.Identifier(wanted.name),
            place=sql.Literal(wanted.place),
            model=sql.Literal(wanted.model),
            size=size,
        )
    )


def _record(wanted: Wanted, seconds: float, now: datetime) -> None:
    VectorIndex.objects.update_or_create(
        name=wanted.name,
        defaults={
            "place": wanted.place,
            "model": wanted.model,
            "dimension": wanted.dimension,
            "vector_count": wanted.vectors,
            "seconds": seconds,
            "built_at": now,
        },
    )


def _drop(own: Connection, name: str) -> None:
    VectorIndex.objects.filter(name=name).delete()  # first: nobody is to look for it any more
    own.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(name)))


def _keep_counts(done: Upkeep, now: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_LIVE_MEMORIES, [FORGET_COUNTS_BELOW])
        live = dict(cursor.fetchall())
    known = dict(PlaceStatistics.objects.values_list("place", "memory_count"))
    small = [place for place in known if place not in live]
    with transaction.atomic():
        CommonWord.objects.filter(place__in=small).delete()
        PlaceStatistics.objects.filter(place__in=small).delete()
    for place, memories in live.items():
        before = known.get(place)
        if before is None and memories < COUNT_FROM:
            continue
        if before is None or abs(memories - before) > RECOUNT_AFTER * before:
            count_place(place, memories, now=now)
            done.counted += 1


def count_place(place: int, memories: int, *, now: datetime) -> None:
    """Note how many live memories a place has and in how many its common words stand."""
    with transaction.atomic():
        CommonWord.objects.filter(place=place).delete()
        with connection.cursor() as cursor:
            cursor.execute(_COMMON, [place, COMMON_FROM * memories])
        PlaceStatistics.objects.update_or_create(
            place=place, defaults={"memory_count": memories, "counted_at": now}
        )
