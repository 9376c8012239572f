"""Choosing which model answers: in the toolbar of a chat, or of one that is about to begin."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_http_methods

from chat.access import get_chat
from chat.chats import actions
from chat.chats.chat_usage import usage_of
from chat.models import Chat
from chat.turns.chosen_model import model_context
from memoryhub.errors import Invalid
from workspaces.access import get_workspace
from workspaces.actions.connections import may_connect
from workspaces.connections import options_for, wanted_by
from workspaces.models import Role, User, Workspace
from workspaces.models.connections import Connection
from workspaces.views import PageRequest


def _menu(
    workspace: Workspace, user: User, chosen: Connection | None, inherited: Connection | None
) -> dict[str, Any]:
    """What the menu lists. Its first line is what is taken where nothing is chosen: the workspace's."""
    options = options_for(workspace, user, chosen, inherited=inherited)
    return {
        "options": options,
        "workspace": workspace,
        "inherits": inherited is not None,
        "may_connect_models": may_connect(user),
    }


@require_http_methods(["GET", "POST"])
def of_chat(request: PageRequest, chat_id: str) -> HttpResponse:
    """GET: the menu. POST: the choice; the toolbar, the notice above the composer and its modes follow."""
    posted = request.method == "POST"
    chat = get_chat(request.user, chat_id, need=Role.EDITOR if posted else Role.VIEWER)
    problem = ""
    if posted:
        try:
            actions.set_connection(chat, connection_id=request.POST.get("connection", ""), by=request.user)
        except Invalid as error:
            problem = error.message
        else:
            return _chosen(request, chat)
    context = _menu(chat.workspace, request.user, chat.connection, chat.workspace.connection)
    context |= {"chat": chat, "problem": problem, "can_write": _can_write(chat), "took": usage_of(chat)}
    return render(request, "chat/model_menu.html", context, status=422 if problem else 200)


@require_GET
def of_new_chat(request: PageRequest, ws_id: str) -> HttpResponse:
    """The menu of a chat that is about to begin: choosing only changes what the page says."""
    workspace = get_workspace(request.user, ws_id)
    wanted = request.GET.get("connection", "")
    context = _menu(workspace, request.user, wanted_by(request.user, wanted), workspace.connection)
    context["can_write"] = Role(workspace.role).allows(Role.EDITOR)
    return render(request, "chat/model_menu.html", context)


def _can_write(chat: Chat) -> bool:
    return Role(chat.role).allows(Role.EDITOR)


def _chosen(request: PageRequest, chat: Chat) -> HttpResponse:
    context = {
        "chat": chat,
        "workspace": chat.workspace,
        "agent": chat.agent,
        "can_write": True,
        **model_context(request.user, chat.workspace, chat),
    }
    response = render(request, "chat/talking_to.html", context)
    for name in ("chat/model_notice.html", "chat/mode_chooser.html"):
        response.write(render(request, name, context | {"oob": True}).content.decode())
    return response
