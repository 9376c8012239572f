"""The search index: kinds of passages, and tables of their vectors and words (docs/decisions/0003, 0004).

A passage is a row of a table that an app has registered as a kind. Index rows refer to it by ``kind``, which names the
table, and ``ref``, its primary key. There are no foreign keys: a trigger on each kind's table deletes the index rows of
deleted passages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from django.db import models
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Coalesce
from pgvector.django import HalfVectorField

from memoryhub.database import queries


class Passage(Protocol):
    """Type of the rows that the index refers to: of any table registered as a ``Kind``, such as memories."""

    pk: Any

    @property
    def place(self) -> int:
        """Return the number of the index scope that the row belongs to: a workspace, person or assistant
        (``place_of``).
        """


@dataclass(frozen=True)
class Kind:
    """A table of passages, such as memories or artifacts, that is registered with the search index.

    ``place``, ``here`` and ``own`` are SQL expressions over the columns of a row, whose table has the alias ``m``.
    ``place`` is the row's scope as a number (``place_of``). The table needs a trigger too, which deletes index rows
    however a passage is deleted (migration 0014)::

        CREATE TRIGGER … AFTER DELETE ON … REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
        EXECUTE FUNCTION workspaces_forget_passages(number, words, place)
    """

    number: int  # stored in every row of the index: never change or reuse it
    name: str  # "memory"
    model: type[Model]  # its rows are ``Passage``s
    place: str
    words: str  # the SQL function: row of the table → (lexeme text, count float8), made with ``workspaces_words``
    here: str  # condition for the rows of the scope %(workspace)s; needs an index
    own: str = ""  # condition for the rows of the scope of %(user)s; empty if none are personal
    text: str = "content"  # the field that is embedded
    heading: str = ""  # the field that is embedded before the text, on its own line
    excerpt: str = ""  # the field with the surrounding messages, averaged into the vector
    gone_at: str = "deleted_at"  # the soft-delete field; empty if rows are only hard-deleted
    stays: str = "workspace__local_only"  # the lookup that is true for rows that never leave this machine
    # Enqueues a job to embed these rows. None: the index's own job.
    queue: Callable[[list[int]], object] | None = None

    @property
    def table(self) -> str:
        return self.model._meta.db_table

    @property
    def live(self) -> str:
        """Return an SQL condition that is true for live rows of the table alias ``m``."""
        return f"m.{self.gone_at} IS NULL" if self.gone_at else "true"

    def rows(self) -> QuerySet[Any]:
        """Return the live rows."""
        return self.model._default_manager.filter(**({self.gone_at: None} if self.gone_at else {}))

    def is_live(self, row: Passage) -> bool:
        return not self.gone_at or getattr(row, self.gone_at) is None

    def text_of(self, row: Passage) -> tuple[str, str]:
        """Return the row's text to embed, which begins with its heading, and its excerpt: the surrounding messages, or
        "".
        """
        heading = getattr(row, self.heading) if self.heading else ""
        text = "\n".join(filter(None, (heading, getattr(row, self.text))))
        return text, getattr(row, self.excerpt) if self.excerpt else ""

    @property
    def read(self) -> list[str]:
        """Return the names of the row's fields that ``text_of`` uses."""
        return [field for field in (self.heading, self.text, self.excerpt) if field]


def of_places(of: Kind, refs: Sequence[int], *, within: Collection[int] = ()) -> dict[str, Any]:
    """Return the parameters of an SQL statement on the index rows of these passages: ``refs``, ``within`` and
    ``places``.

    ``places`` are the passages' scopes, found by one query, with which the statement reads only their part of the
    index. ``within``: the workspaces of the passages, if known, which make that query faster.
    """
    params = {"refs": refs, "within": within}
    statement = _PLACES.format(place=of.place, table=of.table) + (WITHIN if within else "")
    rows = queries.rows(statement, params)
    return params | {"places": [row[0] for row in rows]}


WITHIN = " AND m.workspace_id = ANY(%(within)s::bigint[])"
_PLACES = "SELECT DISTINCT {place} FROM {table} m WHERE m.id = ANY(%(refs)s::bigint[])"
_kinds: dict[int, Kind] = {}


def register_kind(kind: Kind) -> None:
    if _kinds.setdefault(kind.number, kind) != kind:
        raise ValueError(f"{kind.name} and {_kinds[kind.number].name} have one number")


def kinds() -> list[Kind]:
    return [kind for _, kind in sorted(_kinds.items())]


def kind_numbered(number: int) -> Kind:
    return _kinds[number]


def kind_of(row: Passage) -> Kind:
    return next(kind for kind in _kinds.values() if isinstance(row, kind.model))


# Scopes as numbers (docs/decisions/0011).

AGENT_PLACES = 2**40  # above every workspace's key; added to an assistant's key


def place_of(workspace_id: int, *, owner_id: int | None = None, agent_id: int | None = None) -> int:
    """Return the number that identifies a scope in the index.

    It is the workspace's primary key, the negated owner's key for personal rows, or ``AGENT_PLACES`` plus an
    assistant's key.
    """
    if owner_id is not None:
        return -owner_id
    return workspace_id if agent_id is None else AGENT_PLACES + agent_id


def has_vector(kind: int, model: str | models.Subquery, places: Iterable[int] | None = None) -> models.Exists:
    """Return a condition that is true for a row with a vector of this model.

    ``places``: all scopes of the rows; with it, the query reads only their part of the index.
    """
    named: dict[str, Any] = {
        "kind": kind,
        "place": _place(kind_numbered(kind).model),
        "ref": models.OuterRef("pk"),
    }
    if places is not None:
        named["place__in"] = list(places)
    return models.Exists(PassageVector.objects.filter(model=model, **named))


def _place(of: type[models.Model]) -> models.Expression:
    """Return a database expression for the index scope of the outer query's row. ``of``: the model of that row."""
    ways: dict[str, Any] = {
        "owner": models.OuterRef("owner_id") * -1,
        "agent": models.OuterRef("agent_id") + AGENT_PLACES,
        "workspace": models.OuterRef("workspace_id"),
    }
    there = {field.name for field in of._meta.concrete_fields}
    number = models.BigIntegerField()
    expressions = [
        models.ExpressionWrapper(way, output_field=number) for name, way in ways.items() if name in there
    ]
    return Coalesce(*expressions) if len(expressions) > 1 else expressions[0]


class PassageVector(models.Model):
    """Vector of a passage by one embedding model. While the model is being changed, a passage has two.

    ``place`` and ``live`` copy the passage's scope and state, so that searching needs no join; every writer of passages
    updates them. ``embedding`` is compared by search and has no fixed dimension. For a passage with an excerpt it is
    the average of the vectors of text and excerpt; ``statement`` is then the vector of the text alone, to find
    near-duplicates.
    """

    kind = models.SmallIntegerField()
    ref = models.BigIntegerField()
    place = models.BigIntegerField(help_text="Where it is looked for; see workspaces.models.index.")
    model = models.CharField(max_length=200)
    dimension = models.PositiveIntegerField()
    live = models.BooleanField(default=True)
    embedding = HalfVectorField()
    statement = HalfVectorField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "ref", "model"], name="one_vector_a_passage")]
        indexes = [
            models.Index(
                fields=["place", "kind", "model"], name="passage_of_place", condition=models.Q(live=True)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} ({self.dimension}) of {self.kind}:{self.ref}"


class PassageWord(models.Model):
    """Weight of a lexeme in a live passage. Only ``workspaces.index.hybrid_search`` writes it."""

    pk = models.CompositePrimaryKey("place", "lexeme", "kind", "ref")
    place = models.BigIntegerField()
    lexeme = models.TextField()
    kind = models.SmallIntegerField()
    ref = models.BigIntegerField()
    weight = models.FloatField()

    def __str__(self) -> str:
        return f"{self.lexeme} in {self.kind}:{self.ref}"


# Embedding models: the active one, and the one whose vectors are being built to replace it.


class ModelState(models.TextChoices):
    ACTIVE = "active", "Compared by recall"
    BUILDING = "building", "Being built"
    RETIRED = "retired", "No longer used"


class EmbeddingModelQuerySet(models.QuerySet["EmbeddingModel"]):
    def active(self) -> EmbeddingModel | None:
        """Return the model whose vectors recall compares, or None before the first text was embedded."""
        return self.filter(state=ModelState.ACTIVE).first()

    def building(self) -> EmbeddingModel | None:
        return self.filter(state=ModelState.BUILDING).first()

    def to_clean(self, retired_before: datetime) -> EmbeddingModelQuerySet:
        """Return the models retired before this time that may still have vectors."""
        return self.filter(state=ModelState.RETIRED, cleaned_at=None, retired_at__lt=retired_before)


class EmbeddingModel(models.Model):
    """An embedding model and its state. Written by ``workspaces.index.embedding`` (the first model) and
    ``workspaces.index.reembedding``.

    ``label`` is stored with each vector. It is the model's name, with a number added if the same name now means
    different vectors, for example after an endpoint changed its dimension. Vectors with different labels are never
    compared.
    """

    label = models.CharField(max_length=200, unique=True)
    name = models.CharField(max_length=200, help_text="What its endpoint calls it.")
    base_url = models.CharField(max_length=500, blank=True, help_text="Empty: in this process.")
    dimension = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=ModelState.choices)
    started_at = models.DateTimeField()
    activated_at = models.DateTimeField(null=True, blank=True)
    retired_at = models.DateTimeField(null=True, blank=True)
    cleaned_at = models.DateTimeField(null=True, blank=True, help_text="When the last of its vectors went.")
    stopped_at = models.DateTimeField(null=True, blank=True, help_text="Somebody stopped the building.")

    # Progress of a rebuild, for display and for resuming. Missing vectors are found without it.
    total_count = models.PositiveIntegerField(default=0)
    done_count = models.PositiveIntegerField(default=0)
    rate = models.FloatField(null=True, blank=True, help_text="Passages a second, lately.")
    progressed_at = models.DateTimeField(null=True, blank=True)
    # By a kind's number, as a string: the primary key up to which its passages were processed, and the keys of the
    # passages that this model refuses, which do not delay the switch.
    reached: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    refused: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    error = models.CharField(max_length=300, blank=True)

    objects = EmbeddingModelQuerySet.as_manager()

    class Meta:
        ordering = ["-started_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["state"], name="one_active_one_building", condition=~Q(state="retired")
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def progress(self) -> str:
        """Return a text such as "3,200 of 10,000 (32 %), 190 a second, about 36 s left", or an empty string.

        It is empty unless vectors of this model are being built.
        """
        if self.state != ModelState.BUILDING:
            return ""
        total = max(self.total_count, self.done_count)
        share = f" ({100 * self.done_count // total} %)" if total else ""
        text = f"{self.done_count:,} of {total:,}{share}"
        if self.stopped_at:
            return f"{text}, stopped"
        if self.rate:
            seconds = (total - self.done_count) / self.rate
            left = f"{seconds / 60:,.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
            text += f", {self.rate:,.0f} a second, about {left} left"
        return f"{text}. {self.error}" if self.error else text


# Counts and indexes of large scopes for ``index.indexes``, so that recall need not count. Derived data.


class PlaceStatistics(models.Model):
    """Cached count of live passages of one kind in a large scope.

    Small scopes have no row; their passages are counted.
    """

    pk = models.CompositePrimaryKey("place", "kind")
    place = models.BigIntegerField()
    kind = models.SmallIntegerField()
    passage_count = models.PositiveIntegerField()
    counted_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "place statistics"

    def __str__(self) -> str:
        return f"{self.passage_count:,} of kind {self.kind} in place {self.place}"


class CommonWord(models.Model):
    """Number of passages of one kind in a large scope that contain a frequent lexeme."""

    pk = models.CompositePrimaryKey("place", "lexeme", "kind")
    place = models.BigIntegerField()
    lexeme = models.TextField()
    kind = models.SmallIntegerField()
    passage_count = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.lexeme} in {self.passage_count:,} of kind {self.kind} in place {self.place}"


class VectorIndex(models.Model):
    """A partial vector index of one large scope, kind and model, built by a background job."""

    name = models.CharField(primary_key=True, max_length=63)
    place = models.BigIntegerField()
    kind = models.SmallIntegerField()
    model = models.CharField(max_length=200)
    dimension = models.PositiveIntegerField()
    vector_count = models.PositiveIntegerField(help_text="Live vectors when it was built.")
    seconds = models.FloatField(help_text="How long the building took.")
    built_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "vector indexes"
        constraints = [
            models.UniqueConstraint(
                fields=["place", "kind", "model", "dimension"], name="one_index_a_place_and_model"
            )
        ]

    def __str__(self) -> str:
        return f"{self.vector_count:,} vectors of {self.model} in place {self.place}"
