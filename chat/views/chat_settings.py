"""Views of a chat's settings: model, personal memories, running summary, and permanent deletion."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat.access import get_chat
from chat.chats import services
from chat.chats.personal_memories import personal_in, use_personal
from chat.chats.services import forget_chat, memories_of, require_own, usage_of
from chat.models import SUMMARY_LENGTH, Chat
from chat.modes.registry import chosen_for_chat, model_context
from chat.prompting.short_term_memory import live_memory, set_summary
from chat.views.chats import can_write
from memories.access import memory_on
from memoryhub.errors import Invalid
from workspaces.access import get_workspace
from workspaces.accounts.reauthentication import ask_for_password
from workspaces.actions.model_connections import may_connect
from workspaces.model_choice import options_for, usable_connection
from workspaces.models import Role, User, Workspace
from workspaces.models.language_models import Connection
from workspaces.views import PageRequest


@require_http_methods(["GET", "POST"])
def forget(request: PageRequest, chat_id: str) -> HttpResponse:
    """Permanently delete a chat (POST) after a confirmation (GET). The chat may already be soft-deleted."""
    chat = get_chat(request.user, chat_id, need=Role.EDITOR, include_deleted=True)
    require_own(chat, request.user)
    ask_for_password(request)
    context: dict[str, Any] = {"workspace": chat.workspace, "chat_to_forget": chat}
    if request.method == "GET":
        context |= {
            "message_count": chat.messages.count(),
            "memory_count": memories_of(chat, request.user).count(),
        }
        return render(request, "chat/forget.html", context)
    memories = request.POST.get("memories") == "on"
    report = forget_chat(chat, by=request.user, now=timezone.now(), memories=memories)
    context |= {"report": report, "said": _("The chat is no longer in the database.")}
    return render(request, "forgetting/done.html", context)


@require_POST
def personal(request: PageRequest, chat_id: str) -> HttpResponse:
    """Allow or forbid the user's personal memories in this chat, and return the chip that shows this.

    If the button in a receipt was clicked (``?receipt``), return a text that replaces it, and the chip out of band.
    """
    chat = get_chat(request.user, chat_id, need=Role.EDITOR)
    use_personal(chat, allowed=request.POST.get("personal") == "on", by=request.user)
    context = {"chat": chat, "personal": personal_in(chat, request.user)}
    if "receipt" not in request.GET:
        return render(request, "chat/personal_chip.html", context)
    response = render(request, "chat/personal_let_in.html", context)
    response.write(render(request, "chat/personal_chip.html", context | {"oob": True}).content.decode())
    return response


@require_http_methods(["GET", "POST"])
def short_term(request: PageRequest, chat_id: str) -> HttpResponse:
    posted = request.method == "POST"
    chat = get_chat(request.user, chat_id, need=Role.EDITOR if posted else Role.VIEWER)
    text, error = request.POST.get("summary", ""), ""
    if posted:
        try:
            set_summary(chat, text, by=request.user, now=timezone.now())
        except Invalid as refusal:
            error = refusal.message
    memory = live_memory(chat, request.user, now=timezone.now())
    stored = memory.summary if memory else ""
    context = {
        "chat": chat,
        "can_write": can_write(chat.workspace),
        "longest": SUMMARY_LENGTH,
        "has_tools": chosen_for_chat(chat, request.user).model.capabilities.has_tools,
        "memory_is_on": memory_on(request.user, chat.memory_enabled),
        "memory": memory,
        "summary": stored,
        "draft": text if error else stored,
        "error": error,
        "saved": posted and not error,
    }
    response = render(request, "chat/short_term.html", context, status=422 if error else 200)
    if error:  # show the form again in its place
        response["HX-Retarget"], response["HX-Reswap"] = "#short-term", "innerHTML"
    return response


def _menu(
    workspace: Workspace, user: User, chosen: Connection | None, inherited: Connection | None
) -> dict[str, Any]:
    """Return the template context of the model menu. Its first option is the workspace's default model."""
    return {
        "options": options_for(workspace, user, chosen, inherited=inherited),
        "workspace": workspace,
        "inherits": inherited is not None,
        "may_connect_models": may_connect(user),
    }


@require_http_methods(["GET", "POST"])
def of_chat(request: PageRequest, chat_id: str) -> HttpResponse:
    """Show the menu for a chat's model (GET), or select a model and update the parts that depend on it (POST)."""
    posted = request.method == "POST"
    chat = get_chat(request.user, chat_id, need=Role.EDITOR if posted else Role.VIEWER)
    problem = ""
    if posted:
        try:
            services.set_connection(chat, connection_id=request.POST.get("connection", ""), by=request.user)
        except Invalid as error:
            problem = error.message
        else:
            return _chosen(request, chat)
    context = _menu(chat.workspace, request.user, chat.connection, chat.workspace.connection)
    context |= {
        "chat": chat,
        "problem": problem,
        "can_write": can_write(chat.workspace),
        "took": usage_of(chat),
    }
    return render(request, "chat/model_menu.html", context, status=422 if problem else 200)


@require_GET
def of_new_chat(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the menu for the model of a new chat. A selection changes only the page."""
    workspace = get_workspace(request.user, ws_id)
    wanted = request.GET.get("connection", "")
    context = _menu(workspace, request.user, usable_connection(request.user, wanted), workspace.connection)
    context["can_write"] = can_write(workspace)
    return render(request, "chat/model_menu.html", context)


def _chosen(request: PageRequest, chat: Chat) -> HttpResponse:
    context = {
        "chat": chat,
        "workspace": chat.workspace,
        "agent": chat.agent,
        "can_write": True,
        "may_connect_models": may_connect(request.user),
        **model_context(request.user, chat.workspace, chat),
    }
    response = render(request, "chat/talking_to.html", context)
    for name in ("chat/model_notice.html", "chat/mode_chooser.html"):
        response.write(render(request, name, context | {"oob": True}).content.decode())
    return response
