"""Overviews, which replace the nearest memories if a message asks for an overview.

An overview of everything lists pinned memories, then those that answer the message by themselves, and then takes turns
between categories and topics, important and new memories of each first. An overview of a topic lists the memories that
are nearer to the topic than the workspace's mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db.models import Exists, F, OuterRef, Q, Window
from django.db.models.functions import RowNumber
from numpy.typing import NDArray

from memories.judging.validity import says_over
from memories.models import Memory, NodeMemory
from memories.models.memory import MemoryQuerySet
from memories.nodes.linking import whole_words
from memories.recalling import overview_kind
from memories.recalling.overview_kind import SELF
from memories.recalling.relevance import PRIOR_COUNT, statement_kinds
from memories.recalling.signals import subject
from workspaces.index.candidates import SearchArea
from workspaces.models import Agent, User, Workspace

LINES = 12  # default number of memories
TOPIC_RELEVANCE = 0.15  # minimum relevance of one memory of a topic; general knowledge has no overview
NEAREST = 5  # memories that represent a topic in the second round, at most a quarter of all
# Subtracted from the cosine of rules, and of memories that are over, unless the nearest memories are of that kind too.
# Chosen on workspaces_dev and the project's own overviews.
PUT_BACK = (0.1, 0.4)
FEWEST = 3  # minimum number of memories of a topic, because a small workspace's mean says little
CONSIDERED = 60  # memories per category
LONGEST_MESSAGE = 300  # characters; longer ones ask for something else
Array = NDArray[Any]


@dataclass(frozen=True)
class Overview:
    """The kind of an overview. ``total`` is the number of memories from its first line on, or 0 for a topic."""

    kind: str
    total: int = 0


@dataclass(frozen=True)
class _Row:
    key: int
    category: str
    pinned: bool
    answers: bool  # it answers the message by itself
    holds: bool  # its text does not say that it is over
    is_about: bool  # about the person who asks, for SELF
    importance: float
    created_at: datetime

    @property
    def order(self) -> tuple[bool, bool, bool, bool, float, datetime, int]:
        """Return the sort key; the largest comes first."""
        return (
            self.pinned, self.answers, self.holds, self.is_about, self.importance, self.created_at, self.key
        )  # fmt: skip


def of_topic(
    message: Array, statements: Mapping[int, Array], mean: Array, answers: Collection[int]
) -> list[int]:
    """Return the keys of the memories about a topic, nearest first: ``answers``, and those nearer than the mean.

    All vectors are multilingual parts: of the message, of each memory by key, and their mean in the workspace. What
    messages have in common, and what the workspace's memories have in common, is subtracted before comparing. In a
    second round, the nearest memories represent the topic.
    """
    keys, vectors = list(statements), np.stack(list(statements.values()))
    fitted, count = overview_kind.fitted(), len(keys)
    length = np.linalg.norm(vectors, axis=1).mean()
    common = (count * mean / length + PRIOR_COUNT * fitted.statement) / (count + PRIOR_COUNT)
    subject = _units(_units(message) - fitted.frame)
    own = _units(vectors / length - common)
    nearest = np.argsort(-(own @ subject))[: max(1, min(NEAREST, count // 4))]
    near = own @ _units(subject + _units(own[nearest].mean(axis=0)))
    kinds = statement_kinds(vectors)
    near -= np.maximum(0, kinds - kinds[nearest].mean(axis=0)) @ PUT_BACK
    order = np.argsort(-near)
    return [
        keys[at]
        for place, at in enumerate(order)
        if place < FEWEST or near[at] >= near.mean() or keys[at] in answers
    ]


def _units(vectors: Array) -> Array:
    units: Array = vectors / np.maximum(1e-9, np.linalg.norm(vectors, axis=-1, keepdims=True))
    return units


def of_everything(
    kind: str,
    workspace: Workspace,
    user: User,
    agent: Agent | None,
    where: SearchArea,
    answers: Collection[int],
    now: datetime,
) -> tuple[list[int], int]:
    """Return the keys of an overview's memories, first ones first, and the number of all candidates. Three queries.

    SELF covers what the user said and what names them, HERE the memories of the workspace. At most ``CONSIDERED``
    memories of a category are listed. Memories that no longer hold or may have been replaced are left out. ``answers``
    are the keys of the memories that answer the message by themselves.
    """
    found = candidates(kind, workspace, user, agent, where, now)
    place = Window(
        RowNumber(),
        partition_by=[F("category")],
        order_by=["-pinned", "-importance", "-created_at", "-id"],
    )
    values = ("pk", "content", "category", "pinned", "importance", "created_at")
    rows = [
        _Row(
            pk,
            category or "",
            pinned,
            pk in answers,
            not says_over(content),
            kind == SELF and _is_about(content, user),
            importance,
            created_at,
        )
        for pk, content, category, pinned, importance, created_at in found.annotate(place_in=place)
        .filter(place_in__lte=CONSIDERED)
        .order_by()
        .values_list(*values)
    ]
    return spread(rows, _topics([row.key for row in rows])), found.order_by().count()


def candidates(
    kind: str, workspace: Workspace, user: User, agent: Agent | None, where: SearchArea, now: datetime
) -> MemoryQuerySet:
    """Return the memories within ``where`` that hold and may be in an overview of this kind."""
    newer = Memory.objects.live(now).filter(may_replace=OuterRef("pk"), workspace=OuterRef("workspace"))
    found = Memory.objects.recallable_in(workspace, user, agent).live(now).not_over(now)
    found = found.filter(~Exists(newer), workspace__in=where.workspaces)
    if not where.personal:
        found = found.filter(owner=None)
    if kind == SELF:
        said = Q(edited_at=None, author=user) | Q(edited_at__isnull=False, edited_by=user)
        return found.filter(said | Q(owner=user) | Q(content__iregex=whole_words(user.shown_name)))
    return found.filter(workspace=workspace)


def spread(rows: list[_Row], topics: Mapping[int, int]) -> list[int]:
    """List pinned memories and answers, then take turns between groups of one category and topic, best first."""
    groups: dict[tuple[str, int], list[_Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.order, reverse=True):
        groups[row.category, topics.get(row.key, 0)].append(row)
    turns = [
        (0 if row.pinned or row.answers else at + 1, row)
        for group in groups.values()
        for at, row in enumerate(group)
    ]
    turns.sort(key=lambda turn: turn[1].order, reverse=True)
    turns.sort(key=lambda turn: turn[0])
    return [row.key for _, row in turns]


def _topics(keys: list[int]) -> dict[int, int]:
    """Return one topic of each memory that has any, by memory."""
    links = NodeMemory.objects.filter(memory__in=keys).order_by("-node").values_list("memory", "node")
    return dict(links)


def _is_about(content: str, user: User) -> bool:
    """Return whether a statement begins with "I", "User" or the user's name."""
    name = user.shown_name.split()[0] if user.shown_name.split() else user.get_username()
    return subject(content, user.get_username()) in {user.get_username().lower(), name.lower()}
