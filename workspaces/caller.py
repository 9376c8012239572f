"""For whom something is done and where, whatever the door: a person in one of their workspaces, perhaps by a key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workspaces.leaving_machine import Reach
from workspaces.models import Agent, ApiKey, User, Workspace


@dataclass(frozen=True)
class Caller:
    """Loaded anew for every call: rights may have changed since. ``role`` is the person's in ``workspace``."""

    person: User
    workspace: Workspace
    role: str
    reach: Reach
    now: datetime
    agent: Agent | None = None
    key: ApiKey | None = None
