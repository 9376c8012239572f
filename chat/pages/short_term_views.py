"""The running summary beside the conversation: seen by its readers, written by its editors."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from chat.access import get_chat
from chat.models import SUMMARY_LENGTH
from chat.prompting.other_chats import live_memory
from chat.prompting.short_term import set_summary
from chat.turns.chosen_model import chosen_for_chat
from memories.consent import memory_on
from memoryhub.errors import Invalid
from workspaces.models import Role
from workspaces.views import PageRequest


@require_http_methods(["GET", "POST"])
def short_term(request: PageRequest, chat_id: str) -> HttpResponse:
    posted = request.method == "POST"
    chat = get_chat(request.user, chat_id, need=Role.EDITOR if posted else Role.VIEWER)
    context = {
        "chat": chat,
        "can_write": Role(chat.role).allows(Role.EDITOR),
        "longest": SUMMARY_LENGTH,
        "has_tools": chosen_for_chat(chat, request.user).model.capabilities.has_tools,
        "memory_is_on": memory_on(request.user, chat.memory_enabled),
    }
    text = ""
    if posted:
        text = request.POST.get("summary", "")
        try:
            set_summary(chat, text, by=request.user, now=timezone.now())
        except Invalid as error:
            context |= {"error": error.message}
        else:
            context["saved"] = True
    memory = live_memory(chat, request.user, now=timezone.now())
    stored = memory.summary if memory else ""
    context |= {"memory": memory, "summary": stored, "draft": text if "error" in context else stored}
    response = render(request, "chat/short_term.html", context)
    if "error" in context:  # the form with its error goes back to where it was
        response.status_code = 422
        response["HX-Retarget"], response["HX-Reswap"] = "#short-term", "innerHTML"
    return response
