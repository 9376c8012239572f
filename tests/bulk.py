"""Saving of many drafts in one call, as imports do it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memories.writing.bulk_save import save_cleaned
from memories.writing.drafts import Draft
from memories.writing.gate import Saved
from workspaces.access import default_workspace
from workspaces.data_policy import DataPolicy
from workspaces.index.embedding import Embedded, embed_texts
from workspaces.models import User


def save_memories(
    drafts: Sequence[Draft],
    *,
    by: User | None,
    now: datetime,
    vectors: Sequence[Embedded | None] | None = None,
    dedupe: str = "key",
    near: bool = True,
) -> list[Saved]:
    """Clean the drafts, compute their vectors unless they are given, and save them by ``save_cleaned``."""
    cleaned = [
        replace(draft, workspace=default_workspace(draft.owner)) if draft.owner else draft
        for draft in [draft.cleaned() for draft in drafts]
    ]
    if vectors is None:
        policies = [DataPolicy.here(draft.workspace) for draft in cleaned]
        texts = [(draft.content, draft.source_excerpt) for draft in cleaned]
        vectors = embed_texts(texts, policies) or [None] * len(cleaned)
    return save_cleaned(cleaned, vectors, by=by, now=now, dedupe=dedupe, near=near)
