"""Asking again in other words, and what became of the conversation as it was."""

from __future__ import annotations

from itertools import islice

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat.access import get_message
from chat.models import Chat
from chat.pages.transcript import entries_for, load_transcript
from chat.turns.begin import require_rest
from chat.turns.earlier_versions import bring_back, require_editable, step_to, versions_of
from chat.turns.retry import edit_message
from workspaces.models import Role
from workspaces.views import PageRequest


@require_http_methods(["GET", "POST"])
def edit(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """GET: the question as a field; POST: it is asked so, and the conversation goes on from there."""
    chat, message = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    if request.method == "GET":
        require_editable(message, request.user)
        require_rest(chat, now=timezone.now())
        follows = chat.messages.current().filter(pk__gt=message.pk).count()
        return render(
            request, "chat/edit_message.html", {"chat": chat, "message": message, "follows": follows}
        )
    edit_message(message, content=request.POST.get("content", ""), by=request.user, now=timezone.now())
    return _conversation(request, chat)


@require_GET
def versions(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """The earlier versions of a question, with all that followed it then, or of an answer."""
    chat, message = get_message(request.user, chat_id, message_id)
    earlier = versions_of(message, request.user)
    messages = [each for version in earlier for each in version.messages]
    entries = iter(entries_for(messages, chat, request.user, now=timezone.now(), ends=False))
    found = [(version, list(islice(entries, len(version.messages)))) for version in earlier]
    can_write = Role(chat.role).allows(Role.EDITOR)
    may_change = can_write and message.superseded_by_id is None
    if message.role == "assistant":  # a conversation that went on from it keeps it
        may_change &= not chat.messages.current().filter(pk__gt=message.pk).exists()
    return render(
        request, "chat/versions.html", {"chat": chat, "versions": found, "may_bring_back": may_change}
    )


@require_POST
def back(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    chat, message = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    bring_back(message, by=request.user, now=timezone.now())
    return _conversation(request, chat)


@require_POST
def step(request: PageRequest, chat_id: str, message_id: str) -> HttpResponse:
    """``?to=older`` or newer: the version beside this one takes its place."""
    chat, message = get_message(request.user, chat_id, message_id, need=Role.EDITOR)
    beside = step_to(message, back=request.GET.get("to") == "older", by=request.user)
    beside.chat = chat
    bring_back(beside, by=request.user, now=timezone.now())
    return _conversation(request, chat)


def _conversation(request: PageRequest, chat: Chat) -> HttpResponse:
    """As it goes now, in the place of the one before."""
    if not request.htmx:
        return redirect(reverse("chat:chat", args=[chat.public_id]))
    shown = load_transcript(chat, request.user, now=timezone.now())
    response = render(request, "chat/messages.html", {"chat": chat, "transcript": shown, "can_write": True})
    response["HX-Retarget"], response["HX-Reswap"] = "#messages", "innerHTML"
    response.write(render(request, "chat/title.html", {"chat": chat, "oob": True}).content.decode())
    response["HX-Trigger"] = "chats:changed"
    return response
