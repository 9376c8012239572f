"""Choice of the model that answers in a chat: the chat's own connection, else its workspace's, else the server's
default.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from chat.models import Chat
from chat.modes.registry import modes_for
from workspaces.connections import Chosen, chosen_for, wanted_by
from workspaces.models import User, Workspace
from workspaces.spending.bill import rate_of
from workspaces.spending.budgets import require_budget


def chosen_for_chat(chat: Chat, user: User | None) -> Chosen:
    """Return the model that answers this person's turns in the chat. A person's own connection answers only its owner.
    At most two queries.
    """
    return chosen_for(chat.workspace, user, first=chat.connection)


def require_paid(chat: Chat, by: User, *, now: datetime) -> None:
    """Raise BudgetReached if this month's budget is used up and the chosen model is not free. One query."""
    require_budget(chat.workspace_id, by.pk, lambda: rate_of(chosen_for_chat(chat, by)), now=now)


def model_context(
    user: User, workspace: Workspace, chat: Chat | None = None, wanted: str = ""
) -> dict[str, Any]:
    """Return the template context for the chosen model. ``wanted`` is the connection id selected for a new chat."""
    connection = chat.connection if chat else None
    if chat is None:
        connection = wanted_by(user, wanted)
    chosen = chosen_for(workspace, user, first=connection)
    return {
        "chosen": chosen,
        "wanted_connection": wanted if chat is None and connection else "",
        "modes": modes_for(chosen.model.capabilities),
    }
