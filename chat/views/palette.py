"""Command palette: chats, memories, documents, artifacts, actions and pages that match the typed text."""

import json
import unicodedata
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.forms.utils import flatatt
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.access import get_chat
from chat.chats.chat_list import chat_list_page, mark_of
from chat.models import Chat, ChatMark
from chat.views.chats import chat_on_screen, has_panel
from memories.models import Memory
from memories.views.panel_context import PanelFilters, search_panel
from memoryhub.errors import NotFound
from workspaces.access import get_workspace, workspaces_of
from workspaces.actions.model_connections import may_connect
from workspaces.data_policy import DataPolicy, within_policy
from workspaces.models import Artifact, Document, OwnedQuerySet, Role, Workspace
from workspaces.views import PageRequest


@dataclass(frozen=True)
class Entry:
    """An entry of the command palette: a link to ``url``, or a button with the HTML attributes ``does``.

    ``icon``: name of an icon of the sprite. ``also``: words that find the entry but are not shown.
    """

    label: str
    url: str
    icon: str
    note: str = ""
    also: str = ""
    does: dict[str, str] = field(default_factory=dict)

    @property
    def attributes(self) -> SafeString:
        return flatatt(self.does)


def folded(text: str) -> str:
    """Return the text in lower case and without accents, for comparison."""
    signs = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in signs if not unicodedata.combining(sign))


def rank(each: Entry, q: str) -> int:
    """Return how well the entry's label matches the query; lower is better.

    0: the label starts with the query. 1: words of the label start with the query's words. 2: the label contains them.
    3: some are only in ``also``.
    """
    label, typed = folded(each.label), folded(q)
    if label.startswith(typed):
        return 0
    words = typed.split()
    if all(f" {word}" in f" {label}" for word in words):
        return 1
    return 2 if all(word in label for word in words) else 3


def matching_entries(offers: list[Entry], q: str) -> list[Entry]:
    """Return the entries that contain all words of the query, the best first. Parts of words match, too."""
    words = folded(q).split()
    matches = [each for each in offers if all(word in folded(f"{each.label} {each.also}") for word in words)]
    return sorted(matches, key=lambda each: rank(each, q)) if words else matches


def of_chat(request: PageRequest, chat: Chat, mark: str) -> list[Entry]:
    """Return the palette's entries for actions on the open chat. ``mark``: "pinned", "archived" or ""."""
    here = [chat.public_id]
    export = reverse("exchange:export_chat", args=here)
    is_pinned, is_archived = mark == ChatMark.Kind.PINNED, mark == ChatMark.Kind.ARCHIVED
    readers = Entry(
        _("Make private"), "", "lock", also=_("hide only me secret"), does=_presses("#readers button")
    )
    if chat.is_private:
        readers = Entry(_("Share with the workspace"), "", "users", does=_presses("#readers button"))
    may_change = chat.created_by_id == request.user.pk and Role(chat.role).allows(Role.EDITOR)
    return [
        Entry(
            _("Share or export this chat"),
            "",
            "share",
            also=_("link send"),
            does=_presses(".share > summary"),
        ),
        *([readers] if may_change else []),
        Entry(
            _("Unpin") if is_pinned else _("Pin"), "", "pin", does=_marks(chat, "" if is_pinned else "pinned")
        ),
        Entry(
            _("Unarchive") if is_archived else _("Archive"),
            "",
            "archive",
            does=_marks(chat, "" if is_archived else "archived"),
        ),
        Entry(_("Export as Markdown"), export, "download", also=_("download save")),
        Entry(_("Export as JSON"), f"{export}?as=json", "download", also=_("download save")),
        Entry(_("Print"), reverse("chat:print", args=here), "printer", also=_("paper PDF")),
    ]


def _presses(selector: str) -> dict[str, str]:
    """Return the HTML attribute with which shortcuts.js clicks the page's element with this selector."""
    return {"data-press": selector}


def _marks(chat: Chat, mark: str) -> dict[str, str]:
    address = reverse("chat:mark", args=[chat.public_id])
    return {"hx-post": address, "hx-vals": json.dumps({"mark": mark}), "hx-swap": "none"}


def acts(request: PageRequest, workspace: Workspace, *, beside_panel: bool) -> list[Entry]:
    """Return the entries for actions in this workspace. ``beside_panel``: the page has the memory panel to open."""
    here = [workspace.public_id]
    home, settings = reverse("chat:workspace", args=here), reverse("workspaces:settings", args=here)
    role, profile = Role(workspace.role), reverse("workspaces:profile")
    adds = {"data-open-panel": "", "data-open-add": ""} if beside_panel else {}
    memories = reverse("memories:all", args=here)
    writes = [
        Entry(_("New chat"), home, "square-pen"),
        Entry(_("Temporary chat"), f"{home}?temporary=on", "eye-off", also=_("incognito")),
        Entry(
            _("Remember something"),
            "" if adds else f"{memories}?add=on",
            "memory",
            also=_("add memory note"),
            does=adds,
        ),
        Entry(
            _("Add a document"),
            reverse("workspaces:documents", args=here),
            "paperclip",
            also=_("upload add attach file"),
        ),
        Entry(_("Start a run"), reverse("chat:runs", args=here), "waypoints", also=_("research task")),
    ]
    owns = [
        Entry(_("Invite people"), f"{settings}#members", "users", also=_("add member user team")),
        Entry(_("Change the model of this workspace"), f"{settings}#model", "monitor"),
    ]
    connects = [
        Entry(
            _("Connect a model"),
            reverse("workspaces:connections"),
            "monitor",
            also="Ollama OpenAI LM Studio llama.cpp",
        ),
    ]
    anybody = [
        Entry(_("Connect a program"), reverse("connect"), "lock", also="MCP API REST"),
        Entry(_("Turn automatic memory on or off"), f"{profile}#memory-setting", "memory"),
        Entry(_("Change the theme"), f"{profile}#looks", "sun", also=_("dark light appearance")),
        Entry(_("Import"), reverse("exchange:imports"), "upload", also="ChatGPT"),
        Entry(_("Export this workspace"), f"{settings}#exchange", "download", also=_("download backup")),
        Entry(_("New workspace"), f"{reverse('workspaces:list')}#new-workspace", "plus"),
        Entry(_("Sign out"), reverse("account_logout"), "log-out", also=_("log out leave")),
    ]
    return [
        *(writes if role.allows(Role.EDITOR) else []),
        *(owns if role.allows(Role.OWNER) else []),
        *(connects if may_connect(request.user) else []),
        *anybody,
    ]


def settings(workspace: Workspace) -> list[Entry]:
    """Return the palette's entries for individual settings: those of the workspace, then the user's."""
    here = [workspace.public_id]
    page = reverse("workspaces:settings", args=here)
    owns = [
        Entry(_("Name and purpose"), f"{page}#about", "settings", workspace.name, _("rename")),
        Entry(_("Webhooks"), reverse("workspaces:webhooks", args=here), "upload", workspace.name),
        Entry(
            _("Activity"),
            reverse("workspaces:activity", args=here),
            "history",
            workspace.name,
            _("log audit"),
        ),
    ]
    if not workspace.is_default:
        owns.append(Entry(_("Delete this workspace"), f"{page}#danger", "trash-2", workspace.name))
    return [
        *(owns if Role(workspace.role).allows(Role.OWNER) else []),
        Entry(_("Members"), f"{page}#members", "users", workspace.name, _("people role team")),
        Entry(
            _("Usage and budget"),
            reverse("workspaces:usage", args=here),
            "history",
            workspace.name,
            _("cost tokens limit spending"),
        ),
        Entry(
            _("Retention rules"),
            reverse("workspaces:retention", args=here),
            "history",
            workspace.name,
            _("delete after days keep"),
        ),
        Entry(_("Links to chats"), f"{page}#links", "link", workspace.name),
        *_own_settings(),
    ]


def _own_settings() -> list[Entry]:
    profile = reverse("workspaces:profile")
    return [
        Entry(_("Language"), f"{profile}#language", "settings", also="language English"),
        Entry(_("Your name"), f"{profile}#name", "user", also=_("display name")),
        Entry(_("Picture"), f"{profile}#picture", "user", also=_("avatar photo")),
        Entry(_("Notifications"), f"{profile}#notifications", "info", also=_("alerts")),
        Entry(
            _("Change your password"), reverse("account_change_password"), "lock", also=_("security sign-in")
        ),
        Entry(_("Two-factor sign-in"), reverse("mfa_index"), "lock", also=_("2FA security code")),
        Entry(
            _("Where you are signed in"),
            f"{profile}#sessions",
            "monitor",
            also=_("sessions devices security"),
        ),
        Entry(_("Email addresses"), reverse("account_email"), "user"),
        Entry(_("API keys"), f"{profile}#api-keys", "lock", also=_("token program MCP")),
        Entry(
            _("Your usage"), reverse("workspaces:own_usage"), "history", also=_("cost tokens limit spending")
        ),
        Entry(_("A copy of your data"), reverse("exchange:personal_copy"), "archive"),
        Entry(
            _("Delete your account"),
            reverse("workspaces:delete_account"),
            "trash-2",
            also=_("close remove leave"),
        ),
    ]


def places(request: PageRequest, workspace: Workspace) -> list[Entry]:
    here = [workspace.public_id]
    entries = [
        Entry(
            _("Settings and members"),
            reverse("workspaces:settings", args=here),
            "settings",
            also=_("options"),
        ),
        Entry(_("Assistants"), reverse("workspaces:agents", args=here), "bot"),
        Entry(_("Runs"), reverse("chat:runs", args=here), "history", also=_("research task")),
        Entry(_("Documents"), reverse("workspaces:documents", args=here), "paperclip", also=_("files")),
        Entry(_("Prompts"), reverse("chat:prompts", args=here), "square-pen", also=_("templates")),
        Entry(_("Artifacts"), reverse("workspaces:artifacts", args=here), "file-text"),
        Entry(_("Search everything"), reverse("chat:search", args=here), "search"),
        Entry(_("Memory"), reverse("memories:all", args=here), "memory", also=_("All memories")),
        Entry(_("Review"), f"{reverse('memories:tidy', args=here)}?show=waiting", "check"),
        Entry(_("Topics"), reverse("memories:nodes", args=here), "waypoints"),
        Entry(_("Profile"), reverse("memories:profile", args=here), "user", also=_("about you overview")),
        Entry(_("Tidy up"), reverse("memories:tidy", args=here), "eye", also=_("clean duplicates")),
        Entry(_("Recall test"), reverse("memories:recall_test", args=here), "circle-help"),
        Entry(_("Account"), reverse("workspaces:profile"), "user", also=_("profile settings")),
        Entry(_("Models"), reverse("workspaces:connections"), "monitor"),
        Entry(_("All workspaces"), reverse("workspaces:list"), "users"),
        Entry(_("Keyboard shortcuts"), "", "keyboard", does={"data-open-shortcuts": ""}),
    ]
    if request.user.is_staff:
        entries.append(Entry(_("Administration"), reverse("admin:index"), "settings"))
    others = [
        Entry(each.name, reverse("chat:workspace", args=[each.public_id]), "users", _("Workspace"))
        for each in workspaces_of(request.user)
        if each.pk != workspace.pk
    ]
    return [*entries, *others]


MOST_ENTRIES = 6  # limit of entries per group
LONGEST = 200  # characters of the query that are used


@require_GET
def palette(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the entries that match the query, the best first. Without a query, show the latest chats and all actions."""
    workspace, q = get_workspace(request.user, ws_id), request.GET.get("q", "").strip()[:LONGEST]
    on_screen = _on_screen(request)
    actions = acts(request, workspace, beside_panel=has_panel(request))
    groups = {
        _("Chats"): _chats(request, workspace, q),
        _("Memories"): _memories(request, workspace, q) if q else [],
        _("Documents"): _kept(request, workspace, Document.objects.live(), "document", "paperclip", q)
        if q
        else [],
        _("Artifacts"): _kept(request, workspace, Artifact.objects.live(), "artifact", "file-text", q)
        if q
        else [],
        _("This chat"): matching_entries(on_screen, q),
        _("Actions"): matching_entries(actions, q),
        _("Go to"): matching_entries(places(request, workspace), q),
        _("Settings"): matching_entries(settings(workspace), q) if q else [],
    }
    shown = {name: entries for name, entries in groups.items() if entries}
    if q:  # actions whose label matches come before texts that contain the query
        best = {name: min(rank(each, q) for each in entries) for name, entries in shown.items()}
        shown = {name: shown[name] for name in sorted(shown, key=lambda name: best[name])}
    entries = [each for group in shown.values() for each in group]
    announcement = {"number": len(entries), "first": entries[0] if entries else None}
    return render(
        request, "chat/palette_found.html", {"groups": shown, "q": q, "workspace": workspace, **announcement}
    )


def _on_screen(request: PageRequest) -> list[Entry]:
    chat_id = chat_on_screen(request)
    try:
        chat = get_chat(request.user, chat_id) if chat_id else None
    except NotFound:
        return []  # deleted since the page was loaded
    return [] if chat is None or chat.is_temporary else of_chat(request, chat, mark_of(chat, request.user))


def _chats(request: PageRequest, workspace: Workspace, q: str) -> list[Entry]:
    page = chat_list_page(workspace, request.user, q=q, now=timezone.now())
    entries = [
        Entry(str(chat), _at(chat, page.matches.get(chat.pk)), "message-square")
        for day in page.days
        for chat in day.chats
    ]
    return sorted(entries, key=lambda each: rank(each, q))[:MOST_ENTRIES]


def _at(chat: Chat, match: object) -> str:
    url = reverse("chat:chat", args=[chat.public_id])
    message_id = getattr(match, "message_id", "")
    return f"{url}?at={message_id}#{message_id}" if message_id else url


def _memories(request: PageRequest, workspace: Workspace, q: str) -> list[Entry]:
    memories = search_panel(workspace, request.user, PanelFilters(q=q), by_meaning=False).memories[
        :MOST_ENTRIES
    ]
    return [Entry(memory.content, _in_panel(workspace, memory), "memory") for memory in memories]


def _kept(
    request: PageRequest, workspace: Workspace, rows: OwnedQuerySet[Any], name: str, icon: str, q: str
) -> list[Entry]:
    """Return the entries for the documents or artifacts ``rows`` whose title contains ``q``, on the page ``name``."""
    matches = within_policy(
        rows.filter(title__icontains=q), workspace, request.user, DataPolicy.here(workspace)
    )[:MOST_ENTRIES]
    return [
        Entry(each.title, reverse(f"workspaces:{name}", args=[workspace.public_id, each.public_id]), icon)
        for each in matches
    ]


def _in_panel(workspace: Workspace, memory: Memory) -> str:
    """Return the URL that searches for this memory in the workspace's memory panel."""
    words = " ".join(memory.content.split()[:8])
    return f"{reverse('chat:workspace', args=[workspace.public_id])}?{urlencode({'find': words})}"
