"""Who is behind a request over MCP. Everything is looked up anew for each: rights may have changed since."""

from __future__ import annotations

from contextvars import ContextVar

from django.utils import timezone
from django.utils.translation import gettext as _

from chat.tools.base import ToolCaller
from memories.consent import memory_on
from memoryhub.errors import Forbidden
from workspaces.access import get_workspace
from workspaces.leaving_machine import Reach
from workspaces.models import ApiKey, KeyScope

asking: ContextVar[ApiKey] = ContextVar(
    "asking"
)  # set at the door, by which the protocol's handlers are called


def caller(*, writes: bool = False, automatic: bool = True) -> ToolCaller:
    """The one who asks. Raises NotFound, Forbidden, ModelNotLocal.

    What is found goes to a model that we know nothing of, so it leaves this machine. ``automatic``: a model uses memory
    by itself, for which its person must have turned memory on, as in a chat.
    """
    key = asking.get()
    workspace = get_workspace(key.user, key.workspace.public_id)
    if writes and key.scope != KeyScope.WRITE:
        raise Forbidden(_("This API key can only read."))
    if automatic and not memory_on(key.user, None):
        raise Forbidden(_("Memory is off for this account. Its person can turn it on in their profile."))
    reach = Reach.to_model(workspace, is_local=False, personal=True)
    return ToolCaller(key.user, workspace, workspace.role, reach, timezone.now(), key=key)
