"""An overview in place of the nearest memories, where a message asks for one.

About everything: pinned ones first, then those that answer the message by themselves, then spread over categories and
topics, important and new ones of each first. About a topic: what is nearer to it than the workspace's mean.
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

LINES = 12  # unless the caller says another number
TOPIC_RELEVANCE = 0.15  # of a memory that answers; a topic without one, as general knowledge, has no overview
NEAREST = 5  # memories, of at least four times as many, that stand for a topic beside its name
# The cosine that a rule, and what is over, is put back by, as far as the nearest are none: chosen on workspaces_dev and
# the project's own overviews.
PUT_BACK = (0.1, 0.4)
FEWEST = 3  # lines of a topic that has an overview: in a small workspace the mean says little
CONSIDERED = 60  # memories of a category
LONGEST_MESSAGE = 300  # characters; longer ones ask for something else
Array = NDArray[Any]


@dataclass(frozen=True)
class Overview:
    """``total``: how many memories it could have from its first line on, 0 for one of a topic."""

    kind: str
    total: int = 0


@dataclass(frozen=True)
class _Row:
    key: int
    category: str
    pinned: bool
    answers: bool  # the message by itself
    holds: bool  # it does not say of itself that it is over
    is_about: bool  # about the person who asks, for SELF
    importance: float
    created_at: datetime

    @property
    def order(self) -> tuple[bool, bool, bool, bool, float, datetime, int]:
        """The largest comes first."""
        return (
            self.pinned, self.answers, self.holds, self.is_about, self.importance, self.created_at, self.key
        )  # fmt: skip


def of_topic(
    message: Array, statements: Mapping[int, Array], mean: Array, answers: Collection[int]
) -> list[int]:
    """The keys of the memories that bear on a topic, nearest first: ``answers``, and what is nearer than their mean.

    All vectors are the multilingual parts: of the message, of each memory by key, and their mean in the workspace.
    Both sides are compared without what messages, and the workspace's memories, have in common. The nearest memories
    stand for the topic in a second round.
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
    """The keys of the memories of an overview, first ones first, and how many there are. Three queries.

    Of each category at most ``CONSIDERED`` are among them. SELF: what the person said, and what names them; HERE: what
    lies in the workspace. What no longer holds, or may have been replaced, is left out. ``answers``: the keys of those
    that answer the message by themselves.
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
    """The memories that hold and that an overview of this kind may have, within ``where``."""
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
    """Pinned ones and answers, then in turn one of each group of the same category and topic, the best group first."""
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
    """The first topic of each memory that is in one."""
    links = NodeMemory.objects.filter(memory__in=keys).order_by("-node").values_list("memory", "node")
    return dict(links)


def _is_about(content: str, user: User) -> bool:
    """Whether a statement begins with "I", "User" or the person's name."""
    name = user.shown_name.split()[0] if user.shown_name.split() else user.get_username()
    return subject(content, user.get_username()) in {user.get_username().lower(), name.lower()}
