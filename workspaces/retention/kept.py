"""Kinds of things with a retention rule. The apps above register theirs (``register_kept``), as they do with quotas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from django.db.models import F, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Greatest

from workspaces.artifacts import artifacts
from workspaces.documents import documents
from workspaces.models import Artifact, Document, User

EVERY = Q()
SHARED = Q(owner=None)
# What is personal lies in its owner's own workspace, and goes by a rule there only if it is theirs.
BY_RULE = SHARED | Q(owner=F("workspace__retention__set_by"))


class Delete(Protocol):
    def __call__(self, row: Any, /, *, now: datetime) -> object: ...


@dataclass(frozen=True)
class Kept:
    """A kind of thing: its ``rows`` that may go at all (live, and pinned by nobody), ``since`` when their days are
    counted, which of them everybody in the workspace may see (``shared``) and which a person (``of``), and how one that
    is locked is deleted, softly.
    """

    name: str
    rows: Callable[[], QuerySet[Any]]
    since: Combinable
    shared: Q
    of: Callable[[User], Q]
    delete: Delete
    by_rule: Q = EVERY  # those that an owner's rule concerns; the operator's concerns all


_kinds: dict[str, Kept] = {}


def register_kept(kind: Kept) -> None:
    _kinds[kind.name] = kind


def kinds() -> list[Kept]:
    return list(_kinds.values())


register_kept(
    Kept(
        name="documents",
        rows=lambda: Document.objects.live(),
        since=Greatest("created_at", "updated_at"),
        shared=SHARED,
        of=lambda user: Q(owner=user),
        delete=documents.take_out,
        by_rule=BY_RULE,
    )
)
register_kept(
    Kept(
        name="artifacts",
        rows=lambda: Artifact.objects.live(),
        since=F("updated_at"),
        shared=SHARED,
        of=lambda user: Q(owner=user),
        delete=artifacts.take_out,
        by_rule=BY_RULE,
    )
)
