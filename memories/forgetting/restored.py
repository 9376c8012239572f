"""Repeated forgetting in a database restored from a backup, for everything forgotten for good since that backup."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from django.utils import timezone

from memories.forgetting.forget import forget_memories
from memories.models import (
    Memory,
    Tombstone,
)
from memories.writing import tombstones

BATCH = 1_000


def forget_again(newer: psycopg.Connection[Any], say: Callable[[str], None]) -> None:
    """Copy the tombstones of a ``newer`` database of the same installation, and remove the memories they match.

    Django's connection is the restored database. A memory newer than its tombstone is kept, because a person saved it
    later.
    """
    noted = newer.execute("SELECT place, digest, created_at FROM memories_tombstone").fetchall()
    known = set(Tombstone.objects.values_list("place", "digest"))
    missed = {(place, digest): at for place, digest, at in noted if (place, digest) not in known}
    Tombstone.objects.bulk_create(
        [Tombstone(place=place, digest=digest, created_at=at) for (place, digest), at in missed.items()],
        batch_size=BATCH,
    )
    places = {place for place, _ in missed}
    rows = Memory.objects.only("workspace", "owner", "agent", "content", "summary", "created_at")
    found = [
        memory
        for memory in (rows.iterator(chunk_size=BATCH) if places else ())
        if memory.place in places
        and any(
            missed.get((memory.place, tombstones.digest(text)), memory.created_at) > memory.created_at
            for text in (memory.content, memory.summary)
            if text
        )
    ]
    for start in range(0, len(found), BATCH):
        forget_memories(found[start : start + BATCH], by=None, now=timezone.now())
    say(f"Texts forgotten since: {len(missed)}; memories removed again: {len(found)}")
