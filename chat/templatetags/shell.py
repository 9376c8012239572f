"""The frame around every page of a signed-in person: the sidebar, for pages of all apps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import template
from django.http import HttpRequest
from django.template import Context
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.chats.chat_list import chat_list_page
from chat.chats.personal_memories import with_personal_of
from chat.models import Chat, Message
from memories.consent import memory_on, vetoed
from memories.models import Memory
from workspaces.access import default_workspace, whose_own, workspaces_of
from workspaces.accounts.invitations import invitations_of
from workspaces.actions.agents import agents_in_use
from workspaces.connections import chosen_for
from workspaces.models import Role, Workspace

register = template.Library()
MOST_NAMED = 20


@register.inclusion_tag("chat/sidebar.html", takes_context=True)
def sidebar(context: Context) -> dict[str, Any]:
    """Chats of the page's workspace; on pages without one, of the one visited last. Four queries beside the page's."""
    request = context["request"]
    user = request.user
    workspaces = workspaces_of(user)
    workspace = context.get("workspace") or _last_visited(request, workspaces) or default_workspace(user)
    chat, agents = context.get("chat"), context.get("agents")
    return {
        "user": user,
        "workspace": workspace,
        "workspaces": workspaces,
        "whose": whose_own(workspaces, user),
        "invited_to": invitations_of(user, now=timezone.now()).exclude(
            public_id__in=request.session.get("invitations_later", [])
        ),
        "agents": agents_in_use(workspace) if agents is None else list(agents),
        "page": chat_list_page(workspace, user, now=timezone.now()),
        "current_chat_id": chat.public_id if chat else "",
        "can_write": Role(workspace.role).allows(Role.EDITOR),
    }


@register.simple_tag(takes_context=True)
def source_chats(context: Context, memories: Iterable[Any]) -> dict[str, Chat]:
    """Return the chats these memories come from, by id, as far as the person may open them. One query."""
    ids = {memory.source_chat_id for memory in memories if memory.source_chat_id}
    if not ids:
        return {}
    chats = Chat.objects.visible_to(context["request"].user).live().filter(public_id__in=ids)
    return {chat.public_id: chat for chat in chats}


@register.simple_tag
def said_otherwise(memories: Iterable[Memory]) -> set[str]:
    """Return those source messages of the memories that an edit has replaced since. One query."""
    ids = {memory.source_message_id for memory in memories if memory.source_message_id}
    if not ids:
        return set()
    edited = Message.objects.filter(public_id__in=ids).exclude(superseded_by=None)
    return set(edited.values_list("public_id", flat=True))


@register.simple_tag(takes_context=True)
def given_sources(context: Context, memories: Iterable[Any]) -> dict[str, Chat]:
    """Return the chats of the sources that callers gave, by the source's id, as far as the person may open them.

    The memories are those of ``memories.views.panel_context.for_cards``.
    """
    ids = {source.source_id for memory in memories for source in memory.origins}
    if not ids:
        return {}
    chats = Chat.objects.visible_to(context["request"].user).live()
    found = {chat.public_id: chat for chat in chats.filter(public_id__in=ids)}
    messages = Message.objects.filter(public_id__in=ids, chat__in=chats).readable_by(context["request"].user)
    messages = messages.select_related("chat")
    return found | {message.public_id: message.chat for message in messages.defer("content")}


@register.simple_tag(takes_context=True)
def chats_with_own(context: Context, workspace: Workspace) -> list[Chat]:
    """Chats of this workspace open to all its members, now and later, in which answers used what is this
    person's own; the newest first. One query.
    """
    return list(with_personal_of(context["request"].user, workspace)[:MOST_NAMED])


@register.filter
def get(mapping: dict[str, Any], key: str) -> Any:
    return mapping.get(key)


def _last_visited(request: HttpRequest, workspaces: list[Workspace]) -> Workspace | None:
    last = request.session.get("workspace")
    return next((workspace for workspace in workspaces if workspace.public_id == last), None)


@register.simple_tag
def memory_vetoed() -> bool:
    """Return whether the operator switched automatic memory off for everyone."""
    return vetoed()


@register.simple_tag(takes_context=True)
def memory_on_by_default(context: Context) -> bool:
    """Return whether this person's new chats begin with memory on: their own answer, else the operator's."""
    return memory_on(context["request"].user, None)


@register.simple_tag(takes_context=True)
def model_without_tools(context: Context) -> str:
    """Return the name of the model in this person's own workspace if it cannot call tools, for the profile."""
    user = context["request"].user
    model = chosen_for(default_workspace(user), user).model
    return "" if model.capabilities.has_tools else model.name or _("the bundled one")
