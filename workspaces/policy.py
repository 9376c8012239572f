"""Data policy: what may leave this machine and who reads the result. One value, made where the workspace is known, and
passed to everything that recalls, embeds or puts text before a model. It has no defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from django.db.models import Q

from memoryhub.llm.errors import ModelNotLocal
from workspaces.models import Agent, ApiKey, OwnedQuerySet, User, Workspace

Rows = TypeVar("Rows", bound=OwnedQuerySet[Any])


class Placed(Protocol):
    @property
    def workspace_id(self) -> int: ...

    @property
    def workspace(self) -> Workspace: ...


@dataclass(frozen=True)
class Reach:
    """A data policy. ``local_only``: texts are embedded on this machine or not at all. ``leaves``: results go to a
    model elsewhere. ``personal``: the person's own texts may be among the results; False where others read along.
    """

    local_only: bool
    leaves: bool
    personal: bool

    @classmethod
    def here(cls, workspace: Workspace) -> Reach:
        """Return the policy for text that is stored, or shown only to its caller."""
        return cls(workspace.local_only, leaves=False, personal=True)

    @classmethod
    def to_model(cls, workspace: Workspace, *, is_local: bool, personal: bool) -> Reach:
        """Return the policy for text shown to a model. Raises ModelNotLocal if these memories may not reach it."""
        if workspace.local_only and not is_local:
            raise ModelNotLocal
        return cls(workspace.local_only, leaves=not is_local, personal=personal)


def in_reach(rows: Rows, workspace: Workspace, user: User, reach: Reach) -> Rows:
    """Return the rows of this workspace and this person that the policy allows. The caller checks membership."""
    found = Q(workspace=workspace, owner=None)
    if reach.personal:
        found |= Q(owner=user, workspace__local_only=False) if reach.leaves else Q(owner=user)
    return rows.filter(found)


def stays_elsewhere(row: Placed, workspace: Workspace) -> bool:
    """Return whether a row lies in another workspace, whose texts never leave this machine."""
    return row.workspace_id != workspace.pk and row.workspace.local_only


# The caller of a domain function: a person in one of their workspaces, perhaps by a key.


@dataclass(frozen=True)
class Caller:
    """Caller of a tool or endpoint. Load it for every call: rights may have changed. ``role``: in ``workspace``."""

    person: User
    workspace: Workspace
    role: str
    reach: Reach
    now: datetime
    agent: Agent | None = None
    key: ApiKey | None = None
