"""Share links: the menu of a chat, the list of a workspace, and the page that a link opens. A page for printing."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.cache import caches
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from chat.access import get_chat
from chat.chats import sharing
from chat.chats.services import title_from
from chat.chats.sharing import current_messages, messages_of, shareable
from chat.models import Chat, Message, MessageRole
from chat.rendering.stored_html import Shown, show, without_own_links
from chat.views.shown_messages import fitting
from memoryhub.errors import Invalid
from memoryhub.monitoring.request_origin import client_address, network_of
from workspaces.access import get_workspace
from workspaces.models import Role
from workspaces.views import PageRequest

PAGE = 60  # messages per page


@dataclass(frozen=True)
class SharedMessage:
    """A message to read or print. ``person``: the number of its author, or 0 if all messages have the same author."""

    message: Message
    shown: Shown | None
    person: int
    unanswered: bool = False  # its answer is not shown
    is_withheld: bool = False  # its answer used personal data

    @property
    def is_question(self) -> bool:
        return self.message.role == MessageRole.USER


@dataclass(frozen=True)
class Reading:
    """A page of messages. ``before``: number of messages on earlier pages. ``next``: start of the next page, or 0."""

    said: list[SharedMessage]
    before: int = 0
    next: int = 0


def read(keys: Sequence[int], *, start: int = 0, most: int = PAGE, host: str = "") -> Reading:
    """Return the page of the messages with these primary keys that starts at index ``start``. Up to four queries.

    ``host``: this server's host. Links to it are removed, because readers cannot open them.
    """
    rows = {row.pk: row for row in Message.objects.filter(pk__in=keys[start : start + most])}
    messages = fitting([rows[pk] for pk in keys[start : start + most] if pk in rows])
    shown = show([each for each in messages if each.role == MessageRole.ASSISTANT])
    if host:
        shown = {key: replace(each, html=without_own_links(each.html, host)) for key, each in shown.items()}
    people = _people(keys)
    following = [*messages[1:], None] if start + len(messages) >= len(keys) else messages[1:]
    unanswered = {
        each.pk
        for each, then in zip(messages, following, strict=False)
        if each.role == MessageRole.USER and (then is None or then.role == MessageRole.USER)
    }
    hidden_answers = Message.objects.current().marked().filter(reply_to__in=unanswered)
    withheld = set(hidden_answers.values_list("reply_to", flat=True))
    shared_messages = [
        SharedMessage(
            each,
            shown.get(each.pk),
            people.get(each.author_id, 0),
            each.pk in unanswered,
            each.pk in withheld,
        )
        for each in messages
    ]
    end = start + len(messages)
    return Reading(shared_messages, before=start, next=end if messages and end < len(keys) else 0)


def _people(keys: Sequence[int]) -> dict[int | None, int]:
    """Return a number for each author, shown instead of names, in order of first messages. {} for one author."""
    user_messages = Message.objects.filter(pk__in=keys, role=MessageRole.USER).order_by("pk")
    people = dict.fromkeys(user_messages.values_list("author_id", flat=True))
    return {person: number for number, person in enumerate(people, 1)} if len(people) > 1 else {}


# Content security policy of the read-only pages: no scripts and no forms.
POLICY = (
    "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; form-action 'none'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
PRINTED = 1_000  # limit of messages on the page for printing
READS = 120  # limit of requests a minute
CLOSED_TO_ROBOTS = "noindex, nofollow, noarchive, nosnippet"


@require_GET
def links(request: PageRequest, chat_id: str) -> HttpResponse:
    """Show the share menu of a chat: what a new link would show, and the existing links."""
    return _menu(request, get_chat(request.user, chat_id))


@require_POST
def make(request: PageRequest, chat_id: str) -> HttpResponse:
    """Create a link. Its URL is shown only in this response."""
    chat = get_chat(request.user, chat_id, need=Role.EDITOR)
    days, with_later = _days(request.POST.get("days", "")), "later" in request.POST
    link, token = sharing.create_link(
        chat, days=days, with_later=with_later, by=request.user, now=timezone.now()
    )
    return _menu(request, chat, made=link, address=address_of(request, token))


@require_POST
def update(request: PageRequest, chat_id: str, link_id: str) -> HttpResponse:
    chat = get_chat(request.user, chat_id, need=Role.EDITOR)
    link = sharing.get_link(chat, link_id)
    sharing.update_link(link, by=request.user, now=timezone.now())
    return _menu(request, chat, updated=link)


@require_POST
def close(request: PageRequest, chat_id: str, link_id: str) -> HttpResponse:
    """Close a link, and return the chat's share menu or, with ``?in=workspace``, the list of the workspace."""
    chat = get_chat(request.user, chat_id)
    sharing.close_link(sharing.get_link(chat, link_id), by=request.user)
    if request.GET.get("in") == "workspace":
        return _list(request, chat.workspace.public_id)
    return _menu(request, chat, closed=True)


@require_GET
def workspace_links(request: PageRequest, ws_id: str) -> HttpResponse:
    return _list(request, ws_id)


@require_GET
def paper(request: PageRequest, chat_id: str) -> HttpResponse:
    """Show the latest ``PRINTED`` messages of the current conversation as a page for printing."""
    chat = get_chat(request.user, chat_id)
    keys = list(current_messages(chat, request.user).values_list("pk", flat=True))
    reading = read(keys[-PRINTED:], most=PRINTED)
    context = {
        "chat": chat,
        "reading": reading,
        "left_out": len(keys) - len(reading.said),
        "now": timezone.now(),
    }
    return render(request, "chat/print.html", context)


@login_not_required
@csrf_exempt  # the view changes nothing
def shared(request: HttpRequest, share_token: str) -> HttpResponse:
    """Show the chat of a share link without sign-in, names, session and scripts, the same for every reader."""
    if request.method not in ("GET", "HEAD"):
        return _reading_page("chat/shared_closed.html", {}, status=405, headers={"Allow": "GET, HEAD"})
    if _is_too_much(request):
        return _reading_page("chat/shared_closed.html", {"is_busy": True}, status=429)
    now = timezone.now()
    link = sharing.open_link(share_token, now=now)
    keys = messages_of(link) if link else []
    start = request.GET.get("from", "0")[:9]
    if link is None or not (start.isascii() and start.isdecimal() and int(start) < len(keys)):
        return _reading_page("chat/shared_closed.html", {}, status=404)
    reading = read(keys, start=int(start), host=request.get_host())
    if request.method == "GET":
        sharing.record_opened(link, now=now)
    first = reading.said[0].message.content if reading.said and not reading.before else ""
    context = {"reading": reading, "title": title_from(first), "shared_at": link.shared_at}
    return _reading_page("chat/shared.html", context)


def address_of(request: Any, token: str) -> str:
    return str(request.build_absolute_uri(reverse("chat:shared", args=[token])))


def _is_too_much(request: HttpRequest) -> bool:
    """Return whether an IPv4 address or IPv6 network sent this process more than ``READS`` requests in this minute."""
    address = client_address(request)
    source = network_of(address) if ":" in address else address
    key, counted = f"shared:{source}:{int(time.time()) // 60}", caches["process"]
    counted.add(key, 0, 120)
    return counted.incr(key) > READS


def _reading_page(
    template: str, context: dict[str, Any], *, status: int = 200, headers: dict[str, str] | None = None
) -> HttpResponse:
    """Render a page without the request, so that it contains nothing about the reader.

    Django does not log the request, because its URL contains the link's secret token.
    """
    response = HttpResponse(render_to_string(template, context), status=status, headers=headers)
    response["Content-Security-Policy"] = POLICY
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = CLOSED_TO_ROBOTS
    response["Cache-Control"] = "private, no-store"
    response._has_been_logged = True  # type: ignore[attr-defined]  # Django's
    return response


def _days(value: str) -> int | None:
    if value and not (value.isascii() and value.isdecimal() and len(value) < 4):
        return -1  # an invalid choice, which create_link refuses
    return int(value) if value else None


def _menu(request: PageRequest, chat: Chat, **more: Any) -> HttpResponse:
    now = timezone.now()
    rows = chat.share_links.open(now).select_related("made_by")
    why_not, link_content = sharing.why_not_shareable(chat), None
    if not why_not:
        try:
            link_content = shareable(chat, request.user)
        except Invalid as refused:
            why_not = refused.message
    context = {
        "chat": chat,
        "links": rows,
        "shareable": link_content,
        "why_not": why_not,
        "can_share": Role(chat.role).allows(Role.EDITOR),
        "is_owner": chat.role == Role.OWNER,
        "days": sharing.DAYS,
        **more,
    }
    return render(request, "chat/share_menu.html", context)


def _list(request: PageRequest, ws_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id)
    context = {
        "workspace": workspace,
        "links": sharing.links_in(workspace, request.user, now=timezone.now()),
        "is_owner": workspace.role == Role.OWNER,
        "why_not": sharing.why_sharing_is_off(workspace),
    }
    return render(request, "chat/share_list.html", context)
