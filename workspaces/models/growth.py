"""Counts and indexes of large scopes for ``index.indexes``, so that no recall has to count. Derived: can be remade."""

from __future__ import annotations

from django.db import models


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
