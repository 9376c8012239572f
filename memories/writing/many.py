"""Many drafts at once, by the gate's own rules: what ``save_memory`` does one by one, in a few statements a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memories.writing import changing, gate
from memories.writing.batch import Batch
from memories.writing.doubles import one_writer_at_a_time
from memories.writing.drafts import Draft
from memories.writing.gate import Saved
from memories.writing.portable import Past
from memories.writing.similar import MOST_KEYS
from workspaces.access import default_workspace
from workspaces.index.embedding import Embedded, embed_texts
from workspaces.leaving_machine import Reach
from workspaces.models import User

BATCH = 500  # rows of one transaction: other writers of the workspace wait for no more


@dataclass(frozen=True)
class _Place:
    """Where drafts may find their doubles: one workspace, scope, owner and assistant."""

    workspace_id: int
    scope: str
    owner_id: int | None
    agent_id: int | None


def save_memories(
    drafts: Sequence[Draft],
    *,
    by: User | None,
    now: datetime,
    vectors: Sequence[Embedded | None] | None = None,
    dedupe: str = "key",
    near: bool = True,
    pasts: Sequence[Past] | None = None,
) -> list[Saved]:
    """``gate.save_memory`` for many: the same cleaning, refusals, comparisons, words, vectors, revisions and events.

    One result a draft, in order; what was forgotten for good is not stored (``forgotten``), since nobody reads a file
    line by line before bringing it in. Raises Invalid or SecretRefused before anything is stored. ``vectors`` are
    those of the cleaned texts by the active model, made here otherwise; None for one that is to be made in the
    background.
    ``near=False`` leaves near-duplicates out: only equal texts are found. ``pasts`` are the ids, dates and revisions
    that the memories had elsewhere. Each batch is a transaction of its own: after a crash the same call stores what
    is missing.
    """
    cleaned = _at_home([draft.cleaned() for draft in drafts])
    saved: list[Saved] = []
    for start in range(0, len(cleaned), BATCH):
        part = cleaned[start : start + BATCH]
        given: Sequence[Embedded | None]
        if vectors is not None:
            given = vectors[start : start + BATCH]
        else:
            reaches = [Reach.here(draft.workspace) for draft in part]
            made = embed_texts([(draft.content, draft.source_excerpt) for draft in part], reaches)
            given = made or [None] * len(part)
        past = pasts[start : start + BATCH] if pasts is not None else None
        saved += save_cleaned(part, given, past, by=by, now=now, dedupe=dedupe, near=near)
    return saved


def foresee(
    drafts: Sequence[Draft],
    vectors: Sequence[Embedded | None],
    pasts: Sequence[Past] | None = None,
    *,
    by: User | None,
    now: datetime,
    near: bool = True,
    kept_up_to: int | None = None,
) -> list[Saved]:
    """What ``save_memories`` would answer for these cleaned drafts, and nothing stored.

    A memory that has no row yet is one of the drafts'. A key that is known would change its memory in place.
    """
    drafts = _at_home(drafts)
    results: dict[int, Saved] = {}
    for numbers in _by_place(drafts).values():
        batch = _batch(numbers, drafts, vectors, pasts, now)
        batch.sort_out("key", by=by, near=near, kept_up_to=kept_up_to)
        results |= batch.saved | batch.one_by_one
    return [results[number] for number in range(len(drafts))]


def _at_home(drafts: Sequence[Draft]) -> list[Draft]:
    """Personal ones lie in their owner's default workspace."""
    owners = {draft.owner.pk: draft.owner for draft in drafts if draft.owner}
    homes = {pk: default_workspace(owner) for pk, owner in owners.items()}
    return [replace(draft, workspace=homes[draft.owner.pk]) if draft.owner else draft for draft in drafts]


def _by_place(drafts: Sequence[Draft]) -> dict[_Place, list[int]]:
    places: dict[_Place, list[int]] = {}
    for number, draft in enumerate(drafts):
        places.setdefault(_place(draft), []).append(number)
    return places


def save_cleaned(
    drafts: Sequence[Draft],
    vectors: Sequence[Embedded | None],
    pasts: Sequence[Past] | None = None,
    *,
    by: User | None,
    now: datetime,
    dedupe: str = "key",
    near: bool = True,
    kept_up_to: int | None = None,
) -> list[Saved]:
    """``save_memories`` for a batch of cleaned drafts at home whose vectors are known.

    Asks no model, so it may be part of a transaction. ``kept_up_to``: see ``Batch.sort_out``.
    """
    results: dict[int, Saved] = {}
    with changing.one_holder_a_key():
        for workspace in sorted({draft.workspace for draft in drafts}, key=lambda found: found.pk):
            one_writer_at_a_time(workspace)
        for numbers in _by_place(drafts).values():
            batch = _batch(numbers, drafts, vectors, pasts, now)
            batch.sort_out(dedupe, by=by, near=near, kept_up_to=kept_up_to)
            batch.store(by)
            results |= batch.saved
            for number in batch.one_by_one:
                results[number] = gate.save_embedded(
                    drafts[number],
                    vectors[number],
                    by=by,
                    now=now,
                    dedupe=dedupe,
                    near=near,
                    before=MOST_KEYS if kept_up_to is None else kept_up_to + 1,
                )
    return [results[number] for number in range(len(drafts))]


def _batch(
    numbers: Sequence[int],
    drafts: Sequence[Draft],
    vectors: Sequence[Embedded | None],
    pasts: Sequence[Past] | None,
    now: datetime,
) -> Batch:
    rows = [(number, drafts[number], vectors[number]) for number in numbers]
    return Batch(rows, now, [pasts[number] for number in numbers] if pasts is not None else None)


def _place(draft: Draft) -> _Place:
    owner, agent = draft.owner, draft.agent
    return _Place(draft.workspace.pk, draft.scope, owner.pk if owner else None, agent.pk if agent else None)
