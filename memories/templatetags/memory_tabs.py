"""The tabs of the pages about memory, with how much waits behind each."""

from __future__ import annotations

from typing import Any

from django import template

from memories.forgetting.forget import noted
from memories.models.memory import MAY_REPLACE
from memories.usage import live_in
from memories.writing.review import proposals
from workspaces.models import Workspace

register = template.Library()


@register.inclusion_tag("memories/page/tabs.html", takes_context=True)
def memory_tabs(context: dict[str, Any], workspace: Workspace, current: str) -> dict[str, Any]:
    """``current`` is the tab that the page stands behind. Three queries."""
    user = context["request"].user
    undecided = live_in(workspace, user).filter(MAY_REPLACE)
    return {
        "workspace": workspace,
        "current": current,
        "waiting": proposals(workspace, user).count() + len(noted(workspace, user)),
        "undecided": undecided.order_by().count(),
    }
