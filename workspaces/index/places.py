"""Places as numbers: where recall looks for a passage (docs/decisions/0011)."""

from __future__ import annotations

AGENT_PLACES = 2**40  # above every workspace's key: an assistant's place is this and its own key


def place_of(workspace_id: int, *, owner_id: int | None = None, agent_id: int | None = None) -> int:
    """The workspace's key; what is personal: its owner's, negated; an assistant's: ``AGENT_PLACES`` and its key."""
    if owner_id is not None:
        return -owner_id
    return workspace_id if agent_id is None else AGENT_PLACES + agent_id
