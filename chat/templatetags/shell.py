"""Template tags for the page frame of signed-in users: the sidebar, and chats that memories link to."""

from collections.abc import Iterable
from typing import Any

from django import template
from django.template import Context
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.chats.chat_list import chat_list_page
from chat.chats.personal_memories import chats_with_personal_data_of
from chat.models import Chat, Message
from memories.access import memory_on, vetoed
from memories.models import Memory
from workspaces.access import default_workspace, owners_of_personal, workspaces_of
from workspaces.accounts.invitations import invitations_of
from workspaces.actions.workspaces import agents_in_use
from workspaces.model_choice import chosen_for
from workspaces.models import Role, Workspace

register = template.Library()
MOST_NAMED = 20


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


@register.simple_tag(takes_context=True)
def source_chats(context: Context, memories: Iterable[Any]) -> dict[str, Chat]:
    """Return the chats that these memories came from, by id, without those that the user may not open. One query."""
    ids = {memory.source_chat_id for memory in memories if memory.source_chat_id}
    chats = Chat.objects.visible_to(context["request"].user).live().filter(public_id__in=ids)
    return {chat.public_id: chat for chat in chats}


@register.simple_tag
def edited_sources(memories: Iterable[Memory]) -> set[str]:
    """Return the ids of messages that memories came from and that were edited since. One query."""
    ids = {memory.source_message_id for memory in memories if memory.source_message_id}
    edited = Message.objects.filter(public_id__in=ids).exclude(superseded_by=None)
    return set(edited.values_list("public_id", flat=True))


@register.simple_tag(takes_context=True)
def given_sources(context: Context, memories: Iterable[Any]) -> dict[str, Chat]:
    """Map the chats and messages that API clients named as sources of these memories to the chats to link to. Two
    queries.

    The memories must have the attribute ``origins``, which ``memories.views.panel_context.on_cards`` sets.
    """
    ids = {source.source_id for memory in memories for source in memory.origins}
    chats = Chat.objects.visible_to(context["request"].user).live()
    chats_by_id = {chat.public_id: chat for chat in chats.filter(public_id__in=ids)}
    messages = Message.objects.filter(public_id__in=ids, chat__in=chats).readable_by(context["request"].user)
    messages = messages.select_related("chat").defer("content")
    return chats_by_id | {message.public_id: message.chat for message in messages}


@register.simple_tag(takes_context=True)
def chats_with_own(context: Context, workspace: Workspace) -> list[Chat]:
    """Return the newest chats that others can read and with an answer from this user's personal data. One query."""
    return list(chats_with_personal_data_of(context["request"].user, workspace)[:MOST_NAMED])


@register.filter
def get(mapping: dict[str, Any], key: str) -> Any:
    return mapping.get(key)


register.simple_tag(vetoed, name="memory_vetoed")


@register.simple_tag(takes_context=True)
def memory_on_by_default(context: Context) -> bool:
    """Return whether new chats of the user have memory on, by the user's setting, else by the operator's."""
    return memory_on(context["request"].user, None)


@register.simple_tag(takes_context=True)
def model_without_tools(context: Context) -> str:
    """Return the name of the default model of the user's own workspace if it cannot call tools, else ""."""
    user = context["request"].user
    model = chosen_for(default_workspace(user), user).model
    return "" if model.capabilities.has_tools else model.name or _("the built-in one")
