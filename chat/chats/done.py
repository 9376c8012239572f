"""Who waits long for an answer or a run is told when it is done, wherever in MemoryHub they are meanwhile."""

from __future__ import annotations

from typing import Literal

from memoryhub import events
from workspaces.models import User

LONG = 10.0  # seconds


def tell_done(user: User, kind: Literal["answer", "run"], url: str, *, took: float) -> None:
    """Their pages, and nobody else's: that something is done and where, never what. Within the transaction in which it
    is; nothing where nobody had to wait. One statement.
    """
    if took >= LONG:
        events.publish(f"user:{user.public_id}", "work.done", {"kind": kind, "url": url})
