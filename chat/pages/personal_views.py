"""A person lets their personal memories into a chat that others read, or takes that back."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from chat.access import get_chat
from chat.chats.personal_memories import personal_in, use_personal
from workspaces.models import Role
from workspaces.views import PageRequest


@require_POST
def personal(request: PageRequest, chat_id: str) -> HttpResponse:
    """The chip; from a receipt the words in the place of its button, and the chip beside."""
    chat = get_chat(request.user, chat_id, need=Role.EDITOR)
    use_personal(chat, allowed=request.POST.get("personal") == "on", by=request.user)
    context = {"chat": chat, "personal": personal_in(chat, request.user)}
    if "receipt" not in request.GET:
        return render(request, "chat/personal_chip.html", context)
    response = render(request, "chat/personal_let_in.html", context)
    response.write(render(request, "chat/personal_chip.html", context | {"oob": True}).content.decode())
    return response
