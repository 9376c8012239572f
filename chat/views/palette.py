"""Command palette: chats, memories, documents, artifacts, actions and pages that match the typed text."""

import json
import unicodedata
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.forms.utils import flatatt
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.access import get_chat
from chat.chats.chat_list import chat_list_page
from chat.chats.message_search import Match
from chat.chats.tags_and_pins import mark_of
from chat.models import Chat, ChatMark
from chat.views.chats import chat_on_screen, has_panel
from chat.views.workspace_search import url_in_panel
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
    also: str = ""
    note: str = ""
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
    pin, archive = (
        _marks(chat, "" if is_pinned else "pinned"),
        _marks(chat, "" if is_archived else "archived"),
    )
    changes_readers = _presses("#readers button")
    if chat.is_private:
        readers = Entry(_("Share with the workspace"), "", "users", does=changes_readers)
    else:
        readers = Entry(_("Make private"), "", "lock", _("hide only me secret"), does=changes_readers)
    may_change = chat.created_by_id == request.user.pk and Role(chat.role).allows(Role.EDITOR)
    shares = _presses(".share > summary")
    return [
        Entry(_("Share or export this chat"), "", "share", _("link send"), does=shares),
        *([readers] if may_change else []),
        Entry(_("Unpin") if is_pinned else _("Pin"), "", "pin", does=pin),
        Entry(_("Unarchive") if is_archived else _("Archive"), "", "archive", does=archive),
        Entry(_("Export as Markdown"), export, "download", _("download save")),
        Entry(_("Export as JSON"), f"{export}?as=json", "download", _("download save")),
        Entry(_("Print"), reverse("chat:print", args=here), "printer", _("paper PDF")),
    ]


def _presses(selector: str) -> dict[str, str]:
    """Return the HTML attribute with which shortcuts.js clicks the page's element with this selector."""
    return {"data-press": selector}


def _marks(chat: Chat, mark: str) -> dict[str, str]:
    address = reverse("chat:mark", args=[chat.public_id])
    return {"hx-post": address, "hx-vals": json.dumps({"mark": mark}), "hx-swap": "none"}


def acts(request: PageRequest, workspace: Workspace, *, beside_panel: bool) -> list[Entry]:
    """Return the entries for actions in this workspace. ``beside_panel``: the page has the memory panel to open."""
    page = partial(reverse, args=[workspace.public_id])
    home, settings = page("chat:workspace"), page("workspaces:settings")
    role, profile = Role(workspace.role), reverse("workspaces:profile")
    adds = {"data-open-panel": "", "data-open-add": ""} if beside_panel else {}
    add_url = "" if adds else f"{page('memories:all')}?add=on"
    writes = [
        Entry(_("New chat"), home, "square-pen"),
        Entry(_("Temporary chat"), f"{home}?temporary=on", "eye-off", _("incognito")),
        Entry(_("Remember something"), add_url, "memory", _("add memory note"), does=adds),
        Entry(_("Add a document"), page("workspaces:documents"), "paperclip", _("upload add attach file")),
        Entry(_("Start a run"), page("chat:runs"), "waypoints", _("research task")),
    ]
    owns = [
        Entry(_("Invite people"), f"{settings}#members", "users", _("add member user team")),
        Entry(_("Change the model of this workspace"), f"{settings}#model", "monitor"),
    ]
    models = "Ollama OpenAI LM Studio llama.cpp"
    connects = [Entry(_("Connect a model"), reverse("workspaces:connections"), "monitor", models)]
    anybody = [
        Entry(_("Connect a program"), reverse("connect"), "lock", "MCP API REST"),
        Entry(_("Turn automatic memory on or off"), f"{profile}#memory-setting", "memory"),
        Entry(_("Change the theme"), f"{profile}#looks", "sun", _("dark light appearance")),
        Entry(_("Import"), reverse("exchange:imports"), "upload", "ChatGPT"),
        Entry(_("Export this workspace"), f"{settings}#exchange", "download", _("download backup")),
        Entry(_("New workspace"), f"{reverse('workspaces:list')}#new-workspace", "plus"),
        Entry(_("Sign out"), reverse("account_logout"), "log-out", _("log out leave")),
    ]
    return [
        *(writes if role.allows(Role.EDITOR) else []),
        *(owns if role.allows(Role.OWNER) else []),
        *(connects if may_connect(request.user) else []),
        *anybody,
    ]


def settings(workspace: Workspace) -> list[Entry]:
    """Return the palette's entries for individual settings: those of the workspace, then the user's."""
    page = partial(reverse, args=[workspace.public_id])
    here = page("workspaces:settings")
    owns = [
        Entry(_("Name and purpose"), f"{here}#about", "settings", _("rename")),
        Entry(_("Webhooks"), page("workspaces:webhooks"), "upload"),
        Entry(_("Activity"), page("workspaces:activity"), "history", _("log audit")),
    ]
    if not workspace.is_default:
        owns.append(Entry(_("Delete this workspace"), f"{here}#danger", "trash-2"))
    costs = _("cost tokens limit spending")
    shared = [
        *(owns if Role(workspace.role).allows(Role.OWNER) else []),
        Entry(_("Members"), f"{here}#members", "users", _("people role team")),
        Entry(_("Usage and budget"), page("workspaces:usage"), "history", costs),
        Entry(_("Retention rules"), page("workspaces:retention"), "history", _("delete after days keep")),
        Entry(_("Links to chats"), f"{here}#links", "link"),
    ]
    profile, password = reverse("workspaces:profile"), reverse("account_change_password")
    delete_account = reverse("workspaces:delete_account")
    return [
        *(replace(each, note=workspace.name) for each in shared),
        Entry(_("Language"), f"{profile}#language", "settings", "language English"),
        Entry(_("Your name"), f"{profile}#name", "user", _("display name")),
        Entry(_("Picture"), f"{profile}#picture", "user", _("avatar photo")),
        Entry(_("Notifications"), f"{profile}#notifications", "info", _("alerts")),
        Entry(_("Change your password"), password, "lock", _("security sign-in")),
        Entry(_("Two-factor sign-in"), reverse("mfa_index"), "lock", _("2FA security code")),
        Entry(_("Where you are signed in"), f"{profile}#sessions", "monitor", _("sessions devices security")),
        Entry(_("Email addresses"), reverse("account_email"), "user"),
        Entry(_("API keys"), f"{profile}#api-keys", "lock", _("token program MCP")),
        Entry(_("Your usage"), reverse("workspaces:own_usage"), "history", costs),
        Entry(_("A copy of your data"), reverse("exchange:personal_copy"), "archive"),
        Entry(_("Delete your account"), delete_account, "trash-2", _("close remove leave")),
    ]


def places(request: PageRequest, workspace: Workspace) -> list[Entry]:
    page = partial(reverse, args=[workspace.public_id])
    entries = [
        Entry(_("Settings and members"), page("workspaces:settings"), "settings", _("options")),
        Entry(_("Assistants"), page("workspaces:agents"), "bot"),
        Entry(_("Runs"), page("chat:runs"), "history", _("research task")),
        Entry(_("Documents"), page("workspaces:documents"), "paperclip", _("files")),
        Entry(_("Prompts"), page("chat:prompts"), "square-pen", _("templates")),
        Entry(_("Artifacts"), page("workspaces:artifacts"), "file-text"),
        Entry(_("Search everything"), page("chat:search"), "search"),
        Entry(_("Memory"), page("memories:all"), "memory", _("All memories")),
        Entry(_("Review"), f"{page('memories:tidy')}?show=waiting", "check"),
        Entry(_("Topics"), page("memories:nodes"), "waypoints"),
        Entry(_("Profile"), page("memories:profile"), "user", _("about you overview")),
        Entry(_("Tidy up"), page("memories:tidy"), "eye", _("clean duplicates")),
        Entry(_("Recall test"), page("memories:recall_test"), "circle-help"),
        Entry(_("Account"), reverse("workspaces:profile"), "user", _("profile settings")),
        Entry(_("Models"), reverse("workspaces:connections"), "monitor"),
        Entry(_("All workspaces"), reverse("workspaces:list"), "users"),
        Entry(_("Keyboard shortcuts"), "", "keyboard", does={"data-open-shortcuts": ""}),
    ]
    if request.user.is_staff:
        entries.append(Entry(_("Administration"), reverse("admin:index"), "settings"))
    others = [each for each in workspaces_of(request.user) if each.pk != workspace.pk]
    for each in others:
        url = reverse("chat:workspace", args=[each.public_id])
        entries.append(Entry(each.name, url, "users", note=_("Workspace")))
    return entries


MOST_ENTRIES = 6  # limit of entries per group
LONGEST = 200  # characters of the query that are used


@require_GET
def palette(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the entries that match the query, the best first. Without a query, show the latest chats and all actions."""
    workspace, q = get_workspace(request.user, ws_id), request.GET.get("q", "").strip()[:LONGEST]
    actions = acts(request, workspace, beside_panel=has_panel(request))
    groups = {
        _("Chats"): _chats(request, workspace, q),
        _("Memories"): _memories(request, workspace, q) if q else [],
        _("Documents"): _titled(request, workspace, Document.objects.live(), "document", "paperclip", q),
        _("Artifacts"): _titled(request, workspace, Artifact.objects.live(), "artifact", "file-text", q),
        _("This chat"): matching_entries(_on_screen(request), q),
        _("Actions"): matching_entries(actions, q),
        _("Go to"): matching_entries(places(request, workspace), q),
        _("Settings"): matching_entries(settings(workspace), q) if q else [],
    }
    shown = {name: entries for name, entries in groups.items() if entries}
    if q:  # actions whose label matches come before texts that contain the query
        best = {name: min(rank(each, q) for each in entries) for name, entries in shown.items()}
        shown = {name: shown[name] for name in sorted(shown, key=lambda name: best[name])}
    entries = [each for group in shown.values() for each in group]
    first = next(iter(entries), None)
    context = {"groups": shown, "q": q, "workspace": workspace, "number": len(entries), "first": first}
    return render(request, "chat/palette_found.html", context)


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


def _at(chat: Chat, match: Match | None) -> str:
    url = reverse("chat:chat", args=[chat.public_id])
    return f"{url}?at={match.message_id}#{match.message_id}" if match else url


def _memories(request: PageRequest, workspace: Workspace, q: str) -> list[Entry]:
    memories = search_panel(workspace, request.user, PanelFilters(q=q), by_meaning=False).memories
    return [
        Entry(memory.content, url_in_panel(workspace, memory.content), "memory")
        for memory in memories[:MOST_ENTRIES]
    ]


def _titled(
    request: PageRequest, workspace: Workspace, rows: OwnedQuerySet[Any], name: str, icon: str, q: str
) -> list[Entry]:
    """Return the entries for the documents or artifacts ``rows`` whose title contains ``q``, on the page ``name``."""
    if not q:
        return []
    rows = rows.filter(title__icontains=q)
    matches = within_policy(rows, workspace, request.user, DataPolicy.here(workspace))[:MOST_ENTRIES]
    return [
        Entry(each.title, reverse(f"workspaces:{name}", args=[workspace.public_id, each.public_id]), icon)
        for each in matches
    ]
