"""What the model may have done while it answers: the tools of a chat, offered to models that can call tools."""

from __future__ import annotations

from django.db.models import Q

from chat.models import Chat
from chat.tools.agent import LTM_RECALL, LTM_REMEMBER
from chat.tools.artifacts import CHANGE_ARTIFACT, READ_ARTIFACT, WRITE_ARTIFACT
from chat.tools.base import ChatTool
from chat.tools.documents import READ_DOCUMENT
from chat.tools.memory import X_RECALL_MEMORY, X_SAVE_MEMORY, X_WORKSPACE_SEARCH
from chat.tools.short_term import UPDATE_SHORT_TERM_MEMORY
from memoryhub.llm.base import Capabilities
from workspaces.models import Artifact

OF_EVERY_CHAT = (
    X_SAVE_MEMORY,
    X_RECALL_MEMORY,
    X_WORKSPACE_SEARCH,
    UPDATE_SHORT_TERM_MEMORY,
    WRITE_ARTIFACT,
)
OF_AN_AGENT = (LTM_RECALL, LTM_REMEMBER)


def tools_for(chat: Chat, capabilities: Capabilities, *, memory_enabled: bool) -> tuple[ChatTool, ...]:
    """All of them are automatic memory: without the person's consent for this turn none is offered."""
    if not capabilities.has_tools or not memory_enabled:
        return ()
    of_documents: tuple[ChatTool, ...] = (READ_DOCUMENT,) if chat.workspace.documents.live().exists() else ()
    of_artifacts: tuple[ChatTool, ...] = (CHANGE_ARTIFACT, READ_ARTIFACT) if _has_artifacts(chat) else ()
    return OF_EVERY_CHAT + of_documents + of_artifacts + (OF_AN_AGENT if chat.agent_id else ())


def _has_artifacts(chat: Chat) -> bool:
    """There, or of the chat's creator alone: whose they are is asked when one is read."""
    here = Q(workspace=chat.workspace_id, owner=None) | Q(owner=chat.created_by_id)
    return Artifact.objects.live().filter(here).exists()
