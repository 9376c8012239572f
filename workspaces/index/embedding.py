"""Vectors of passages, made by the active model and stored with its label. Vectors of two models are never compared.

The active model is stored in ``EmbeddingModel``. When the settings name another model, the active one stays in use
until ``workspaces.index.reembedding`` has built all vectors of the new one (docs/decisions/0006).
"""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, Q, Subquery
from django.utils import timezone
from django_q.tasks import async_task
from psycopg import sql

from memoryhub.database import queries
from memoryhub.database.queries import PreparedQuery
from memoryhub.llm.base import Embedder, Vectors
from memoryhub.llm.errors import EmbedderBadReply, EmbedderBadRequest, EmbedderError, EmbedderUnavailable
from memoryhub.llm.registry import embedder_is_local, get_earlier_embedder, get_embedder
from workspaces.data_policy import DataPolicy
from workspaces.models import EmbeddingModel, ModelState, PassageVector
from workspaces.models.index import Kind, Passage, has_vector, kind_of, of_places

logger = logging.getLogger(__name__)
_ahead = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed-ahead")
BATCH = 64
EXCERPT_SHARE = 0.5  # weight of the excerpt's vector in the search vector; measured in docs/figures.md

Text = tuple[str, str]  # a passage's text and its excerpt


class EmbedderChangedSize(EmbedderBadReply):
    """Raised when the model's vectors have another dimension than those stored under its name."""

    code = "embedder_changed_size"
    retryable = False
    sentence = (
        "The embedding model's answers have another size than before. `manage.py reembed` builds them anew."
    )


class StaysHere(EmbedderError):
    """Raised when a text may not leave this machine and the embedder is remote."""

    code = "stays_here"
    about_the_text = False
    sentence = "Texts of this workspace never leave this machine, and the embedding model is elsewhere."


class EarlierModelGone(EmbedderError):
    """Raised when the active model is no longer the configured one and cannot be reached any more."""

    code = "earlier_embedder_gone"
    sentence = "The earlier embedding model cannot be asked, and the new one's vectors are not complete yet."


@dataclass(frozen=True)
class Embedded:
    """The vectors of a passage by one model, each of the shape (dimension,) and length 1."""

    model: str  # its label
    statement: Vectors  # of the text alone, for finding near-duplicates
    search: Vectors  # averaged with the excerpt's vector if there is one, for recall


_ACTIVE = PreparedQuery(lambda: EmbeddingModel.objects.filter(state=ModelState.ACTIVE))


def active_model() -> str | None:
    """Return the label of the active model, or None without an embedder. One query."""
    embedder = get_embedder()
    if embedder is None:
        return None
    active = _ACTIVE.first()
    return active.label if active else embedder.name


def searchable(kind: int) -> Exists:
    """Return an ``Exists`` expression to annotate rows with: whether the active model has a vector of the row.

    ``kind``: the number that identifies the rows' table in the index (``Kind.number``).
    """
    active = EmbeddingModel.objects.filter(state=ModelState.ACTIVE).values("label")
    return has_vector(kind, Subquery(active))


def is_local(model: EmbeddingModel | None) -> bool:
    """Return whether this model runs on this machine, so that texts stay on it. None means the configured model."""
    configured = get_embedder()
    if model is None or (configured is not None and configured.name == model.name):
        return embedder_is_local()
    return embedder_is_local(model.base_url)


def embeddable(model: EmbeddingModel | None, stays: str = "workspace__local_only") -> Q:
    """Return a filter for rows whose text may be sent to this model. A remote model may not get local-only rows.

    ``stays``: the lookup that is true for a local-only row.
    """
    return Q() if is_local(model) else Q(**{stays: False})


def embed_query(
    texts: Sequence[str], active: EmbeddingModel | None, *, local_only: bool
) -> tuple[str, Vectors] | None:
    """Return a model's label and its vectors of these query texts; None if no embedder is configured.

    ``active``: the model of the stored vectors; None if nothing is embedded yet, and then the configured embedder is
    used. Raises StaysHere if ``local_only`` and the model is remote, EarlierModelGone if ``active`` can no longer be
    loaded, EmbedderError if a call fails.
    """
    embedder = get_embedder()
    if embedder is None:
        return None
    if local_only and not is_local(active):
        raise StaysHere
    if active is None:  # nothing was embedded yet
        with cooldown(embedder.name):
            return embedder.name, embedder.embed_question(texts)
    with cooldown(active.label):
        return active.label, vectors_of(active, texts, asked=True)


def embed_ahead(texts: Sequence[str]) -> None:
    """Start embedding these query texts in a background thread, so that a later call finds them in the cache.

    Does nothing unless the embedder runs in this process and caches recent texts. If it fails, the later call raises
    the error.
    """
    embedder = get_embedder()
    if embedder is not None and getattr(embedder, "keeps_recent", False):
        _ahead.submit(embedder.embed_question, texts)


def why_words(error: EmbedderError) -> str:
    """Return why a recall searched words only after this error, as a phrase for its receipt (its record)."""
    if isinstance(error, EarlierModelGone):
        return "the earlier embedding model cannot be asked, and the new one's vectors are not complete"
    if isinstance(error, StaysHere):
        return "the embedder is on another machine, and texts of this workspace stay on this one"
    if isinstance(error, EmbedderChangedSize):
        return "the embedder's answers have changed their size"
    return "the embedder did not answer"


def embed_texts(texts: Sequence[Text], reaches: Sequence[DataPolicy]) -> list[Embedded | None] | None:
    """Embed passages with the active model. Return None if there is no embedder or it fails, which is logged.

    ``texts``: pairs of a passage's text and its excerpt, the conversation around it, which may be empty. ``reaches``:
    the data policy of each pair. If the embedder is remote, local-only pairs get None. Never call it in a transaction,
    because it may wait for a model.
    """
    if not texts:
        return None
    try:
        model = active_or_first(rests=True)
        if model is None:
            return None
        may_go = is_local(model)
        sent = [may_go or not policy.local_only for policy in reaches]
        leaving = [text for text, is_sent in zip(texts, sent, strict=True) if is_sent]
        embedded = iter(_asked(model, leaving) if leaving else ())
        return [next(embedded) if is_sent else None for is_sent in sent]
    except EmbedderError as error:
        logger.warning("Embedding %d texts failed: %s (%s)", len(texts), error, error.code)
        return None


def _asked(model: EmbeddingModel, texts: Sequence[Text]) -> list[Embedded]:
    with cooldown(model.label):
        return _embed(model, texts)


def embed_one(content: str, excerpt: str, policy: DataPolicy) -> Embedded | None:
    embedded = embed_texts([(content, excerpt)], [policy])
    return embedded[0] if embedded else None


def embed_each(model: EmbeddingModel, texts: Sequence[Text]) -> list[Embedded | None]:
    """Embed (content, excerpt) pairs for a background job. A pair that the model refuses gets None.

    Raises EmbedderError if the model refuses all pairs or fails.
    """
    try:
        return list(_embed(model, texts))
    except (EmbedderBadRequest, EmbedderBadReply) as error:
        if isinstance(error, EmbedderChangedSize):
            raise
        if len(texts) == 1:
            logger.warning("A text could not be embedded: %s (%s)", error, error.code)
            return [None]
        alone = [embed_each(model, [text])[0] for text in texts]
        if not any(alone):
            raise
        return alone


def active_or_first(*, rests: bool = False) -> EmbeddingModel | None:
    """Return the active model, or None without an embedder. The first call makes the configured model the active one.

    ``rests``: if that model failed a moment ago, raise immediately instead of trying it again. Raises EmbedderError if
    the configured model cannot be used.
    """
    embedder = get_embedder()
    if embedder is None:
        return None
    active = _ACTIVE.first()
    if active is None:
        with cooldown(embedder.name) if rests else nullcontext():
            dimension = dimension_of(embedder)
        now = timezone.now()
        EmbeddingModel.objects.bulk_create(
            [
                EmbeddingModel(
                    label=embedder.name,
                    name=embedder.name,
                    base_url=configured_base_url(),
                    dimension=dimension,
                    state=ModelState.ACTIVE,
                    started_at=now,
                    activated_at=now,
                )
            ],
            ignore_conflicts=True,  # of two concurrent processes the first wins
        )
        active = _ACTIVE.first()
    return active


def configured_base_url() -> str:
    return settings.EMBEDDING_BASE_URL or ""


def dimension_of(embedder: Embedder) -> int:
    """Return the dimension of the embedder's vectors. Embeds one text to find out."""
    return int(embedder.embed(["How long is a vector?"]).shape[1])


def vectors_of(model: EmbeddingModel, texts: Sequence[str], *, asked: bool = False) -> Vectors:
    """Return the model's vectors of these texts. ``asked``: the texts are queries.

    Raises EmbedderError if the model fails, EarlierModelGone if it is no longer configured and cannot be reached, and
    EmbedderChangedSize if the vectors do not have the stored dimension.
    """
    configured = get_embedder()
    is_configured = configured is not None and configured.name == model.name
    embedder = configured if is_configured else get_earlier_embedder(model.name, model.base_url)
    if embedder is None:
        raise EarlierModelGone(detail=f"{model.name} has no address")
    try:
        vectors = embedder.embed_question(texts) if asked else embedder.embed(texts)
    except EmbedderError as error:
        if is_configured or isinstance(error, EmbedderBadRequest):
            raise
        raise EarlierModelGone(detail=f"{model.name}: {error}") from error
    if vectors.shape != (len(texts), model.dimension):
        raise EmbedderChangedSize(detail=f"{model.name}: {vectors.shape[-1]}, not {model.dimension}")
    return vectors


def _embed(model: EmbeddingModel, texts: Sequence[Text]) -> list[Embedded]:
    excerpts = [excerpt for _, excerpt in texts if excerpt]
    vectors = vectors_of(model, [content for content, _ in texts] + excerpts)
    of_excerpts = iter(vectors[len(texts) :])
    return [
        Embedded(model.label, own, _mixed(own, next(of_excerpts)) if excerpt else own)
        for own, (_, excerpt) in zip(vectors, texts, strict=False)
    ]


def _mixed(own: Vectors, excerpt: Vectors) -> Vectors:
    mixed = (1 - EXCERPT_SHARE) * own + EXCERPT_SHARE * excerpt
    length = float(np.linalg.norm(mixed))
    return (mixed / length).astype(np.float32) if length > 1e-6 else own


# Cooldown for an embedder that failed: recalls and saves use words only, without waiting.
#
# Otherwise every recall and save would wait for the timeout of an endpoint that hangs, or for the retries of one that
# fails. Background jobs call it anyway.

SLOW = 2.0  # seconds; a failed call this slow starts the full cooldown
FIRST_REST = 2.0  # seconds after a quick failure, doubled with each further one
REST = 20.0


@dataclass(frozen=True)
class _Resting:
    until: float
    seconds: float
    failure: type[EmbedderError]


_resting: dict[str, _Resting] = {}  # in this process, by the model's label


@contextmanager
def cooldown(label: str) -> Iterator[None]:
    """Wrap a call of this model, so that requests do not wait again and again for a model that is slow or unavailable.

    For a while after such a failure, it raises the same error type without running the block.
    """
    before, began = _resting.get(label), time.monotonic()
    if before and began < before.until:
        raise before.failure(detail=f"{label} failed a moment ago")
    try:
        yield
    except EmbedderError as error:
        now = time.monotonic()
        # The failure of an earlier model has a cause.
        cause = error.__cause__ if isinstance(error.__cause__, EmbedderError) else error
        is_slow = cause.retryable and now - began >= SLOW
        if is_slow or isinstance(cause, EmbedderUnavailable):
            seconds = REST if is_slow else min(REST, before.seconds * 2 if before else FIRST_REST)
            _resting[label] = _Resting(now + seconds, seconds, type(error))
        raise
    _resting.pop(label, None)


# Locked until the commit, so that a switch to another model waits for writers of this model's vectors.
_STILL_USED = """
SELECT 1 FROM workspaces_embeddingmodel WHERE label = %s AND state IN ('active', 'building') FOR SHARE
"""

# Inserts one row; ``put_vectors`` inserts many. ON CONFLICT is not needed, because the passage's row is locked.
_PUT = f"""
WITH used AS MATERIALIZED ({_STILL_USED.replace("%s", "%(model)s::text")})
INSERT INTO workspaces_passagevector (kind, ref, place, model, dimension, live, embedding, statement)
SELECT %(kind)s::smallint, %(ref)s::bigint, %(place)s::bigint, %(model)s::text, %(dimension)s::int, %(live)s::boolean,
       %(embedding)s::halfvec, %(statement)s::halfvec
FROM used
RETURNING id
"""  # noqa: S608  constants only
_DROP = """
DELETE FROM workspaces_passagevector
WHERE place = %(place)s::bigint AND kind = %(kind)s::smallint AND ref = %(ref)s::bigint
"""
_DROP_OF = """
DELETE FROM workspaces_passagevector v USING {table} m
WHERE m.id = ANY(%(refs)s::bigint[]) AND v.place = {place} AND v.kind = {number} AND v.ref = m.id
  AND v.place = ANY(%(places)s::bigint[])
RETURNING 1
"""


def store_vector(passage: Passage, embedded: Embedded, *, is_new: bool = False) -> None:
    """Store the vector of a passage's text, and remove all vectors of its old text.

    ``is_new``: the passage has no vectors yet. If the active model has changed since the vector was made, a job that
    embeds the passage is queued instead. A change of the model that is in progress needs no notice here: it searches
    for passages without a vector.
    """
    kind = kind_of(passage)
    params = {
        "kind": kind.number,
        "ref": passage.pk,
        "place": passage.place,
        "model": embedded.model,
        "dimension": len(embedded.search),
        "live": kind.is_live(passage),
        "embedding": embedded.search,
        "statement": None if embedded.search is embedded.statement else embedded.statement,
    }
    if not is_new:
        queries.rows(_DROP, params)
    if not queries.rows(_PUT, params):
        queue_embedding(kind, [passage.pk])


def drop_vectors(of: Kind, refs: Sequence[int]) -> int:
    """Delete the vectors of passages of a kind, and return their number. Call it before the passages are deleted."""
    statement = _DROP_OF.format(**vars(of), table=of.table)
    return len(queries.rows(statement, of_places(of, refs)))


def put_vectors(label: str, pairs: Sequence[tuple[Passage, Embedded]]) -> bool:
    """Store vectors of the model ``label``; those of other models stay. Return False without storing if the model is
    retired.

    Call it in a transaction that has locked or created the passages' rows, so that they cannot change in the meantime.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STILL_USED, [label])
        if cursor.fetchone() is None:
            return False
    rows = [
        PassageVector(
            kind=(kind := kind_of(passage)).number,
            ref=passage.pk,
            place=passage.place,
            model=label,
            dimension=len(embedded.search),
            live=kind.is_live(passage),
            embedding=embedded.search,
            statement=None if embedded.search is embedded.statement else embedded.statement,
        )
        for passage, embedded in pairs
    ]
    for kind_number in {row.kind for row in rows}:
        before = {"place__in": {row.place for row in rows}, "ref__in": {row.ref for row in rows}}
        PassageVector.objects.filter(kind=kind_number, model=label, **before).delete()
    PassageVector.objects.bulk_create(rows)
    return True


def queue_embedding(kind: Kind, refs: Sequence[int]) -> None:
    """Queue a job that embeds these passages, after the current transaction commits."""
    ids, name = list(refs), f"embed {kind.name}"

    def queue() -> None:
        if kind.queue:
            kind.queue(ids)
        else:
            async_task("workspaces.tasks.embed_passages", kind=kind.number, refs=ids, task_name=name)

    transaction.on_commit(queue)


# Bulk transfer of vectors to and from Postgres by COPY.

ROWS_AT_ONCE = 20_000  # stored vectors read at a time, some 15 MB of 384 dimensions


def copy_vectors(
    kind: int,
    refs: Sequence[int],
    places: Sequence[int],
    model: str,
    search: Vectors,
    statement: Vectors | None = None,
) -> None:
    """Store vectors of live passages that have none, by PostgreSQL's binary COPY, for speed.

    ``places``: the scope of each passage. ``search`` and ``statement``: one row for each passage, stored as
    ``embedding`` and ``statement`` of ``PassageVector``.
    """
    dimension, name = search.shape[1], model.encode()
    fields: list[tuple[str, str, int, object]] = [
        ("kind", ">i2", 2, kind),
        ("ref", ">i8", 8, refs),
        ("place", ">i8", 8, places),
        ("model", f"S{len(name)}", len(name), name),
        ("dimension", ">i4", 4, dimension),
        ("live", "i1", 1, 1),
    ]
    layout: list[tuple[str, str] | tuple[str, str, tuple[int]]] = [("count", ">i2")]
    for column, type_, _, _ in fields:
        layout += [(f"{column} length", ">i4"), (column, type_)]
    halfvecs = {"embedding": search} | ({} if statement is None else {"statement": statement})
    for column in halfvecs:
        layout += [(f"{column} length", ">i4"), (f"{column} size", ">i2"), (f"{column} unused", ">i2")]
        layout.append((column, ">f2", (dimension,)))
    rows = np.zeros(len(refs), dtype=np.dtype(layout))
    rows["count"] = len(fields) + len(halfvecs)
    for column, _, length, value in fields:
        rows[f"{column} length"], rows[column] = length, value
    for column, vectors in halfvecs.items():
        rows[f"{column} length"], rows[f"{column} size"] = 4 + 2 * dimension, dimension
        rows[column] = vectors
    columns = sql.SQL(", ").join(sql.Identifier(name) for name in [*(f[0] for f in fields), *halfvecs])
    copying = sql.SQL("COPY workspaces_passagevector ({}) FROM STDIN (FORMAT binary)").format(columns)
    with connection.cursor() as cursor, cursor.copy(copying) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows.tobytes() + b"\xff\xff")


def stored_vectors(kind: int, place: int, model: str, dimension: int) -> Iterable[tuple[np.ndarray, Vectors]]:
    """Yield the primary keys and vectors of the live passages of a scope (``place``) and kind, in batches.

    If a passage has a vector of its text alone (``statement``), that one is returned.
    """
    rows = PassageVector.objects.filter(place=place, kind=kind, model=model, dimension=dimension, live=True)
    row = np.dtype(
        [("count", ">i2"), ("n1", ">i4"), ("ref", ">i8"), ("n2", ">i4"), ("size", ">i4"),
         ("vector", ">f2", (dimension,))]
    )  # fmt: skip
    with connection.cursor() as cursor:
        if not rows.exists():
            return
        copying = sql.SQL(
            "COPY (SELECT ref, coalesce(statement, embedding) FROM workspaces_passagevector "
            "WHERE place = {} AND kind = {} AND model = {} AND dimension = {} AND live) TO STDOUT (FORMAT binary)"
        ).format(sql.Literal(place), sql.Literal(kind), sql.Literal(model), sql.Literal(dimension))
        with cursor.copy(copying) as copy:
            waiting = bytearray()
            first = True
            for block in copy:
                waiting += block
                if first:
                    del waiting[:19]
                    first = False
                if len(waiting) >= ROWS_AT_ONCE * row.itemsize:
                    yield _parsed(waiting, row)
            if len(waiting) >= row.itemsize:
                yield _parsed(waiting, row)


def _parsed(waiting: bytearray, row: np.dtype) -> tuple[np.ndarray, Vectors]:
    """Remove the complete rows from the start of the buffer, and return their primary keys and vectors."""
    whole = len(waiting) // row.itemsize
    rows = np.frombuffer(bytes(waiting[: whole * row.itemsize]), dtype=row)
    del waiting[: whole * row.itemsize]
    return rows["ref"].astype(np.int64), rows["vector"].astype(np.float32)
