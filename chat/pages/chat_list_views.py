"""The list of chats beside the conversation, and its rows."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat.chats import actions
from chat.chats.chat_list import chat_list_page
from chat.chats.marking import mark_of, set_mark
from chat.models import Chat, ChatMark
from chat.pages.chat_views import can_write, load_chat
from chat.pages.on_screen import chat_on_screen
from workspaces.access import get_workspace
from workspaces.models import Role
from workspaces.views import PageRequest


@require_GET
def chat_list(request: PageRequest, ws_id: str) -> HttpResponse:
    found = get_workspace(request.user, ws_id)
    q, before = request.GET.get("q", ""), request.GET.get("before", "")
    archived = request.GET.get("archived") == "on"
    asked = {"q": q, "before": before, "tag": request.GET.get("tag", "")}
    page = chat_list_page(found, request.user, **asked, archived=archived, now=timezone.now())
    announces = bool(q) and request.htmx.trigger == "chat-search"  # not when the list is only looked at again
    context = {
        "workspace": found,
        "page": page,
        "q": q,
        "announces": announces,
        "can_write": can_write(found),
    }
    return render(request, "chat/chat_list.html", context | {"current_chat_id": chat_on_screen(request)})


def row_of(request: PageRequest, found: Chat) -> HttpResponse:
    found.mark = mark_of(found, request.user)
    context = {
        "chat": found,
        "workspace": found.workspace,
        "can_write": can_write(found.workspace),
        "current_chat_id": chat_on_screen(request),
    }
    return render(request, "chat/chat_list_row.html", context)


@require_GET
def row(request: PageRequest, chat_id: str) -> HttpResponse:
    return row_of(request, load_chat(request, chat_id))


@require_POST
def mark(request: PageRequest, chat_id: str) -> HttpResponse:
    """Pin, archive, or neither: in the list of whoever asks, whatever their role."""
    found = load_chat(request, chat_id)
    kind, before = request.POST.get("mark", ""), mark_of(found, request.user)
    set_mark(found, kind, by=request.user)
    if kind == ChatMark.Kind.ARCHIVED:
        text = _("Archived “%(title)s”. Search still finds it.") % {"title": found}
        undo_url = reverse("chat:mark", args=[found.public_id])
        response = render(request, "partials/toast_oob.html", {"text": text, "undo_url": undo_url})
    else:
        gone = _("Unpinned.") if before == ChatMark.Kind.PINNED else _("Back in the list of chats.")
        text = _("Pinned.") if kind else gone
        response = render(request, "partials/announce_oob.html", {"text": text})
    response["HX-Trigger"] = "chats:changed"
    return response


@require_http_methods(["GET", "POST"])
def rename(request: PageRequest, chat_id: str) -> HttpResponse:
    """GET: the row as a field; POST: the new title, in the row and above the conversation."""
    found = load_chat(request, chat_id, Role.EDITOR)
    if request.method == "GET":
        return render(request, "chat/chat_list_rename.html", {"chat": found})
    actions.rename_chat(found, title=request.POST.get("title", ""), by=request.user)
    response = row_of(request, found)
    if chat_on_screen(request) == found.public_id:
        for part in ("chat/title.html", "chat/tab_title.html"):
            response.write(render_to_string(part, {"chat": found, "oob": True}))
    return response
