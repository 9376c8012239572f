"""Change of the embedding model without interruption: build the new vectors next to the old, switch, clean up.

Recall compares the active model's vectors until those of the new one are complete (docs/decisions/0006). Missing
vectors are found by a query, so the work can be stopped or killed at any point and continues there.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from memoryhub.database.queries import alone
from memoryhub.errors import Conflict
from memoryhub.llm.base import Embedder
from memoryhub.llm.errors import EmbedderError
from workspaces.index import embedding
from workspaces.models import EmbeddingModel, ModelState
from workspaces.models.index import Kind, Passage, has_vector, kinds

logger = logging.getLogger(__name__)
BATCH = embedding.BATCH
CLEAN_BATCH = 1000
GRACE = timedelta(minutes=1)  # for recalls that began before the switch and use the old vectors
LOCK = "workspaces.index.reembedding"
# Building continues only while this row exists; the share lock makes a stop or switch wait for the batch.
_GOES_ON = """
SELECT 1 FROM workspaces_embeddingmodel WHERE id = %s AND state = 'building' AND stopped_at IS NULL FOR SHARE
"""
_PROGRESSED = """
UPDATE workspaces_embeddingmodel SET done_count = done_count + %(stored)s, rate = %(rate)s,
    reached = reached || jsonb_build_object(%(kind)s::text, %(reached)s::bigint),
    refused = refused || jsonb_build_object(
        %(kind)s::text, coalesce(refused->%(kind)s::text, '[]') || to_jsonb(%(refused)s::bigint[])),
    progressed_at = %(now)s, error = ''
WHERE id = %(id)s
"""
_CLEAN = """
DELETE FROM workspaces_passagevector WHERE id IN (
    SELECT id FROM workspaces_passagevector WHERE id > %(after)s AND model = %(label)s ORDER BY id LIMIT %(batch)s
) AND NOT EXISTS (SELECT 1 FROM workspaces_embeddingmodel WHERE label = %(label)s AND state <> 'retired')
RETURNING id
"""


class Outcome(StrEnum):
    NOTHING = "nothing to build"
    ELSEWHERE = "another process is building"
    STOPPED = "stopped"
    UNFINISHED = "unfinished"
    FAILING = "the model does not answer"
    SWITCHED = "switched"


def notice_settings() -> EmbeddingModel | None:
    """Return the model whose vectors are being built, or None. Starts a rebuild if the settings name a new model.

    Raises EmbedderError if the new model cannot be used.
    """
    configured, active = embedding.get_embedder(), EmbeddingModel.objects.active()
    building = EmbeddingModel.objects.building()
    if configured is None or active is None:
        return None
    base_url = embedding.configured_base_url()
    for model in (active, building):
        if model is not None and model.name == configured.name and model.base_url != base_url:
            # The model has a new address.
            EmbeddingModel.objects.filter(pk=model.pk).update(base_url=base_url)
    if building is not None and building.name == configured.name:
        return building
    if configured.name != active.name:
        return _begin(configured)
    if building is not None:  # the settings went back to the active one
        _retire(building)
    return None


def rebuild_same_model() -> EmbeddingModel:
    """Start rebuilding all vectors with the same model.

    Raises Conflict without an embedder or vectors, EmbedderError if the model cannot be used.
    """
    configured, active = embedding.get_embedder(), EmbeddingModel.objects.active()
    if configured is None or active is None:
        raise Conflict(_("There is no embedder, or nothing has been embedded yet."), code="nothing_to_build")
    return _begin(configured, from_scratch=True)


def start() -> EmbeddingModel | None:
    """Continue a stopped rebuild in the background, or start one if the settings name a new model.

    Raises EmbedderError if the new model cannot be used.
    """
    model = notice_settings()
    if model is not None:
        EmbeddingModel.objects.filter(pk=model.pk).update(stopped_at=None, refused={}, error="")
        queue()
        model.refresh_from_db()
    return model


def stop() -> EmbeddingModel | None:
    """Stop the rebuild until ``start`` is called. The active model stays in use."""
    EmbeddingModel.objects.filter(state=ModelState.BUILDING, stopped_at=None).update(
        stopped_at=timezone.now(), rate=None
    )
    return EmbeddingModel.objects.building()


def queue() -> None:
    transaction.on_commit(lambda: async_task("workspaces.tasks.rebuild", task_name="build vectors"))


def has_work() -> bool:
    """Return whether there is a rebuild or cleanup to do that no other process is doing.

    Starts a rebuild if the settings name a new model.
    """
    try:
        model = notice_settings()
    except EmbedderError as error:
        logger.warning("The new embedding model cannot be asked: %s (%s)", error, error.code)
        model = None
    wanted = model is not None and model.stopped_at is None
    if not wanted and not EmbeddingModel.objects.to_clean(timezone.now() - GRACE).exists():
        return False
    with alone(LOCK) as is_alone:
        return is_alone


def advance(*, seconds: float, progressed: Callable[[EmbeddingModel], None] = lambda model: None) -> Outcome:
    """Build vectors of the new model for about ``seconds``, and switch to it once none is missing. Return the outcome.

    Each completed batch is stored, so work can be interrupted. Only one process does this at a time. ``progressed``:
    called before each batch.
    """
    with alone(LOCK) as is_alone:
        if not is_alone:
            return Outcome.ELSEWHERE
        deadline, counted = time.monotonic() + seconds, False
        while True:
            model = EmbeddingModel.objects.building()
            if model is None:
                return Outcome.NOTHING
            if model.stopped_at is not None:
                return Outcome.STOPPED
            if not counted:
                _count(model)
                counted = True
            progressed(model)
            if time.monotonic() >= deadline:
                return Outcome.UNFINISHED
            try:
                if _build_batch(model):
                    continue
            except EmbedderError as error:
                logger.warning("Building vectors failed: %s (%s)", error, error.code)
                EmbeddingModel.objects.filter(pk=model.pk).update(error=str(error)[:300], rate=None)
                return Outcome.FAILING
            if switch(model):
                return Outcome.SWITCHED


def missing(model: EmbeddingModel, kind: Kind, places: Iterable[int] | None = None) -> QuerySet[Any]:
    """Return the rows of a kind that need a vector of this model and have none. ``places``: their scopes, if known.

    Rows whose text the model refused are left out.
    """
    rows = _embeddable(model, kind).filter(~has_vector(kind.number, model.label, places))
    refused = model.refused.get(str(kind.number))
    return rows.exclude(pk__in=refused) if refused else rows


def _embeddable(model: EmbeddingModel, kind: Kind) -> QuerySet[Any]:
    return kind.rows().filter(embedding.embeddable(model, kind.stays))


def switch(model: EmbeddingModel) -> bool:
    """Make this model the active one in one transaction, unless a vector is missing. Return whether it was switched.

    Writers of vectors hold a share lock on their model's row. The switch waits for earlier writers. Later writers find
    that the old model is retired, and queue their passage for the new one.
    """
    with transaction.atomic():
        rows = EmbeddingModel.objects.exclude(state=ModelState.RETIRED).order_by("pk").select_for_update()
        states = {row.pk: row for row in rows}
        locked = states.get(model.pk)
        if locked is None or locked.state != ModelState.BUILDING or locked.stopped_at is not None:
            return False
        if any(missing(locked, kind).exists() for kind in kinds()):
            return False
        now = timezone.now()
        EmbeddingModel.objects.filter(state=ModelState.ACTIVE).update(
            state=ModelState.RETIRED, retired_at=now
        )
        EmbeddingModel.objects.filter(pk=locked.pk).update(state=ModelState.ACTIVE, activated_at=now)
    logger.info("Recall now compares vectors of %s", model.label)
    return True


def clean(*, seconds: float) -> int:
    """Delete vectors of retired models in batches, for about ``seconds``. Return the number deleted."""
    deadline, gone = time.monotonic() + seconds, 0
    for model in EmbeddingModel.objects.to_clean(timezone.now() - GRACE):
        after = 0
        while time.monotonic() < deadline:
            with connection.cursor() as cursor:
                cursor.execute(_CLEAN, {"after": after, "label": model.label, "batch": CLEAN_BATCH})
                ids = [row[0] for row in cursor.fetchall()]
            gone += len(ids)
            if not ids:
                still = EmbeddingModel.objects.filter(pk=model.pk, state=ModelState.RETIRED)
                still.update(cleaned_at=timezone.now())
                break
            after = max(ids)
    return gone


def _begin(configured: Embedder, *, from_scratch: bool = False) -> EmbeddingModel:
    """Start building vectors of the configured model, and abandon any other rebuild.

    ``from_scratch``: also rebuild vectors that exist.
    """
    dimension = embedding.dimension_of(configured)
    with transaction.atomic():
        list(EmbeddingModel.objects.exclude(state=ModelState.RETIRED).order_by("pk").select_for_update())
        building = EmbeddingModel.objects.building()
        if building is not None:
            if building.name == configured.name and building.dimension == dimension and not from_scratch:
                return building  # another process was first
            _retire(building)
        known = EmbeddingModel.objects.filter(name=configured.name, state=ModelState.RETIRED)
        reusable = None if from_scratch else known.filter(dimension=dimension).first()
        model = reusable or EmbeddingModel(
            label=_free_label(configured.name), name=configured.name, dimension=dimension
        )
        model.base_url, model.state = embedding.configured_base_url(), ModelState.BUILDING
        model.started_at = timezone.now()
        model.activated_at = model.retired_at = model.cleaned_at = model.stopped_at = None
        model.reached, model.refused, model.error, model.rate = {}, {}, "", None
        model.save()
    _count(model)
    return model


def _free_label(name: str) -> str:
    labels = set(EmbeddingModel.objects.filter(name=name).values_list("label", flat=True))
    number, label = 1, name
    while label in labels:
        number += 1
        label = f"{name[:190]} ({number})"
    return label


def _retire(model: EmbeddingModel) -> None:
    EmbeddingModel.objects.filter(pk=model.pk).update(
        state=ModelState.RETIRED, retired_at=timezone.now(), rate=None
    )


def _count(model: EmbeddingModel) -> None:
    """Store, for the progress display, how many rows need a vector of this model and how many have one. Two counts per
    kind.
    """
    model.total_count = sum(_embeddable(model, kind).count() for kind in kinds())
    model.done_count = max(0, model.total_count - sum(missing(model, kind).count() for kind in kinds()))
    model.save(update_fields=["total_count", "done_count"])


def _build_batch(model: EmbeddingModel) -> bool:
    """Embed and store the next passages without a vector. Return False if a whole pass found none."""
    started = time.monotonic()
    for kind in kinds():
        rows = missing(model, kind).order_by("pk").only("pk", *kind.read)
        batch = list(rows.filter(pk__gt=model.reached.get(str(kind.number), 0))[:BATCH])
        if batch:
            break
    else:
        if model.reached:  # one more pass, for rows that have changed since
            EmbeddingModel.objects.filter(pk=model.pk).update(reached={})
        return bool(model.reached)
    embedded = embedding.embed_each(model, [kind.text_of(row) for row in batch])
    pairs = [(row, vectors) for row, vectors in zip(batch, embedded, strict=True) if vectors is not None]
    stored = _store(model, kind, pairs)
    if pairs and not stored:
        time.sleep(0.2)  # the rows are locked: avoid a busy loop
    rate = len(batch) / max(1e-3, time.monotonic() - started)
    with connection.cursor() as cursor:
        progress: dict[str, Any] = {
            "id": model.pk,
            "kind": str(kind.number),
            "stored": stored,
            "reached": batch[-1].pk,
            "rate": rate if model.rate is None else 0.8 * model.rate + 0.2 * rate,
            "refused": [row.pk for row, vectors in zip(batch, embedded, strict=True) if vectors is None],
            "now": timezone.now(),
        }
        cursor.execute(_PROGRESSED, progress)
    return True


def _store(model: EmbeddingModel, kind: Kind, pairs: Sequence[tuple[Passage, embedding.Embedded]]) -> int:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_GOES_ON, [model.pk])
            if cursor.fetchone() is None:
                return 0
        return store_unchanged(model.label, kind, pairs)


def store_unchanged(label: str, kind: Kind, pairs: Sequence[tuple[Passage, embedding.Embedded]]) -> int:
    """Store the vectors of rows whose text is still the one that was embedded. Return the number stored.

    Rows that were changed or deleted, or are locked, are skipped. Call it in a transaction.
    """
    of = {row.pk: (kind.text_of(row), vectors) for row, vectors in pairs}
    locked = kind.rows().filter(pk__in=of).order_by("pk").select_for_update(skip_locked=True, of=("self",))
    fresh = [(row, of[row.pk][1]) for row in locked if kind.text_of(row) == of[row.pk][0]]
    return len(fresh) if fresh and embedding.put_vectors(label, fresh) else 0


# Embedding of passages after they are stored, for kinds without a job of their own.

SWEEP = 500  # passages of a kind per call of ``fill_gaps``


def embed_passages(kind: Kind, refs: Sequence[int]) -> int:
    """Embed the passages ``refs`` that have no vector of the active model. Return the number embedded.

    If the model fails, ``fill_gaps`` tries again later.
    """
    done = 0
    try:
        model = embedding.active_or_first()
        if model is None:
            return 0
        for start in range(0, len(refs), embedding.BATCH):
            rows = list(kind.rows().filter(pk__in=refs[start : start + embedding.BATCH]))
            wanted = missing(model, kind, {row.place for row in rows})
            batch = list(wanted.filter(pk__in=[row.pk for row in rows]).order_by("pk"))
            if not batch:
                continue
            embedded = embedding.embed_each(model, [kind.text_of(row) for row in batch])
            pairs = [
                (row, vectors) for row, vectors in zip(batch, embedded, strict=True) if vectors is not None
            ]
            with transaction.atomic():
                done += store_unchanged(model.label, kind, pairs)
    except EmbedderError as error:
        logger.warning("Embedding passages (%s) failed: %s (%s)", kind.name, error, error.code)
    return done


def fill_gaps() -> int:
    """Embed passages that have no vector of the active model. Return the number embedded.

    Kinds that have a job of their own for this are skipped.
    """
    active = EmbeddingModel.objects.active()
    if active is None:
        return 0
    return sum(
        embed_passages(kind, list(missing(active, kind).values_list("pk", flat=True)[:SWEEP]))
        for kind in kinds()
        if kind.queue is None
    )
