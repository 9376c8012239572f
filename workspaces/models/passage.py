"""Passages in the index: their vectors and words, in slim tables of their own (docs/decisions/0003, 0004).

A passage is a row of some other table, named by ``kind`` (which table: ``workspaces.index.kinds``) and ``ref`` (its key
there). No foreign keys: a trigger that each kind's table has takes the rows of what is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import models
from django.db.models.functions import Coalesce
from pgvector.django import HalfVectorField

from workspaces.index.kinds import kind as registered
from workspaces.index.places import AGENT_PLACES


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
    """The place of the outer query's row, as ``workspaces.index.places`` has it: of whom it has a column."""
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
    place = models.BigIntegerField(help_text="Where it is looked for; see workspaces.index.places.")
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
