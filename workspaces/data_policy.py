"""Data policy of an operation: whether texts may leave this machine, and whether other people read the result.

A ``DataPolicy`` is made where the workspace is known, and passed to everything that recalls, embeds or sends text to a
model. Its fields have no defaults.
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
class DataPolicy:
    """The data policy of one operation, such as a search or a chat turn.

    ``local_only``: texts are embedded on this machine only. ``leaves``: results are sent to a model on another machine.
    ``personal``: results may include the person's own texts; False if other people read the results too.
    """

    local_only: bool
    leaves: bool
    personal: bool

    @classmethod
    def here(cls, workspace: Workspace) -> DataPolicy:
        """Return the policy for results that go to no model: they are stored, or shown only to the person who requests
        them.
        """
        return cls(workspace.local_only, leaves=False, personal=True)

    @classmethod
    def to_model(cls, workspace: Workspace, *, is_local: bool, personal: bool) -> DataPolicy:
        """Return the policy for text sent to a model.

        Raises ModelNotLocal for a remote model in a local-only workspace.
        """
        if workspace.local_only and not is_local:
            raise ModelNotLocal
        return cls(workspace.local_only, leaves=not is_local, personal=personal)


def within_policy(rows: Rows, workspace: Workspace, user: User, policy: DataPolicy) -> Rows:
    """Return the rows that are shared in this workspace and, if the policy allows it, the user's personal rows.

    If results leave this machine, personal rows of a local-only workspace are left out. The caller must check
    membership.
    """
    condition = Q(workspace=workspace, owner=None)
    if policy.personal:
        condition |= Q(owner=user, workspace__local_only=False) if policy.leaves else Q(owner=user)
    return rows.filter(condition)


def is_local_elsewhere(row: Placed, workspace: Workspace) -> bool:
    """Return whether a row belongs to another workspace, and that workspace is local-only."""
    return row.workspace_id != workspace.pk and row.workspace.local_only


@dataclass(frozen=True)
class Caller:
    """The person who calls a tool or an endpoint, with the workspace, their role in it, and the data policy.

    Load it for every call, because rights may have changed.
    """

    person: User
    workspace: Workspace
    role: str
    policy: DataPolicy
    now: datetime
    agent: Agent | None = None
    key: ApiKey | None = None
