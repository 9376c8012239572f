"""Registry of answer modes, and the model for a chat: of its own connection, its workspace's, or the default."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from chat.models import Chat
from chat.models.answer_steps import Mode
from chat.modes.deep_think import DeepThink
from chat.modes.research import Research
from chat.tools.loop import AnswerMode
from memoryhub.errors import Invalid
from memoryhub.llm.base import Capabilities
from workspaces.actions.model_connections import may_manage
from workspaces.model_choice import Chosen, chosen_for, usable_connection
from workspaces.models import User, Workspace
from workspaces.spending.budgets import require_budget
from workspaces.spending.usage_records import rate_of

MODES: dict[str, AnswerMode] = {mode.name: mode for mode in (AnswerMode(), DeepThink(), Research())}


def get_mode(name: str) -> AnswerMode:
    return MODES[name]


def modes_for(capabilities: Capabilities) -> list[AnswerMode]:
    """Return the modes that this model supports, chat first."""
    return [mode for mode in MODES.values() if mode.can(capabilities)]


def require_mode(name: str, capabilities: Callable[[], Capabilities]) -> None:
    """Raise Invalid with the allowed modes if the mode does not exist or the model does not support it."""
    if name == Mode.CHAT:  # supported by every model, so ``capabilities``, which loads them, is not called
        return
    mode, of_model = MODES.get(name), capabilities()
    if mode is None or not mode.can(of_model):
        why = mode.why_not if mode else _("There is no such mode.")
        allowed = ", ".join(each.name for each in modes_for(of_model))
        raise Invalid(why, fields={"mode": f"{why} " + _("Allowed: %s.") % allowed})


def mode_or_chat(name: str, capabilities: Callable[[], Capabilities]) -> str:
    """Return the mode ``name`` if the model supports it, else the chat mode."""
    return name if name == Mode.CHAT or MODES[name].can(capabilities()) else Mode.CHAT


def chosen_for_chat(chat: Chat, user: User | None) -> Chosen:
    """Return the model that answers this user in the chat. Another user's connection is skipped. 0-2 queries."""
    return chosen_for(chat.workspace, user, first=chat.connection)


def require_paid(chat: Chat, by: User, *, now: datetime) -> None:
    """Raise BudgetReached if this month's budget is used up, unless the chat's model is free. One query."""
    require_budget(chat.workspace_id, by.pk, lambda: rate_of(chosen_for_chat(chat, by)), now=now)


def model_context(
    user: User, workspace: Workspace, chat: Chat | None = None, wanted: str = ""
) -> dict[str, Any]:
    """Return the template context for the selected model. ``wanted``: id of the connection selected for a new chat."""
    connection = chat.connection if chat else None
    if chat is None:
        connection = usable_connection(user, wanted)
    chosen = chosen_for(workspace, user, first=connection)
    used = chosen.connection
    return {
        "may_change_model": used is not None and (used.owner_id == user.pk or may_manage(user)),
        "chosen": chosen,
        "wanted_connection": wanted if chat is None and connection else "",
        "modes": modes_for(chosen.model.capabilities),
    }
