"""The command palette: chats, memories, documents, acts and places by a few letters. Links, to what one may see."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.chats.chat_list import chat_list_page
from chat.models import Chat
from memories.models import Memory
from memories.nodes.node_page import has_nodes
from memories.pages.panel_page import PanelFilters, search_panel
from workspaces.access import get_workspace, workspaces_of
from workspaces.leaving_machine import Reach, in_reach
from workspaces.models import Document, Role, Workspace
from workspaces.pages.page_request import PageRequest

MOST = 6  # of each sort
LONGEST = 200  # characters of what is typed that are looked at


@dataclass(frozen=True)
class Found:
    """``icon`` is one of the sprite's."""

    label: str
    url: str
    icon: str
    note: str = ""


@require_GET
def palette(request: PageRequest, ws_id: str) -> HttpResponse:
    """What begins with, or holds, what is typed; nothing typed: the latest chats and all acts."""
    workspace, q = get_workspace(request.user, ws_id), request.GET.get("q", "").strip()[:LONGEST]
    groups = {
        _("Chats"): _chats(request, workspace, q),
        _("Memories"): _memories(request, workspace, q) if q else [],
        _("Documents"): _documents(request, workspace, q) if q else [],
        _("Do"): [each for each in _acts(request, workspace) if q.casefold() in each.label.casefold()],
        _("Go to"): [each for each in _places(request, workspace) if q.casefold() in each.label.casefold()],
    }
    shown = {name: found for name, found in groups.items() if found}
    return render(request, "chat/palette_found.html", {"groups": shown, "q": q, "workspace": workspace})


def _chats(request: PageRequest, workspace: Workspace, q: str) -> list[Found]:
    page = chat_list_page(workspace, request.user, q=q, now=timezone.now())
    found = [chat for day in page.days for chat in day.chats][:MOST]
    return [Found(str(chat), _at(chat, page.matches.get(chat.pk)), "message-square") for chat in found]


def _at(chat: Chat, match: object) -> str:
    url = reverse("chat:chat", args=[chat.public_id])
    message_id = getattr(match, "message_id", "")
    return f"{url}?at={message_id}#{message_id}" if message_id else url


def _memories(request: PageRequest, workspace: Workspace, q: str) -> list[Found]:
    found = search_panel(workspace, request.user, PanelFilters(q=q)).memories[:MOST]
    return [Found(memory.content, _in_panel(workspace, memory), "memory") for memory in found]


def _documents(request: PageRequest, workspace: Workspace, q: str) -> list[Found]:
    rows = Document.objects.live().filter(title__icontains=q)
    found = in_reach(rows, workspace, request.user, Reach.here(workspace))
    return [
        Found(
            each.title,
            reverse("workspaces:document", args=[workspace.public_id, each.public_id]),
            "paperclip",
        )
        for each in found[:MOST]
    ]


def _in_panel(workspace: Workspace, memory: Memory) -> str:
    """The panel, searched for it."""
    words = " ".join(memory.content.split()[:8])
    return f"{reverse('chat:workspace', args=[workspace.public_id])}?{urlencode({'find': words})}"


def _acts(request: PageRequest, workspace: Workspace) -> list[Found]:
    """What this person may do here, each where it is done."""
    here = [workspace.public_id]
    home, settings = reverse("chat:workspace", args=here), reverse("workspaces:settings", args=here)
    role, profile = Role(workspace.role), reverse("workspaces:profile")
    writes = [
        Found(_("New chat"), home, "square-pen"),
        Found(_("Temporary chat"), f"{home}?temporary=on", "eye-off"),
        Found(_("Bring a document"), reverse("workspaces:documents", args=here), "paperclip"),
        Found(_("Start a run"), reverse("chat:runs", args=here), "waypoints"),
    ]
    owns = [
        Found(_("Invite people"), f"{settings}#members", "users"),
        Found(_("Change the model of this workspace"), f"{settings}#model", "monitor"),
    ]
    anybody = [
        Found(_("Connect a model"), reverse("workspaces:connections"), "monitor"),
        Found(_("Connect a program"), reverse("connect"), "lock"),
        Found(_("Turn automatic memory on or off"), f"{profile}#memory-setting", "memory"),
        Found(_("Change the theme"), f"{profile}#looks", "sun"),
        Found(_("Import"), reverse("exchange:imports"), "upload"),
        Found(_("Export this workspace"), f"{settings}#exchange", "download"),
        Found(_("Sign out"), reverse("account_logout"), "log-out"),
    ]
    return [
        *(writes if role.allows(Role.EDITOR) else []),
        *(owns if role.allows(Role.OWNER) else []),
        *anybody,
    ]


def _places(request: PageRequest, workspace: Workspace) -> list[Found]:
    here = [workspace.public_id]
    places = [
        Found(_("Settings and members"), reverse("workspaces:settings", args=here), "settings"),
        Found(_("Assistants"), reverse("workspaces:agents", args=here), "bot"),
        Found(_("Runs"), reverse("chat:runs", args=here), "history"),
        Found(_("Documents"), reverse("workspaces:documents", args=here), "paperclip"),
        Found(_("Prompts"), reverse("chat:prompts", args=here), "square-pen"),
        Found(_("Artifacts"), reverse("workspaces:artifacts", args=here), "file-text"),
        Found(_("Tidy up"), reverse("memories:tidy", args=here), "eye"),
        Found(_("Recall test"), reverse("memories:recall_test", args=here), "circle-help"),
        Found(_("Profile"), reverse("workspaces:profile"), "user"),
        Found(_("Models"), reverse("workspaces:connections"), "monitor"),
    ]
    if has_nodes(workspace):
        places.append(Found(_("Topics"), reverse("memories:nodes", args=here), "waypoints"))
    if request.user.is_staff:
        places.append(Found(_("Administration"), reverse("admin:index"), "settings"))
    others = [
        Found(each.name, reverse("chat:workspace", args=[each.public_id]), "users", _("Workspace"))
        for each in workspaces_of(request.user)
        if each.pk != workspace.pk
    ]
    return [*places, *others]
