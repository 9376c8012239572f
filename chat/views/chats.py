"""Pages and fragments of the conversation and of the chat list. Each view loads the chat and calls one service."""

import re
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib import messages as notices
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat.access import get_chat
from chat.chats import services
from chat.chats.chat_list import chat_list_page, has_chats
from chat.chats.personal_memories import personal_in
from chat.chats.tags_and_pins import mark_of, set_mark, set_tags, tags_in, tags_of
from chat.models import Chat, ChatMark
from chat.models.answer_steps import Mode
from chat.modes.registry import model_context
from chat.turns.services import begin_turn
from chat.views.shown_messages import entries_sent, load_transcript
from memories.access import count_live, live_in, memory_on, must_ask, own_elsewhere, vetoed
from memories.writing.drafts import is_sensitive
from workspaces.access import default_workspace, get_workspace
from workspaces.accounts import sign_up
from workspaces.actions.model_connections import may_connect, may_find
from workspaces.actions.workspaces import agents_in_use, choose_agent
from workspaces.data_policy import DataPolicy, within_policy
from workspaces.model_choice import choose_connection, options_for
from workspaces.models import Document, Role, User, Workspace
from workspaces.views import PageRequest
from workspaces.views.model_connections import larger_model_status


def _parts(request: PageRequest) -> list[str]:
    path = ""
    with suppress(ValueError):  # clients can send an invalid URL
        path = (request.htmx.current_url_abs_path or "") if request.htmx else ""
    return path.split("?")[0].strip("/").split("/")


def chat_on_screen(request: PageRequest) -> str:
    """Return the id of the chat that the browser is showing, or ""."""
    parts = _parts(request)
    return parts[1] if len(parts) == 2 and parts[0] == "chats" else ""


def has_panel(request: PageRequest) -> bool:
    """Return whether the browser is showing a page with the memory panel: a chat, or the start page of a workspace."""
    parts = _parts(request)
    return len(parts) == 2 and parts[0] in ("chats", "workspaces")


MOST = 3
LOOKED_AT = 20  # limit of the newest memories
# The subject of a statement that begins with an article or a possessive: "My project deadline" is March 15.
_SUBJECT = re.compile(
    r"(?P<subject>(?:my|our|the|mein\w*|unser\w*|der|die|das|mon|ma|mes|notre|nos|le|la|les|mi|mis|nuestr\w+|el|los|las"
    r"|meus?|minhas?|noss\w+|os?|as?)(?: [\w-]+){1,4}?)"
    r" (?:is|are|was|were|ist|sind|heißt|heißen|est|sont|s['\u2019]appelle|es|son|está|se llama|é|são|se chama) ",
    re.IGNORECASE,
)


def example_questions(workspace: Workspace, user: User, *, alone: bool, now: datetime) -> list[str]:
    """Return at most three questions that can be answered from memories of this workspace. One query.

    Unless the reader is ``alone``, only shared memories that the user wrote are used. Personal numbers never are.
    """
    memories = live_in(workspace, user, now).filter(agent=None)
    if not alone:
        memories = memories.filter(owner=None, author=user)
    newest = list(memories.order_by("-created_at", "-id").values_list("content", flat=True)[:LOOKED_AT])
    questions = dict.fromkeys(filter(None, map(_question, newest)))
    if newest:
        questions = dict.fromkeys([*list(questions)[: MOST - 1], _("What do you know about me?")])
    return list(questions)


def _question(statement: str) -> str:
    """Return a question about the statement's subject, or "" if it has none or contains a personal number."""
    about = _SUBJECT.match(statement)
    if about is None or is_sensitive(statement):
        return ""
    subject = about["subject"]
    return _("What do you remember about %(subject)s?") % {"subject": subject[0].lower() + subject[1:]}


def can_write(workspace: Workspace) -> bool:
    return Role(workspace.role).allows(Role.EDITOR)


def _agent_context(workspace: Workspace, chat: Chat | None, wanted: str = "") -> dict[str, Any]:
    """Return the workspace's assistants, and the chat's or for a new chat the one with the id ``wanted``. One query."""
    agents = agents_in_use(workspace)
    chosen = next((each for each in agents if each.public_id == wanted), None) if chat is None else chat.agent
    return {"agents": agents, "agent": chosen}


def _page_context(request: PageRequest, workspace: Workspace, chat: Chat | None = None) -> dict[str, Any]:
    user = request.user
    if request.session.get("workspace") != workspace.public_id:  # setting the key writes the session
        request.session["workspace"] = workspace.public_id
    now = timezone.now()
    memories_here = count_live(workspace, user, personal=True, now=now)
    memory_count = memories_here + own_elsewhere(workspace, user, now).count()
    readers = workspace.memberships.count()
    return {
        "workspace": workspace,
        "chat": chat,
        "temporary": chat is None and request.GET.get("temporary") == "on",
        "readers": readers,
        "can_write": can_write(workspace),
        "memory_is_on": memory_on(user, chat.memory_enabled if chat else None),
        "memory_vetoed": vetoed(),
        "personal": personal_in(chat, user) if chat and can_write(workspace) else None,
        "ask_consent": must_ask(user) and can_write(workspace),
        "memory_count": memory_count,
        "is_empty": chat is None and not memories_here and not has_chats(workspace, user),
        "examples": lambda: (
            example_questions(workspace, user, alone=readers == 1, now=now) if memories_here else []
        ),
        # Dismissed notices; controls.js sets the cookie.
        "dismissed": request.COOKIES.get("dismissed", "").split("."),
        "is_first_account": request.session.get(sign_up.TOLD, False),
        "embedded_model": settings.EMBEDDED_MODEL,
        "larger_model": larger_model_status,
        "may_find_here": may_find(user),
        # A function, because the template needs the list only if the current model is too small or missing.
        "connected": lambda: [
            each for each in options_for(workspace, user, None) if each.value and not each.why_not
        ],
        "may_connect_models": may_connect(user),
        **model_context(user, workspace, chat, request.GET.get("connection", "")),
        **_agent_context(workspace, chat, request.GET.get("agent", "")),
    }


def _submitted(request: PageRequest) -> dict[str, Any]:
    """Return the message form's fields as arguments of a turn. ``documents``: ids, [] for “none”, or None for all."""
    chosen = [each for each in request.POST.getlist("documents") if each]
    return {
        "content": request.POST.get("content", ""),
        "mode": request.POST.get("mode", Mode.CHAT),
        "documents": [each for each in chosen if each != "none"] if chosen else None,
    }


def _shown(request: PageRequest, context: dict[str, Any]) -> HttpResponse:
    """Render the chat page, or only its main part if the request is from another chat page (htmx)."""
    if request.htmx.target == "main":
        context["layout"] = "chat/switched.html"
    return render(request, "chat/page.html", context)


@require_GET
def home(request: PageRequest) -> HttpResponse:
    """Redirect to the last visited workspace, else to the user's own. ``?own`` always redirects to the user's own."""
    user = request.user
    if "own" in request.GET:
        return redirect("chat:workspace", default_workspace(user).public_id)
    last = Workspace.objects.visible_to(user).filter(public_id=request.session.get("workspace", "")).first()
    return redirect("chat:workspace", (last or default_workspace(user)).public_id)


@require_GET
def workspace(request: PageRequest, ws_id: str) -> HttpResponse:
    loaded_workspace = get_workspace(request.user, ws_id)
    document_id = request.GET.get("document", "")  # a document preselected for the question
    rows = Document.objects.live().filter(public_id=document_id)
    named = within_policy(rows, loaded_workspace, request.user, DataPolicy.here(loaded_workspace))
    context = _page_context(request, loaded_workspace)
    context |= {"documents": named if document_id else [], "chosen_document": document_id}
    return _shown(request, context)


@require_GET
def chat(request: PageRequest, chat_id: str) -> HttpResponse:
    loaded_chat = get_chat(request.user, chat_id)
    now = timezone.now()
    transcript = load_transcript(loaded_chat, request.user, now=now, around=request.GET.get("at", ""))
    context = _page_context(request, loaded_chat.workspace, loaded_chat)
    context |= {"transcript": transcript, "mode": transcript.mode}
    return _shown(request, context)


@require_GET
def transcript(request: PageRequest, chat_id: str) -> HttpResponse:
    """Show the latest messages of a chat, or those before the message with the id ``?before=``."""
    loaded_chat, before = get_chat(request.user, chat_id), request.GET.get("before", "")
    shown = load_transcript(loaded_chat, request.user, now=timezone.now(), before=before)
    context = {
        "chat": loaded_chat,
        "transcript": shown,
        "can_write": can_write(loaded_chat.workspace),
        "is_earlier": "before" in request.GET,
    }
    return render(request, "chat/messages.html", context)


@require_POST
def create(request: PageRequest, ws_id: str) -> HttpResponse:
    """Create a chat with its first message. The conversation replaces the welcome text, and the URL changes."""
    user, now = request.user, timezone.now()
    loaded_workspace = get_workspace(user, ws_id, need=Role.EDITOR)
    wanted = request.POST.get("memory") == "on"
    chip = None if vetoed() or wanted == memory_on(user, None) else wanted
    agent_id = request.POST.get("agent", "")
    agent = choose_agent(loaded_workspace, agent_id) if agent_id else None
    connection_id = request.POST.get("connection", "")
    connection = choose_connection(loaded_workspace, connection_id, by=user) if connection_id else None
    with transaction.atomic():  # roll back the chat if its message cannot be sent
        new_chat = services.create_chat(
            workspace=loaded_workspace,
            by=user,
            now=now,
            memory_enabled=chip,
            is_private=request.POST.get("private") == "on",
            is_temporary=request.POST.get("temporary") == "on",
            agent=agent,
            connection=connection,
        )
        begin_turn(new_chat, **_submitted(request), by=user, now=now)
    url = reverse("chat:chat", args=[new_chat.public_id])
    if not request.htmx:
        return redirect(url)
    shown = load_transcript(new_chat, user, now=now)
    context = _page_context(request, loaded_workspace, new_chat)
    context |= {"transcript": shown, "mode": shown.mode}
    response = render(request, "chat/conversation.html", context)
    response.write(render_to_string("chat/tab_title.html", context))
    response["HX-Push-Url"] = url
    response["HX-Trigger-After-Settle"] = "chats:changed"
    return response


@require_POST
def send(request: PageRequest, chat_id: str) -> HttpResponse:
    loaded_chat = get_chat(request.user, chat_id, need=Role.EDITOR)
    user, now = request.user, timezone.now()
    turn = begin_turn(loaded_chat, **_submitted(request), by=user, now=now)
    if not request.htmx:
        return redirect("chat:chat", loaded_chat.public_id)
    entries = entries_sent(turn, loaded_chat, user, now=now)
    context = {"chat": loaded_chat, "transcript": {"entries": entries}, "can_write": True}
    response = render(request, "chat/sent.html", context)
    response["HX-Trigger"] = "chats:changed"
    return response


@require_POST
def delete(request: PageRequest, chat_id: str) -> HttpResponse:
    loaded_chat = get_chat(request.user, chat_id, need=Role.EDITOR)
    services.delete_chat(loaded_chat, by=request.user, now=timezone.now())
    undo_url = reverse("chat:restore", args=[loaded_chat.public_id])
    forget_url = reverse("chat:forget", args=[loaded_chat.public_id])
    text = _("Deleted “%(title)s”. Memories from it stay.") % {"title": loaded_chat}
    if chat_on_screen(request) == loaded_chat.public_id:  # the current page no longer exists
        notices.success(request, text, extra_tags=f"{undo_url} {forget_url}")
        response = HttpResponse()
        response["HX-Redirect"] = reverse("chat:workspace", args=[loaded_chat.workspace.public_id])
        return response
    context = {"text": text, "undo_url": undo_url, "forget_url": forget_url}
    return render(request, "partials/toast_oob.html", context)


@require_POST
def restore(request: PageRequest, chat_id: str) -> HttpResponse:
    user = request.user
    deleted_chat = get_chat(user, chat_id, need=Role.EDITOR, include_deleted=True)
    services.restore_chat(deleted_chat, by=user, now=timezone.now())
    text = _("Restored “%(title)s”.") % {"title": deleted_chat}
    response = render(request, "partials/toast_oob.html", {"text": text})
    response["HX-Trigger"] = "chats:changed"
    return response


@require_POST
def agent(request: PageRequest, chat_id: str) -> HttpResponse:
    """Set the assistant for the next answers, and return the assistant menu and the line above the conversation."""
    loaded_chat = get_chat(request.user, chat_id, need=Role.EDITOR)
    agent_id = request.POST.get("agent", "")
    chosen = choose_agent(loaded_chat.workspace, agent_id) if agent_id else None
    services.set_agent(loaded_chat, agent=chosen)
    context = {
        "chat": loaded_chat,
        "workspace": loaded_chat.workspace,
        "can_write": True,
        **model_context(request.user, loaded_chat.workspace, loaded_chat),
        **_agent_context(loaded_chat.workspace, loaded_chat),
    }
    response = render(request, "chat/agent_chooser.html", context)
    response.write(render(request, "chat/talking_to.html", context | {"oob": True}).content.decode())
    return response


@require_POST
def private(request: PageRequest, chat_id: str) -> HttpResponse:
    """Make a chat private or shared. Return the header, the chip for personal memories, and a toast with Undo."""
    loaded_chat = get_chat(request.user, chat_id, need=Role.EDITOR)
    # An Undo sends the value in the query string.
    value = request.GET.get("private") or request.POST.get("private")
    had_links = loaded_chat.share_links.exists()
    services.set_private(loaded_chat, is_private=value == "on", by=request.user, now=timezone.now())
    text = _("All members of the workspace can read this chat now.")
    if loaded_chat.is_private and had_links:
        text = _("Other members can no longer read this chat, and its links are turned off.")
    elif loaded_chat.is_private:
        text = _("Other members can no longer read this chat.")
    context = {
        "chat": loaded_chat,
        "workspace": loaded_chat.workspace,
        "can_write": True,
        "readers": loaded_chat.workspace.memberships.count(),
        "personal": personal_in(loaded_chat, request.user),
        "text": text,
        "about": "readers",
        "undo_url": f"{request.path}?private={'off' if loaded_chat.is_private else 'on'}",
        "oob": True,
    }
    parts = ["chat/readers.html", "chat/personal_slot.html"]
    parts += [] if "private" in request.GET else ["partials/toast_oob.html"]
    response = HttpResponse("".join(render(request, part, context).content.decode() for part in parts))
    response["HX-Trigger"] = "chats:changed"
    return response


@require_POST
def memory(request: PageRequest, chat_id: str) -> HttpResponse:
    """Switch memory on or off for a chat."""
    loaded_chat = get_chat(request.user, chat_id, need=Role.EDITOR)
    user = request.user
    services.set_chat_memory(loaded_chat, enabled=request.POST.get("memory") == "on")
    context = {
        "chat": loaded_chat,
        "memory_is_on": memory_on(user, loaded_chat.memory_enabled),
        "memory_vetoed": vetoed(),
    }
    return render(request, "chat/memory_chip.html", context)


@require_GET
def chat_list(request: PageRequest, ws_id: str) -> HttpResponse:
    loaded_workspace = get_workspace(request.user, ws_id)
    q, before = request.GET.get("q", ""), request.GET.get("before", "")
    archived = request.GET.get("archived") == "on"
    filters = {"q": q, "before": before, "tag": request.GET.get("tag", "")}
    page = chat_list_page(loaded_workspace, request.user, **filters, archived=archived, now=timezone.now())
    announces = bool(q) and request.htmx.trigger == "chat-search"  # not when the list is only refreshed
    context = {
        "workspace": loaded_workspace,
        "page": page,
        "q": q,
        "announces": announces,
        "can_write": can_write(loaded_workspace),
    }
    return render(request, "chat/chat_list.html", context | {"current_chat_id": chat_on_screen(request)})


def row_of(request: PageRequest, loaded_chat: Chat) -> HttpResponse:
    loaded_chat.mark = mark_of(loaded_chat, request.user)
    context = {
        "chat": loaded_chat,
        "workspace": loaded_chat.workspace,
        "can_write": can_write(loaded_chat.workspace),
        "current_chat_id": chat_on_screen(request),
    }
    return render(request, "chat/chat_list_row.html", context)


@require_GET
def row(request: PageRequest, chat_id: str) -> HttpResponse:
    return row_of(request, get_chat(request.user, chat_id))


@require_POST
def mark(request: PageRequest, chat_id: str) -> HttpResponse:
    """Pin or archive a chat in the user's own list, or undo that. Any role may do this."""
    loaded_chat = get_chat(request.user, chat_id)
    kind, before = request.POST.get("mark", ""), mark_of(loaded_chat, request.user)
    set_mark(loaded_chat, kind, by=request.user)
    if kind == ChatMark.Kind.ARCHIVED:
        text = _("Archived “%(title)s”. Search still finds it.") % {"title": loaded_chat}
        undo_url = reverse("chat:mark", args=[loaded_chat.public_id])
        response = render(request, "partials/toast_oob.html", {"text": text, "undo_url": undo_url})
    else:
        gone = _("Unpinned.") if before == ChatMark.Kind.PINNED else _("Back in the list of chats.")
        text = _("Pinned.") if kind else gone
        response = render(request, "partials/announce_oob.html", {"text": text})
    response["HX-Trigger"] = "chats:changed"
    return response


@require_http_methods(["GET", "POST"])
def rename(request: PageRequest, chat_id: str) -> HttpResponse:
    """Show the title as a field (GET), or save it (POST) and update the row and the title above the conversation."""
    loaded_chat = get_chat(request.user, chat_id, need=Role.EDITOR)
    if request.method == "GET":
        return render(request, "chat/chat_list_rename.html", {"chat": loaded_chat})
    services.rename_chat(loaded_chat, title=request.POST.get("title", ""))
    response = row_of(request, loaded_chat)
    if chat_on_screen(request) == loaded_chat.public_id:
        for part in ("chat/title.html", "chat/tab_title.html"):
            response.write(render_to_string(part, {"chat": loaded_chat, "oob": True}))
    return response


@require_http_methods(["GET", "POST"])
def tags(request: PageRequest, chat_id: str) -> HttpResponse:
    """Show the user's tags of the chat as a field (GET), or save them from a comma-separated list (POST)."""
    loaded_chat = get_chat(request.user, chat_id)
    if request.method == "GET":
        context = {
            "chat": loaded_chat,
            "tags": ", ".join(tags_of(loaded_chat, request.user)),
            "known": tags_in(loaded_chat.workspace, request.user),
        }
        return render(request, "chat/chat_list_tags.html", context)
    set_tags(loaded_chat, request.POST.get("tags", "").split(","), by=request.user)
    response = row_of(request, loaded_chat)
    response["HX-Trigger"] = "chats:changed"
    return response
