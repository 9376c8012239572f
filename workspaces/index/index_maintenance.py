"""Vector indexes and cached counts for large scopes.

A single index over all vectors would be slow for small scopes and could return too few results (docs/decisions/0003).
Therefore each large scope has a partial index per kind. Smaller scopes are scanned exactly, which costs less than an
index. Without this job, recall gives the same results, only slower.
"""

import logging
import time
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b

from django.db import connection, transaction
from psycopg import Connection, sql
from psycopg import connect as psycopg_connect

from memoryhub.database.startup import psycopg_settings
from workspaces.index.hybrid_search import MOST_DIMENSIONS_OF_HALFVEC_INDEX
from workspaces.models import CommonWord, PlaceStatistics, VectorIndex
from workspaces.models.index import Kind, kinds

logger = logging.getLogger(__name__)
PREFIX = "passages_near_"
INDEX_FROM = 20_000  # live vectors; from here an exact scan takes tens of milliseconds
DROP_BELOW = 12_000  # lower than INDEX_FROM, so that a scope near the limit does not flip
MOST_INDEXES = 32  # each index slows every insert and query plan a little
MOST_DIMENSIONS = 64_000  # of pgvector's bit indexes
COUNT_FROM = 2_000  # live passages of a kind in a scope; from here counting per query is slow
FORGET_COUNTS_BELOW = 1_000
COMMON_FROM = 0.01  # share of a scope's passages from which a word is common and its count cached
RECOUNT_AFTER = 0.05  # share of a scope's passages that changed since the last count
LOCK = 7_221_903_441  # advisory lock: one such job at a time

_LIVE_VECTORS = """
SELECT place, kind, model, dimension, count(*) FROM workspaces_passagevector WHERE live
GROUP BY place, kind, model, dimension HAVING count(*) >= %s ORDER BY count(*) DESC
"""
_COMMON = """
INSERT INTO workspaces_commonword (place, kind, lexeme, passage_count)
SELECT place, kind, lexeme, count(*) FROM workspaces_passageword WHERE place = %s AND kind = %s
GROUP BY place, kind, lexeme HAVING count(*) >= %s
"""
_PRESENT = """
SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = 'workspaces_passagevector'::regclass AND starts_with(c.relname, %s)
"""
_HALFVEC = "((embedding::halfvec({size})) halfvec_cosine_ops)"
_BITS = "((binary_quantize(embedding)::bit({size})) bit_hamming_ops)"


@dataclass(frozen=True)
class Wanted:
    """A candidate for a vector index: a scope, a kind and a model, with the number of their live vectors."""

    place: int
    kind: int
    model: str
    dimension: int
    vectors: int

    @property
    def name(self) -> str:
        what = blake2b(f"{self.model} {self.dimension}".encode(), digest_size=6).hexdigest()
        return f"{PREFIX}{'of_user_' if self.place < 0 else ''}{abs(self.place)}_{self.kind}_{what}"


@dataclass
class Upkeep:
    """The changes made by one run. Its string is a summary."""

    built: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    counted: int = 0
    busy: bool = False

    def __str__(self) -> str:
        if self.busy:
            return "another run is at it"
        parts = [f"built {name}" for name in self.built] + [f"dropped {name}" for name in self.dropped]
        if self.counted:
            parts.append(f"counted the words of {self.counted} large places")
        return ", ".join(parts) or "nothing to do"


def maintain_indexes(*, now: datetime) -> Upkeep:
    """Build the indexes that pay off, drop invalid and unneeded ones, and recount large scopes.

    Call it outside any transaction, because indexes are built concurrently with writes, on a separate connection. If
    the job is killed, Postgres either finishes the index or leaves an invalid one, which the next run drops.
    """
    done = Upkeep()
    with closing(psycopg_connect(**psycopg_settings(), autocommit=True)) as own:
        locked = own.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone()
        if not locked or not locked[0]:
            done.busy = True
            return done
        _keep_indexes(own, done, now)
        for kind in kinds():
            _keep_counts(done, kind, now)
    if str(done) != "nothing to do":
        logger.info("Indexes of passages: %s", done)
    return done


def _keep_indexes(own: Connection, done: Upkeep, now: datetime) -> None:
    counts = [
        Wanted(*candidate)
        for candidate in own.execute(_LIVE_VECTORS, [DROP_BELOW]).fetchall()
        if candidate[3] <= MOST_DIMENSIONS
    ]
    present: dict[str, bool] = dict(own.execute(_PRESENT, [PREFIX]).fetchall())
    valid = {name for name, is_valid in present.items() if is_valid}
    VectorIndex.objects.exclude(name__in=valid).delete()
    recorded = set(VectorIndex.objects.values_list("name", flat=True))
    paying = [candidate for candidate in counts if candidate.vectors >= INDEX_FROM or candidate.name in valid]
    wanted = paying[:MOST_INDEXES]
    for candidate in wanted:
        began = time.monotonic()
        if candidate.name not in valid:
            if candidate.name in present:
                _drop(own, candidate.name, done)
            build(own, candidate)
            done.built.append(candidate.name)
        if candidate.name not in recorded:  # also an index that Postgres finished after the job was killed
            VectorIndex.objects.create(
                name=candidate.name,
                place=candidate.place,
                kind=candidate.kind,
                model=candidate.model,
                dimension=candidate.dimension,
                vector_count=candidate.vectors,
                seconds=time.monotonic() - began,
                built_at=now,
            )
    for name in present.keys() - {candidate.name for candidate in wanted}:
        _drop(own, name, done)


def build(own: Connection, wanted: Wanted) -> None:
    index = _HALFVEC if wanted.dimension <= MOST_DIMENSIONS_OF_HALFVEC_INDEX else _BITS
    own.execute(
        sql.SQL(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON workspaces_passagevector USING hnsw "
            + index
            + " WHERE place = {place} AND kind = {kind} AND model = {model} AND dimension = {size} AND live"
        ).format(
            name=sql.Identifier(wanted.name),
            place=sql.Literal(wanted.place),
            kind=sql.Literal(wanted.kind),
            model=sql.Literal(wanted.model),
            size=sql.Literal(wanted.dimension),
        )
    )


def _drop(own: Connection, name: str, done: Upkeep) -> None:
    VectorIndex.objects.filter(name=name).delete()  # first, so that recall no longer uses it
    own.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(name)))
    done.dropped.append(name)


def _keep_counts(done: Upkeep, kind: Kind, now: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {kind.place} AS place, count(*) FROM {kind.table} m WHERE {kind.live} "  # noqa: S608  registered
            "GROUP BY place HAVING count(*) >= %s",
            [FORGET_COUNTS_BELOW],
        )
        live = dict(cursor.fetchall())
    counted = PlaceStatistics.objects.filter(kind=kind.number)
    known = dict(counted.values_list("place", "passage_count"))
    small = [place for place in known if place not in live]
    with transaction.atomic():
        CommonWord.objects.filter(place__in=small, kind=kind.number).delete()
        counted.filter(place__in=small).delete()
    for place, passages in live.items():
        before = known.get(place)
        if before is None and passages < COUNT_FROM:
            continue
        if before is None or abs(passages - before) > RECOUNT_AFTER * before:
            count_place(place, kind.number, passages, now=now)
            done.counted += 1


def count_place(place: int, kind: int, passages: int, *, now: datetime) -> None:
    """Cache the number of live passages of a kind in a scope (``passages``), and count those that contain each common
    word.
    """
    with transaction.atomic():
        CommonWord.objects.filter(place=place, kind=kind).delete()
        with connection.cursor() as cursor:
            cursor.execute(_COMMON, [place, kind, COMMON_FROM * passages])
        PlaceStatistics.objects.update_or_create(
            place=place, kind=kind, defaults={"passage_count": passages, "counted_at": now}
        )
