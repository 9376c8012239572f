"""Passages in the index: their vectors and words, in slim tables of their own (docs/decisions/0003, 0004).

A passage is a row of another table: ``kind`` names the table (``workspaces.models.kinds``), ``ref`` is its
key there. No foreign keys: a trigger that each kind's table has takes the rows of what is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce
from pgvector.django import HalfVectorField

from workspaces.models.kinds import AGENT_PLACES
from workspaces.models.kinds import kind as registered


def has_vector(kind: int, model: str | models.Subquery, places: Iterable[int] | None = None) -> models.Exists:
    """Return a condition: whether this model's vector of a row exists. ``places``: where they all are, if known;
    then no other is looked at, however the statement is planned.
    """
    named: dict[str, Any] = {
        "kind": kind,
        "place": _place(registered(kind).model),
        "ref": models.OuterRef("pk"),
    }
    if places is not None:
        named["place__in"] = list(places)
    return models.Exists(PassageVector.objects.filter(model=model, **named))


def _place(of: type[models.Model]) -> models.Expression:
    """The place of the outer query's row, as ``workspaces.models.kinds`` has it: of whom it has a column."""
    ways: dict[str, Any] = {
        "owner": models.OuterRef("owner_id") * -1,
        "agent": models.OuterRef("agent_id") + AGENT_PLACES,
        "workspace": models.OuterRef("workspace_id"),
    }
    there = {field.name for field in of._meta.concrete_fields}
    number = models.BigIntegerField()
    found = [
        models.ExpressionWrapper(way, output_field=number) for name, way in ways.items() if name in there
    ]
    return Coalesce(*found) if len(found) > 1 else found[0]


class PassageVector(models.Model):
    """Vector of a passage by one model. Two models live side by side while one replaces the other.

    ``place`` and ``live`` repeat what the passage says, so that a scan needs no join; who writes it keeps them equal.
    ``embedding`` pins no dimension; it is what recall compares: the statement's vector, averaged with that of the
    messages it came from where it has an excerpt. Then ``statement`` keeps the vector of the text alone, stored out
    of line, for near-duplicates.
    """

    kind = models.SmallIntegerField()
    ref = models.BigIntegerField()
    place = models.BigIntegerField(help_text="Where it is looked for; see workspaces.models.kinds.")
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
    """Weight of a lexeme in a live passage. Made and removed by ``workspaces.index.words`` alone."""

    pk = models.CompositePrimaryKey("place", "lexeme", "kind", "ref")
    place = models.BigIntegerField()
    lexeme = models.TextField()
    kind = models.SmallIntegerField()
    ref = models.BigIntegerField()
    weight = models.FloatField()

    def __str__(self) -> str:
        return f"{self.lexeme} in {self.kind}:{self.ref}"


# Embedding models: the one whose vectors recall compares, and the one that is built to replace it.


class ModelState(models.TextChoices):
    ACTIVE = "active", "Compared by recall"
    BUILDING = "building", "Being built"
    RETIRED = "retired", "No longer used"


class EmbeddingModelQuerySet(models.QuerySet["EmbeddingModel"]):
    def active(self) -> EmbeddingModel | None:
        """The one whose vectors recall compares; None until the first text was embedded."""
        return self.filter(state=ModelState.ACTIVE).first()

    def building(self) -> EmbeddingModel | None:
        return self.filter(state=ModelState.BUILDING).first()

    def to_clean(self, retired_before: datetime) -> EmbeddingModelQuerySet:
        """Retired since before then, and some of its vectors may still lie here."""
        return self.filter(state=ModelState.RETIRED, cleaned_at=None, retired_at__lt=retired_before)


class EmbeddingModel(models.Model):
    """Embedding model with its state. Written by ``workspaces.index.embedding`` (the first) and
    ``workspaces.index.reembedding``.

    ``label`` is what stands beside its vectors: the model's name, with a number where one name came to mean other
    vectors (an endpoint that changed its answers' size). Vectors of two labels are never compared.
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

    # How far the building is. The vectors tell what is missing; these only show it and save looking from the start.
    total_count = models.PositiveIntegerField(default=0)
    done_count = models.PositiveIntegerField(default=0)
    rate = models.FloatField(null=True, blank=True, help_text="Passages a second, lately.")
    progressed_at = models.DateTimeField(null=True, blank=True)
    # By the number of a kind of passages, as JSON has it: the key up to which they have been looked at; and the keys of
    # those whose text this model does not take, which do not hold up the switch.
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
        """ "3,200 of 10,000 (32 %), 190 a second, about 36 s left"; empty unless it is being built."""
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


# Counts and indexes of large scopes for ``index.indexes``, so that no recall has to count. Derived: can be remade.


class PlaceStatistics(models.Model):
    """Count of live passages of a kind in a large scope, as of the last look. Small ones have no row: they are
    counted.
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
    """In how many passages of a kind in a large place a lexeme stands; only those that stand in many."""

    pk = models.CompositePrimaryKey("place", "lexeme", "kind")
    place = models.BigIntegerField()
    lexeme = models.TextField()
    kind = models.SmallIntegerField()
    passage_count = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.lexeme} in {self.passage_count:,} of kind {self.kind} in place {self.place}"


class VectorIndex(models.Model):
    """A partial index over the vectors of one large place and kind by one model: what the job built, and when."""

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
