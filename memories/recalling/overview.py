"""Overviews: lists of many memories, for messages such as "What do you know about me?".

An overview of everything lists pinned memories, then those that answer the message by themselves. The others follow in
turns between categories and topics, in each the important and new ones first. An overview of a topic lists the memories
that are nearer to the topic than the mean of the workspace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Exists, F, OuterRef, Q, Window
from django.db.models.functions import RowNumber
from numpy.typing import NDArray

from memories.judging.stated_period import says_over
from memories.models import Memory, NodeMemory
from memories.models.memory import MemoryQuerySet
from memories.recalling.question import subject
from memories.recalling.relevance import PRIOR_COUNT, net_logits, statement_kinds
from memories.topics import whole_words
from workspaces.index.hybrid_search import SearchArea
from workspaces.models import Agent, User, Workspace

# Classifier of messages that ask for an overview, and of what: a small net over the message's multilingual
# vector. Does not access the database. Fitted by tests/bench/fit_overview.py; docs/recall.md has the figures.

FILE = Path(__file__).with_name("overview.npz")
NONE, SELF, HERE, TOPIC = "none", "self", "here", "topic"
# Classes of the net: no overview, or an overview of the person, the workspace or a topic.
CLASSES = (NONE, SELF, HERE, TOPIC)
AT, SURE = 0.8, 0.985  # minimum probability that a message asks for an overview, usually and in doubt


class Fitted(NamedTuple):
    hidden: Array  # (385, 64): the hidden layer of the net, the constants last
    outer: Array  # (65, 4): the output layer, a column for each of CLASSES, the constants last
    frame: Array  # the mean of messages that ask for an overview of some topic
    statement: Array  # the mean of memories


@lru_cache(maxsize=1)
def fitted() -> Fitted:
    with np.load(FILE) as file:
        return Fitted(*(file[name].astype(np.float32) for name in Fitted._fields))


def kind_of(vector: Array, net: tuple[Array, Array] | None = None, *, in_doubt: bool = False) -> str:
    """Return the kind of overview that a message asks for: SELF, HERE (the workspace), TOPIC, or "" for none.

    ``vector`` is the multilingual encoder's part of the message's vector. ``net`` replaces the
    fitted weights. Set ``in_doubt``, which requires a higher probability, if a single memory answers the message.
    """
    logits = net_logits(vector / np.linalg.norm(vector), *(net or (fitted().hidden, fitted().outer)))
    share = np.exp(logits - logits.max())
    if share[0] > (1 - (SURE if in_doubt else AT)) * share.sum():
        return ""
    return CLASSES[1 + int(share[1:].argmax())]


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
    """The overview that a recall returned in place of the nearest memories."""

    kind: str
    total: int = 0  # the number of its memories from the requested offset on; 0 for a topic


class _Row(NamedTuple):
    """A memory that an overview may list. Rows are sorted by these fields, in descending order."""

    pinned: bool
    answers: bool  # it answers the message by itself
    holds: bool  # its text does not say that it is over
    is_about: bool  # about the person who asks, for SELF
    importance: float
    created_at: datetime
    key: int
    category: str


def of_topic(
    message: Array, statements: Mapping[int, Array], mean: Array, answers: Collection[int]
) -> list[int]:
    """Return the primary keys of the memories about a topic, nearest first. Those of ``answers`` are always included.

    ``message``, ``statements`` (by primary key) and ``mean`` (over the workspace) are the multilingual encoder's parts
    of vectors. Means are subtracted from the message and the memories, so that only their subjects remain. Then each
    memory is compared with the message together with the memories nearest to it.
    """
    keys, vectors = list(statements), np.stack(list(statements.values()))
    fit, count = fitted(), len(keys)
    length = np.linalg.norm(vectors, axis=1).mean()
    common = (count * mean / length + PRIOR_COUNT * fit.statement) / (count + PRIOR_COUNT)
    subject = _units(_units(message) - fit.frame)
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
    """Return the primary keys of an overview's memories in display order, and the number of candidates. Three queries.

    At most ``CONSIDERED`` memories per category are listed. ``answers`` are the primary keys of the memories that
    answer the message by themselves.
    """
    memories = candidates(kind, workspace, user, agent, where, now)
    place = Window(
        RowNumber(),
        partition_by=[F("category")],
        order_by=["-pinned", "-importance", "-created_at", "-id"],
    )
    values = ("pk", "content", "category", "pinned", "importance", "created_at")
    rows = [
        _Row(
            pinned,
            pk in answers,
            not says_over(content),
            kind == SELF and _is_about(content, user),
            importance,
            created_at,
            pk,
            category or "",
        )
        for pk, content, category, pinned, importance, created_at in memories.annotate(place_in=place)
        .filter(place_in__lte=CONSIDERED)
        .order_by()
        .values_list(*values)
    ]
    links = NodeMemory.objects.filter(memory__in=[row.key for row in rows]).order_by("-node")
    topics = dict(links.values_list("memory", "node"))  # one topic of each memory that has any
    return spread(rows, topics), memories.order_by().count()


def candidates(
    kind: str, workspace: Workspace, user: User, agent: Agent | None, where: SearchArea, now: datetime
) -> MemoryQuerySet:
    """Return the memories that an overview may list: the user's own and those that name them, or the workspace's."""
    newer = Memory.objects.live(now).filter(may_replace=OuterRef("pk"), workspace=OuterRef("workspace"))
    memories = Memory.objects.recallable_in(workspace, user, agent).live(now).not_over(now)
    memories = memories.filter(~Exists(newer), workspace__in=where.workspaces)
    if not where.personal:
        memories = memories.filter(owner=None)
    if kind == SELF:
        by_user = Q(edited_at=None, author=user) | Q(edited_at__isnull=False, edited_by=user)
        return memories.filter(by_user | Q(owner=user) | Q(content__iregex=whole_words(user.shown_name)))
    return memories.filter(workspace=workspace)


def spread(rows: list[_Row], topics: Mapping[int, int]) -> list[int]:
    """Return the keys of the rows: pinned ones and answers, then the best of each category and topic in turns."""
    groups: dict[tuple[str, int], list[_Row]] = defaultdict(list)
    for row in sorted(rows, reverse=True):
        groups[row.category, topics.get(row.key, 0)].append(row)
    turns = [
        (0 if row.pinned or row.answers else at + 1, row)
        for group in groups.values()
        for at, row in enumerate(group)
    ]
    turns.sort(key=lambda turn: turn[1], reverse=True)
    turns.sort(key=lambda turn: turn[0])
    return [row.key for _, row in turns]


def _is_about(content: str, user: User) -> bool:
    """Return whether a statement begins with "I", "User" or the user's name."""
    name = user.shown_name.split()[0] if user.shown_name.split() else user.get_username()
    return subject(content, user.get_username()) in {user.get_username().lower(), name.lower()}
