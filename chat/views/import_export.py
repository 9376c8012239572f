"""Pages of export and import, and download of one chat as Markdown or JSON, for reading."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages as notices
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat.access import get_chat
from chat.chats.personal_memories import withheld_answers
from chat.chats.services import audit_workspace
from chat.import_export import import_jobs
from chat.import_export.export import download_response, export_response
from chat.import_export.import_jobs import ROW_FOR_EACH, refusals, with_texts
from chat.import_export.personal_copy import copy_response
from chat.import_export.upload_formats import refuse_too_large
from chat.models import Chat, Message, MessageRole, MessageStatus
from chat.models.imports import Import, ImportKind, ImportStatus, Outcome
from chat.prompting.prompt_text import imported, withheld
from memoryhub.localization import grouped
from workspaces.access import default_workspace, get_workspace
from workspaces.accounts.reauthentication import ask_for_password
from workspaces.api.fields import iso
from workspaces.audit import Verb, record
from workspaces.models import Membership, Role, User, Workspace
from workspaces.views import PageRequest
from workspaces.views.forms import DomainForm


class UploadForm(DomainForm):
    file = forms.FileField(label=gettext_lazy("File"))
    workspace = forms.ModelChoiceField(
        Workspace.objects.none(),
        label=gettext_lazy("Where it goes"),
        required=False,
        to_field_name="public_id",
        empty_label=gettext_lazy("As in the file: each workspace to its own"),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        memberships = Membership.objects.filter(user=user).exclude(role=Role.VIEWER)
        choice = self.fields["workspace"]
        assert isinstance(choice, forms.ModelChoiceField)
        choice.queryset = Workspace.objects.filter(memberships__in=memberships).order_by("name", "pk")
        help_text = _("At most %(size)s MB. You see a preview before anything is stored.")
        self.fields["file"].help_text = help_text % {"size": grouped(settings.IMPORT_MAX_BYTES // 2**20)}


LISTED = 30  # limit of imports on the page
ROWS = 50  # per page
LINKED = 10  # limit of workspaces that a finished import links to
KINDS = {
    "memory": gettext_lazy("Memories"),
    "chat": gettext_lazy("Chats"),
    "message": gettext_lazy("Messages"),
    "agent": gettext_lazy("Assistants"),
    "workspace": gettext_lazy("Workspaces"),
    "document": gettext_lazy("Documents"),
    "artifact": gettext_lazy("Artifacts"),
    "receipt": gettext_lazy("Receipts"),
    "other": gettext_lazy("Unreadable lines"),
}


@require_GET
def export_workspace(request: PageRequest, ws_id: str) -> StreamingHttpResponse:
    return export_response(request.user, workspace=get_workspace(request.user, ws_id), now=timezone.now())


@require_GET
def export_all(request: PageRequest) -> StreamingHttpResponse:
    return export_response(request.user, now=timezone.now())


@require_GET
def personal_copy(request: PageRequest) -> HttpResponse | StreamingHttpResponse:
    """Show the page about the copy of all data about the user, or download the copy (``?download``).

    Requires recent re-authentication, because anyone at an unlocked computer could otherwise download everything.
    """
    ask_for_password(request)
    if "download" in request.GET:
        return copy_response(request.user, now=timezone.now())
    return render(request, "chat/import_export/personal_copy.html")


@require_GET
def export_chat(request: PageRequest, chat_id: str) -> StreamingHttpResponse:
    """Download a chat as JSON (``?as=json``) or Markdown."""
    kind = "json" if request.GET.get("as") == "json" else "md"
    chat = get_chat(request.user, chat_id)
    return chat_response(chat, kind=kind, by=request.user, now=timezone.now())


@require_http_methods(["GET", "POST"])
def imports(request: PageRequest) -> HttpResponse:
    """Show the user's imports (GET), or upload a file and create an import (POST)."""
    default_workspace(request.user)  # make sure that the usual target exists
    if request.method == "GET":
        form = UploadForm(user=request.user, initial={"workspace": request.GET.get("workspace", "")})
        return _imports(request, form)
    refuse_too_large(request.META.get("CONTENT_LENGTH"))
    form = UploadForm(request.POST, request.FILES, user=request.user)

    def begin() -> Import:
        file, place = form.cleaned_data["file"], form.cleaned_data["workspace"]
        options = {"filename": file.name, "pieces": file.chunks(), "now": timezone.now()}
        return import_jobs.begin(request.user, workspace=place, **options)

    if imported := form.done(begin):
        return redirect("exchange:import", imported.public_id)
    return _imports(request, form)


def _imports(request: PageRequest, form: UploadForm) -> HttpResponse:
    latest_imports = Import.objects.of(request.user).select_related("workspace")[:LISTED]
    context = {"imports": latest_imports, "form": form}
    return render(request, "chat/import_export/imports.html", context, status=422 if form.errors else 200)


@require_GET
def import_page(request: PageRequest, import_id: str) -> HttpResponse:
    imported = import_jobs.get_import(request.user, import_id)
    show = request.GET.get("show", "")
    after = request.GET.get("after", "")
    rows = imported.rows.filter(number__gt=int(after) if after.isdecimal() and len(after) < 10 else 0)
    rows = rows.filter(outcome=show) if show in Outcome.values else rows
    # Rows of kinds that were not chosen still have their predicted outcome.
    if imported.status == ImportStatus.DONE:
        rows = rows.exclude(outcome=Outcome.NEW, became="")
    page_rows = list(rows.order_by("number")[: ROWS + 1])
    context = _context(imported) | {
        "rows": with_texts(imported, page_rows[:ROWS]),
        "show": show,
        "next": page_rows[ROWS - 1].number if len(page_rows) > ROWS else None,
        "is_first": not after,
        "filters": _filters(imported),
        "went_to": _went_to(imported),
    }
    return render(request, "chat/import_export/import.html", context)


@require_GET
def progress(request: PageRequest, import_id: str) -> HttpResponse:
    """Show the progress of an import, which the page polls. When it has ended, the browser reloads the page."""
    imported = import_jobs.get_import(request.user, import_id)
    if not imported.is_checking and imported.status != ImportStatus.RUNNING:
        response = HttpResponse()
        response["HX-Refresh"] = "true"
        return response
    return render(request, "chat/import_export/progress.html", _context(imported))


@require_POST
def start(request: PageRequest, import_id: str) -> HttpResponse:
    imported = import_jobs.get_import(request.user, import_id)
    chosen = {f"takes_{kind}": request.POST.get(kind) == "on" for kind in ("chats", "memories")}
    import_jobs.start(imported, now=timezone.now(), **chosen)
    return redirect("exchange:import", import_id)


@require_POST
def stop(request: PageRequest, import_id: str) -> HttpResponse:
    import_jobs.stop(import_jobs.get_import(request.user, import_id), now=timezone.now())
    return redirect("exchange:import", import_id)


@require_POST
def resume(request: PageRequest, import_id: str) -> HttpResponse:
    import_jobs.resume(import_jobs.get_import(request.user, import_id), now=timezone.now())
    return redirect("exchange:import", import_id)


@require_POST
def delete(request: PageRequest, import_id: str) -> HttpResponse:
    import_jobs.delete(import_jobs.get_import(request.user, import_id))
    notices.success(request, _("The import has been deleted. What it had stored stays."))
    return redirect(reverse("exchange:imports"))


def _went_to(imported: Import) -> list[Workspace]:
    """Return the workspaces that received the imported rows and of which the user is still a member."""
    ids = {place for place in imported.places.values() if place.startswith("ws_")}
    if imported.workspace is not None:
        ids = {imported.workspace.public_id}
    elif not ids:
        return [default_workspace(imported.user)]
    return list(Workspace.objects.visible_to(imported.user).filter(public_id__in=ids)[:LINKED])


def _other_readers(imported: Import) -> int:
    """Return how many other members will be able to read the imported rows that are not private.

    Conversations of other programs become private. Imports into several workspaces are not counted.
    """
    if imported.workspace is None or imported.kind != ImportKind.MEMORYHUB:
        return 0
    return imported.workspace.memberships.exclude(user=imported.user).count()


def _context(imported: Import) -> dict[str, Any]:
    left = imported.seconds_left(timezone.now())
    counts = imported.foreseen if imported.checked_at is None or not imported.outcomes else imported.outcomes
    return {
        "imported": imported,
        "percent": int(imported.progress * 100),
        "lines": imported.looked_lines if imported.is_checking else imported.stored_lines,
        "counts": [
            {"label": label, **counts[kind], "kind": kind} for kind, label in KINDS.items() if kind in counts
        ],
        "others": _other_readers(imported),
        "refusals": [{**each, "label": KINDS.get(each["kind"], each["kind"])} for each in refusals(imported)],
        "has_chats": "chat" in imported.foreseen,
        "has_memories": "memory" in imported.foreseen,
        "is_at_work": imported.is_at_work,
        "minutes_left": None if left is None else left // 60 + 1,
    }


def _filters(imported: Import) -> list[tuple[str, str, int]]:
    """Return the outcomes of an import's rows as (outcome, label, number of rows), without those that have no rows."""
    is_done = imported.status == ImportStatus.DONE
    counts = imported.outcomes if is_done else imported.foreseen
    labels = {
        Outcome.NEW: _("Stored") if is_done else _("To be stored"),
        Outcome.UPDATE: _("Changed") if is_done else _("To be changed"),
        Outcome.DUPLICATE: _("Already known"),
        Outcome.REFUSED: _("Refused"),
    }
    filters = []
    for value, label in labels.items():
        number = sum(
            of.get(value, 0)
            for kind, of in counts.items()
            if kind in ROW_FOR_EACH or value == Outcome.REFUSED
        )
        if number:
            filters.append((str(value), label, number))
    return filters


AT_ONCE = 100  # messages read at a time


MEDIA_TYPES = {"md": "text/markdown; charset=utf-8", "json": "application/json"}


def chat_response(chat: Chat, *, kind: str, by: User, now: datetime) -> StreamingHttpResponse:
    """Return a download of the chat's current conversation, as far as ``by`` may read it. Records it in the audit log.

    ``kind``: a key of MEDIA_TYPES. An answer that is still being written is left out.
    """
    record(Verb.EXPORTED, by=by, workspace=audit_workspace(chat), target=chat.public_id)
    pieces = (_markdown if kind == "md" else _json)(chat, by)
    name = f"{slugify(str(chat))[:60] or 'chat'}-{now:%Y-%m-%d}.{kind}"
    return download_response(pieces, name=name, media_type=MEDIA_TYPES[kind])


def _messages(chat: Chat, reader: User) -> Iterator[list[Message]]:
    last = 0
    while True:
        rows = (
            chat.messages.readable_by(reader)
            .current()
            .exclude(status=MessageStatus.STREAMING)
            .select_related("author", "imported_by")
        )
        batch = list(rows.filter(pk__gt=last).defer("html").order_by("pk")[:AT_ONCE])
        if not batch:
            return
        yield batch
        last = batch[-1].pk


def _said_by(message: Message) -> str:
    if message.role == MessageRole.ASSISTANT:
        return f"{_('Answer')} ({imported(message)})" if message.is_imported else _("Answer")
    if message.is_imported:
        return imported(message)
    return message.author.shown_name if message.author else _("Someone who left")


def _markdown(chat: Chat, reader: User) -> Iterator[bytes]:
    yield f"# {chat}\n".encode()
    for messages in _messages(chat, reader):
        hidden = withheld_answers(messages, reader)
        for message in messages:
            head = f"\n## {_said_by(message)}, {message.created_at:%Y-%m-%d %H:%M} UTC\n\n"
            yield (head + message.content + "\n").encode()
            if message.pk in hidden:
                yield f"\n_{withheld(message)}_\n".encode()


def _json(chat: Chat, reader: User) -> Iterator[bytes]:
    head = {"id": chat.public_id, "title": str(chat), "created_at": iso(chat.created_at)}
    yield (json.dumps(head, ensure_ascii=False)[:-1] + ', "messages": [').encode()
    between = "\n"
    for messages in _messages(chat, reader):
        hidden = withheld_answers(messages, reader)
        for message in messages:
            line = {
                "id": message.public_id,
                "role": message.role,
                "author": message.author.get_username() if message.author else None,
                "imported": message.is_imported,
                "imported_by": message.imported_by.get_username() if message.imported_by else None,
                "content": message.content,
                "answer_withheld": message.pk in hidden,
                "created_at": iso(message.created_at),
            }
            yield (between + json.dumps(line, ensure_ascii=False)).encode()
            between = ",\n"
    yield b"\n]}\n"
