"""Template tag for the sidebar of signed-in users: their workspaces, assistants and chats."""

from typing import Any

from django import template
from django.template import Context
from django.utils import timezone

from chat.chats.chat_list import chat_list_page
from workspaces.access import default_workspace, owners_of_personal, workspaces_of
from workspaces.accounts.invitations import invitations_of
from workspaces.actions.workspaces import agents_in_use
from workspaces.models import Role

register = template.Library()


@register.inclusion_tag("chat/sidebar.html", takes_context=True)
def sidebar(context: Context) -> dict[str, Any]:
    """Return the context of the sidebar, for the page's workspace or else the last visited one. Four queries."""
    request = context["request"]
    user = request.user
    workspaces = workspaces_of(user)
    last = request.session.get("workspace")
    last_visited = next((each for each in workspaces if each.public_id == last), None)
    workspace = context.get("workspace") or last_visited or default_workspace(user)
    chat, agents = context.get("chat"), context.get("agents")
    return {
        "user": user,
        "workspace": workspace,
        "workspaces": workspaces,
        "whose": owners_of_personal(workspaces, user),
        "invited_to": invitations_of(user, now=timezone.now()).exclude(
            public_id__in=request.session.get("invitations_later", [])
        ),
        "agents": agents_in_use(workspace) if agents is None else list(agents),
        "view": request.resolver_match.view_name if request.resolver_match else "",
        "page": chat_list_page(workspace, user, now=timezone.now()),
        "current_chat_id": chat.public_id if chat else "",
        "can_write": Role(workspace.role).allows(Role.EDITOR),
    }
