"""The command palette: what one may see and do, by a few letters of any of its words."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.access import get_chat
from chat.chats.chat_list import chat_list_page
from chat.chats.marking import mark_of
from chat.models import Chat
from chat.pages import palette_offers as offers
from chat.pages.on_screen import chat_on_screen, has_panel
from chat.pages.palette_offers import Found, called, rank
from memories.models import Memory
from memories.pages.panel_page import PanelFilters, search_panel
from memoryhub.errors import NotFound
from workspaces.access import get_workspace
from workspaces.models import Artifact, Document, OwnedQuerySet, Workspace
from workspaces.policy import Reach, in_reach
from workspaces.views import PageRequest

MOST = 6  # of each sort
LONGEST = 200  # characters of what is typed that are looked at


@require_GET
def palette(request: PageRequest, ws_id: str) -> HttpResponse:
    """What is called as is typed, what fits best on top; nothing typed: the latest chats and all acts."""
    workspace, q = get_workspace(request.user, ws_id), request.GET.get("q", "").strip()[:LONGEST]
    on_screen = _on_screen(request)
    acts = offers.acts(request, workspace, beside_panel=has_panel(request))
    groups = {
        _("Chats"): _chats(request, workspace, q),
        _("Memories"): _memories(request, workspace, q) if q else [],
        _("Documents"): _kept(request, workspace, Document.objects.live(), "document", "paperclip", q)
        if q
        else [],
        _("Artifacts"): _kept(request, workspace, Artifact.objects.live(), "artifact", "file-text", q)
        if q
        else [],
        _("This chat"): called(on_screen, q),
        _("Actions"): called(acts, q),
        _("Go to"): called(offers.places(request, workspace), q),
        _("Settings"): called(offers.settings(workspace), q) if q else [],
    }
    shown = {name: found for name, found in groups.items() if found}
    if q:  # an act that is called so comes before what only says it somewhere
        best = {name: min(rank(each, q) for each in found) for name, found in shown.items()}
        shown = {name: shown[name] for name in sorted(shown, key=lambda name: best[name])}
    found = [each for group in shown.values() for each in group]
    said = {"number": len(found), "first": found[0] if found else None}
    return render(
        request, "chat/palette_found.html", {"groups": shown, "q": q, "workspace": workspace, **said}
    )


def _on_screen(request: PageRequest) -> list[Found]:
    chat_id = chat_on_screen(request)
    try:
        chat = get_chat(request.user, chat_id) if chat_id else None
    except NotFound:
        return []  # gone meanwhile
    return (
        []
        if chat is None or chat.is_temporary
        else offers.of_chat(request, chat, mark_of(chat, request.user))
    )


def _chats(request: PageRequest, workspace: Workspace, q: str) -> list[Found]:
    page = chat_list_page(workspace, request.user, q=q, now=timezone.now())
    found = [
        Found(str(chat), _at(chat, page.matches.get(chat.pk)), "message-square")
        for day in page.days
        for chat in day.chats
    ]
    return sorted(found, key=lambda each: rank(each, q))[:MOST]


def _at(chat: Chat, match: object) -> str:
    url = reverse("chat:chat", args=[chat.public_id])
    message_id = getattr(match, "message_id", "")
    return f"{url}?at={message_id}#{message_id}" if message_id else url


def _memories(request: PageRequest, workspace: Workspace, q: str) -> list[Found]:
    found = search_panel(workspace, request.user, PanelFilters(q=q), by_meaning=False).memories[:MOST]
    return [Found(memory.content, _in_panel(workspace, memory), "memory") for memory in found]


def _kept(
    request: PageRequest, workspace: Workspace, rows: OwnedQuerySet[Any], name: str, icon: str, q: str
) -> list[Found]:
    """Documents or artifacts, by their titles."""
    found = in_reach(rows.filter(title__icontains=q), workspace, request.user, Reach.here(workspace))[:MOST]
    return [
        Found(each.title, reverse(f"workspaces:{name}", args=[workspace.public_id, each.public_id]), icon)
        for each in found
    ]


def _in_panel(workspace: Workspace, memory: Memory) -> str:
    """The panel, searched for it."""
    words = " ".join(memory.content.split()[:8])
    return f"{reverse('chat:workspace', args=[workspace.public_id])}?{urlencode({'find': words})}"
