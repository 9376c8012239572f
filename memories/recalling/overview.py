"""An overview in place of the nearest memories, where a message asks for one.

About everything: pinned ones first, then those that answer the message by themselves, then spread over categories and
topics, important and new ones of each first. About a topic: the nearest, if any of them is near.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, F, OuterRef, Q, Window
from django.db.models.functions import RowNumber

from memories.models import Memory, NodeMemory
from memories.models.memory import MemoryQuerySet
from memories.recalling.overview_kind import SELF
from memories.recalling.relevance import Relevance
from memories.recalling.signals import subject
from workspaces.index.candidates import SearchArea
from workspaces.models import Agent, User, Workspace

LINES = 12  # unless the caller says another number
TOPIC_BEST = (
    0.3  # the relevance of the best memory from which on a topic has an overview: general knowledge has none
)
TOPIC_LEAST = 0.04  # and the relevance of its last: what a topic includes is less near than what names it
CONSIDERED = 60  # memories of a category
LONGEST_MESSAGE = 300  # characters; longer ones ask for something else


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
    is_about: bool  # about the person who asks, for SELF
    importance: float
    created_at: datetime

    @property
    def order(self) -> tuple[bool, bool, bool, float, datetime, int]:
        """The largest comes first."""
        return self.pinned, self.answers, self.is_about, self.importance, self.created_at, self.key


def of_topic(judged: Mapping[int, Relevance]) -> list[int]:
    """The keys of the memories that bear on the topic, the most relevant first."""
    near = sorted((-each.value, key) for key, each in judged.items() if each.value >= TOPIC_LEAST)
    return [key for _, key in near] if near and -near[0][0] >= TOPIC_BEST else []


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
        return found.filter(said | Q(owner=user) | Q(content__icontains=user.shown_name))
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
