"""The tags of a chat in its row of the list."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from chat.chats.tagging import set_tags, tags_in, tags_of
from chat.pages.chat_list_views import row_of
from chat.pages.chat_views import load_chat
from workspaces.views import PageRequest


@require_http_methods(["GET", "POST"])
def tags(request: PageRequest, chat_id: str) -> HttpResponse:
    """GET: the row as a field; POST: the tags in it, with commas between, are the reader's tags of the chat."""
    found = load_chat(request, chat_id)
    if request.method == "GET":
        context = {
            "chat": found,
            "tags": ", ".join(tags_of(found, request.user)),
            "known": tags_in(found.workspace, request.user),
        }
        return render(request, "chat/chat_list_tags.html", context)
    set_tags(found, request.POST.get("tags", "").split(","), by=request.user)
    response = row_of(request, found)
    response["HX-Trigger"] = "chats:changed"
    return response
