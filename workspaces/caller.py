"""The caller of a domain function: a person in one of their workspaces, perhaps by a key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workspaces.leaving_machine import Reach
from workspaces.models import Agent, ApiKey, User, Workspace


@dataclass(frozen=True)
class Caller:
    """Caller of a tool or endpoint, loaded for every call: rights may have changed. ``role``: in ``workspace``."""

    person: User
    workspace: Workspace
    role: str
    reach: Reach
    now: datetime
    agent: Agent | None = None
    key: ApiKey | None = None
