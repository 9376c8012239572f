"""Vectors, in a slim table of their own: scanning them must not drag the text along (docs/decisions/0003)."""

from __future__ import annotations

from django.db import models
from pgvector.django import HalfVectorField

from memories.models.memory import Memory


class MemoryEmbedding(models.Model):
    """One memory's vector by one model. Two models live side by side while one replaces the other.

    ``place`` and ``live`` repeat what the memory says, so that a scan needs no join; the gate keeps them equal.
    ``embedding`` pins no dimension; it is what recall compares: the statement's vector, averaged with that of the
    messages it came from where it has an excerpt. Then ``statement`` keeps the vector of the text alone, stored out
    of line, for near-duplicates.
    """

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="embeddings")
    place = models.BigIntegerField(help_text="Where it is looked for; see Memory.place.")
    model = models.CharField(max_length=200)
    dimension = models.PositiveIntegerField()
    live = models.BooleanField(default=True)
    embedding = HalfVectorField()
    statement = HalfVectorField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["memory", "model"], name="one_vector_a_model")]
        indexes = [
            models.Index(fields=["place", "model"], name="vector_of_place", condition=models.Q(live=True)),
        ]

    def __str__(self) -> str:
        return f"{self.model} ({self.dimension}) of {self.memory_id}"
