"""A restored backup forgets what was forgotten since it was made."""

from __future__ import annotations

from collections.abc import Callable

from django.utils import timezone

from memories.forgetting.forget import forget_memories
from memories.models import Memory, Tombstone
from memories.writing import tombstones
from memoryhub.backup import databases

BATCH = 1_000


def forget_again(earlier: str, say: Callable[[str], None]) -> None:
    """Take over the tombstones of the database ``earlier``, of the same installation, and remove what they are about.

    Django's connection is in the restored one. A memory newer than its tombstone stays: a person saved it since.
    """
    with databases.connect(earlier) as connection:
        noted = connection.execute("SELECT place, digest, created_at FROM memories_tombstone").fetchall()
    known = set(Tombstone.objects.values_list("place", "digest"))
    newer = {(place, digest): at for place, digest, at in noted if (place, digest) not in known}
    Tombstone.objects.bulk_create(
        [Tombstone(place=place, digest=digest, created_at=at) for (place, digest), at in newer.items()],
        batch_size=BATCH,
    )
    places = {place for place, _ in newer}
    rows = Memory.objects.only("workspace", "owner", "agent", "content", "summary", "created_at")
    found = [
        memory
        for memory in (rows.iterator(chunk_size=BATCH) if places else ())
        if memory.place in places
        and any(
            newer.get((memory.place, tombstones.digest(text)), memory.created_at) > memory.created_at
            for text in (memory.content, memory.summary)
            if text
        )
    ]
    for start in range(0, len(found), BATCH):
        forget_memories(found[start : start + BATCH], by=None, now=timezone.now())
    say(f"{len(newer)} texts were forgotten since: {len(found)} memories of the backup removed")
