"""The pages on which a chat is forgotten for good."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from chat.access import get_chat
from chat.chats.actions import require_own
from chat.chats.forget_chat import forget_chat, memories_of
from workspaces.accounts.sign_in import ask_for_password
from workspaces.models import Role
from workspaces.views import PageRequest


@require_http_methods(["GET", "POST"])
def forget(request: PageRequest, chat_id: str) -> HttpResponse:
    """GET asks, POST does it. Of a deleted chat, too."""
    chat = get_chat(request.user, chat_id, need=Role.EDITOR, include_deleted=True)
    require_own(chat, request.user)
    ask_for_password(request)
    chat.workspace.role = chat.role
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
