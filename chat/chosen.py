"""Which model answers in a chat: its own choice, else its workspace's, else the configured one."""

from __future__ import annotations

from chat.models import Chat
from workspaces.connections.choice import Chosen, chosen_for
from workspaces.models import User


def chosen_for_chat(chat: Chat, user: User | None) -> Chosen:
    """For this person's turns: a connection of somebody else's own answers nobody but them. At most two queries."""
    return chosen_for(chat.workspace, user, first=chat.connection)
