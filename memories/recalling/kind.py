"""Memories as a kind of passages: what the index has to know of them."""

from __future__ import annotations

from django_q.tasks import async_task

from memories.models import Memory
from memories.models.memory import MEMORY, PLACE
from workspaces.models.kinds import Kind

MEMORIES = Kind(
    number=MEMORY,
    name="memory",
    model=Memory,
    place=PLACE,
    words="memories_counted_words",
    here="workspace_id = %(workspace)s::bigint",
    own="owner_id = %(user)s::bigint AND workspace_id <> %(workspace)s::bigint "
    "AND -(%(user)s::bigint) = ANY(%(places)s::bigint[]) AND workspace_id = ANY(%(workspaces)s::bigint[])",
    excerpt="source_excerpt",
    queue=lambda ids: async_task("memories.tasks.embed_memories", memory_ids=ids, task_name="embed memories"),
)
