"""Template tags for the tabs of the memory pages."""

from typing import Any

from django import template
from django.utils.translation import gettext

from memories.forgetting.for_good import with_noted_copies
from memories.models.memory import CATEGORIES, Memory, SourceType
from memories.writing.review import proposals
from workspaces.models import User, Workspace

register = template.Library()


@register.filter
def category_label(category: str | None) -> str:
    """Return the translation of a built-in category, and any other category unchanged."""
    return gettext(category) if category in CATEGORIES else category or ""


@register.filter
def saved_by(memory: Memory, user: User) -> str:
    """Return “Saved by you” for a memory with this user's own words. Otherwise, return the label of its source."""
    is_unchanged = not memory.edited_at and not memory.imported_at
    if memory.source_type == SourceType.USER and is_unchanged and memory.author_id == user.pk:
        return gettext("Saved by you")
    return memory.source_label


@register.inclusion_tag("memories/page/tabs.html", takes_context=True)
def memory_tabs(context: dict[str, Any], workspace: Workspace, current: str) -> dict[str, Any]:
    """Return the context for the tabs, which show how many memories wait for review. Three queries.

    The number on “Tidy up” is the page's ``undecided``. If that is missing, the page requests the tabs again.
    """
    user = context["request"].user
    return {
        "workspace": workspace,
        "current": current,
        "waiting": proposals(workspace, user).count() + len(with_noted_copies(workspace, user)),
        "undecided": context.get("undecided"),
        "show": context.get("show", ""),
    }
