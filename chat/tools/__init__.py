"""Tools of a chat, for models that can call tools."""

from typing import Any

from chat.models import Chat
from chat.tools.artifacts import WRITE_ARTIFACT
from chat.tools.base import ChatTool
from chat.tools.memory import (
    LTM_RECALL,
    LTM_REMEMBER,
    UPDATE_SHORT_TERM_MEMORY,
    X_RECALL_MEMORY,
    X_SAVE_MEMORY,
    X_WORKSPACE_SEARCH,
)
from memoryhub.llm.base import Capabilities

OF_EVERY_CHAT = (
    X_SAVE_MEMORY,
    X_RECALL_MEMORY,
    X_WORKSPACE_SEARCH,
    UPDATE_SHORT_TERM_MEMORY,
    WRITE_ARTIFACT,
)
OF_AN_AGENT = (LTM_RECALL, LTM_REMEMBER)


def tools_for(chat: Chat, capabilities: Capabilities, *, memory_enabled: bool) -> tuple[ChatTool[Any], ...]:
    """Return the tools of a chat; none if the model cannot call tools or memory is off in this turn."""
    if not capabilities.has_tools or not memory_enabled:
        return ()
    return OF_EVERY_CHAT + (OF_AN_AGENT if chat.agent_id else ())
