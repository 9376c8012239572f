"""Pages of a workspace's documents: list, add, read, edit, compare versions, delete and undo."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any

from django.conf import settings
from django.contrib import messages as notices
from django.core.paginator import Paginator
from django.db.models import Case, When
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memoryhub.errors import DomainError, Invalid, NotFound, TooLarge
from memoryhub.localization import file_size
from memoryhub.stored_files import SHUT, says_too_long
from workspaces.access import get_workspace, may_move_away, require_right_to_forget
from workspaces.accounts.reauthentication import ask_for_password
from workspaces.data_policy import DataPolicy, within_policy
from workspaces.documents import documents, reading_jobs
from workspaces.documents.files import download
from workspaces.documents.reading.parent_process import SENTENCES
from workspaces.models import Document, DocumentPicture, DocumentStatus, Role
from workspaces.views import PageRequest, reload_or_redirect
from workspaces.views.forms import destination, say_whose, whose

AROUND = 3  # unchanged lines shown before and after a change
# Limit of differing lines to compare, because the cost of hostile texts grows without bound. Above it, all of them are
# shown as removed and added.
MOST_COMPARED = 800


@dataclass(frozen=True)
class Line:
    """A line of a comparison.

    ``sign``: "-" removed, "+" added, " " unchanged, "…" for omitted unchanged lines. Line numbers start at 1, and are
    None if the line is not in that version.
    """

    sign: str
    text: str
    before: int | None = None
    after: int | None = None

    @property
    def word(self) -> str:
        return {"-": "removed", "+": "added"}.get(self.sign, "same")


def compare(before: str, after: str) -> list[Line]:
    """Return the changed lines and some unchanged lines around them; an empty list if nothing changed."""
    old, new = _lines(before), _lines(after)
    begins = _equal_at_start(old, new)
    ends = _equal_at_start(old[begins:][::-1], new[begins:][::-1])
    changed_old, changed_new = old[begins : len(old) - ends], new[begins : len(new) - ends]
    if not changed_old and not changed_new:
        return []
    steps: Sequence[tuple[str, int, int, int, int]]
    if max(len(changed_old), len(changed_new)) > MOST_COMPARED:
        steps = [("replace", 0, len(changed_old), 0, len(changed_new))]
    else:
        steps = SequenceMatcher(None, changed_old, changed_new, autojunk=False).get_opcodes()
    lines = [Line(" ", text, at + 1, at + 1) for at, text in enumerate(old[:begins])]
    for step, low, high, from_, to in steps:
        if step == "equal":
            lines += [
                Line(" ", old[begins + at], begins + at + 1, begins + from_ + at - low + 1)
                for at in range(low, high)
            ]
            continue
        lines += [Line("-", changed_old[at], before=begins + at + 1) for at in range(low, high)]
        lines += [Line("+", changed_new[at], after=begins + at + 1) for at in range(from_, to)]
    shift = len(new) - len(old)
    lines += [Line(" ", old[at], at + 1, at + shift + 1) for at in range(len(old) - ends, len(old))]
    return _near_changes(lines)


def _lines(text: str) -> list[str]:
    """Split a text at line feeds only. A difference in other line separators is then shown as a change."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


def _equal_at_start(one: list[str], other: list[str]) -> int:
    """Return the number of lines at the beginning that are equal in both lists."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _near_changes(lines: list[Line]) -> list[Line]:
    near: set[int] = set()
    for at, line in enumerate(lines):
        if line.sign != " ":
            near.update(range(at - AROUND, at + AROUND + 1))
    shown: list[Line] = []
    for at, line in enumerate(lines):
        if at in near:
            shown.append(line)
        elif not shown or shown[-1].sign != "…":
            shown.append(Line("…", ""))
    return shown


PAGE_SIZE = 50
PASSAGES_SHOWN = 100  # of one page of a document's text
CHOICES = 100  # documents offered in the composer
MOST_FILES = 20  # of one form
UNREADY = (DocumentStatus.WAITING, DocumentStatus.READING, DocumentStatus.INDEXING)


def _document(
    request: PageRequest, ws_id: str, doc_id: str, need: Role = Role.VIEWER, *, or_deleted: bool = False
) -> Document:
    workspace = get_workspace(request.user, ws_id, need=need)
    return documents.get_document(request.user, doc_id, workspace=workspace, or_deleted=or_deleted)


def _number(text: str) -> int | None:
    """Return the whole number that a parameter contains, or None if it contains something else."""
    return int(text) if text.isdecimal() and len(text) < 8 else None


@csrf_exempt  # checked after the length, because the check reads the whole form
def document_list(request: PageRequest, ws_id: str) -> HttpResponse:
    _require_fitting(request)
    return _document_list(request, ws_id)


def _require_fitting(request: PageRequest) -> None:
    if says_too_long(request, settings.DOCUMENT_MAX_BYTES):
        most = file_size(settings.DOCUMENT_MAX_BYTES)
        raise TooLarge(_("Files added together may be at most %(most)s.") % {"most": most})


@csrf_protect
@require_http_methods(["GET", "POST"])
def _document_list(request: PageRequest, ws_id: str) -> HttpResponse:
    """List the documents (GET), or add files or a text (POST). For htmx only the list is rendered."""
    need = Role.EDITOR if request.method == "POST" else Role.VIEWER
    workspace = get_workspace(request.user, ws_id, need=need)
    if request.method == "POST":
        _upload(request, workspace)
        return redirect("workspaces:documents", ws_id)
    rows = Document.objects.live().select_related("created_by")
    visible_rows = within_policy(rows, workspace, request.user, DataPolicy.here(workspace))
    page = Paginator(visible_rows, PAGE_SIZE).get_page(request.GET.get("page"))
    reading_jobs.with_shares(page)
    context: dict[str, Any] = {
        "workspace": workspace,
        "can_write": Role(workspace.role).allows(Role.EDITOR),
        "page": page,
        "is_reading": any(document.status in UNREADY for document in page),
        "no_text": str(SENTENCES["empty"]),  # reading it again does not help
        "most_bytes": settings.DOCUMENT_MAX_BYTES,
    }
    template = "documents/rows.html" if request.htmx else "documents/list.html"
    return render(request, template, context)


def _upload(request: PageRequest, workspace: Any) -> None:
    """Add each file and the text of the form separately, so that one failure does not stop the others."""
    text = request.POST.get("text", "")
    who: dict[str, Any] = {
        "personal": request.POST.get("personal") == "on",
        "by": request.user,
        "now": timezone.now(),
    }
    brought = known = 0
    files = request.FILES.getlist("file")[:MOST_FILES]
    for file in files:
        try:
            outcome = documents.add_document(workspace, name=file.name or "", content=file.chunks(), **who)
            brought, known = brought + (not outcome.is_known), known + outcome.is_known
        except DomainError as error:
            why = " ".join([error.message, *error.fields.values()])
            notices.error(request, _("“%(name)s” was not added. %(why)s") % {"name": file.name, "why": why})
    if text.strip():
        try:
            title = request.POST.get("title", "").strip() or text.strip().splitlines()[0][:80]
            outcome = documents.write(workspace, title=title, text=text, **who)
            brought, known = brought + (not outcome.is_known), known + outcome.is_known
        except DomainError as error:
            notices.error(request, " ".join([error.message, *error.fields.values()]))
    elif not files:
        notices.error(request, _("Choose a file or paste text."))
    if brought:
        sentence = ngettext(
            "%(count)d document is being read.", "%(count)d documents are being read.", brought
        )
        notices.success(request, sentence % {"count": brought})
    if known:
        sentence = ngettext("%(count)d was here already.", "%(count)d were here already.", known)
        notices.info(request, sentence % {"count": known})


@require_GET
def choices(request: PageRequest, ws_id: str) -> HttpResponse:
    """List the newest documents for the composer's menu. ``?documents=`` is the selected one, listed first."""
    chosen = request.GET.get("documents", "")
    workspace = get_workspace(request.user, ws_id)
    visible_rows = within_policy(Document.objects.live(), workspace, request.user, DataPolicy.here(workspace))
    visible_rows = visible_rows.order_by(
        Case(When(public_id=chosen, then=0), default=1), "-created_at", "-id"
    )
    return render(
        request, "documents/choices.html", {"documents": visible_rows[:CHOICES], "chosen_document": chosen}
    )


@require_GET
def document(request: PageRequest, ws_id: str, doc_id: str) -> HttpResponse:
    """Show the document's passages. ``?passage=`` opens and highlights the one with this number."""
    [document_row] = reading_jobs.with_shares([_document(request, ws_id, doc_id)])
    number = _number(request.GET.get("passage", ""))
    pages = Paginator(document_row.passages.order_by("number"), PASSAGES_SHOWN)
    at = request.GET.get("page") if number is None else number // PASSAGES_SHOWN + 1
    context = {
        "workspace": get_workspace(request.user, ws_id),
        "document": document_row,
        "picture": DocumentPicture.objects.filter(document=document_row).defer("jpeg").first(),
        "versions": document_row.versions.select_related("version_by"),
        "can_write": Role(document_row.role).allows(Role.EDITOR),
        "not_quite_read": Document.objects.not_quite_read().filter(pk=document_row.pk).exists(),
        "can_edit": document_row.media_type in documents.TYPED and document_row.size <= documents.EDITABLE,
        "can_forget": may_move_away(document_row, request.user, document_row.role),
        "page": pages.get_page(at),
        "asked": number,
        **whose(document_row, request.user),
    }
    return render(request, "documents/document.html", context)


@require_GET
def content(request: PageRequest, ws_id: str, doc_id: str) -> StreamingHttpResponse:
    """Download a document; ``?version=`` chooses an earlier version."""
    document_row = _document(request, ws_id, doc_id)
    number = _number(request.GET.get("version", ""))
    version = document_row.version if number is None else number
    return download(document_row, documents.get_version(document_row, version))


@require_GET
def picture(request: PageRequest, ws_id: str, doc_id: str) -> HttpResponse:
    """Return the re-encoded picture, without the file's metadata."""
    shown = DocumentPicture.objects.filter(document=_document(request, ws_id, doc_id)).first()
    if shown is None:
        raise NotFound(_("This document is not a picture."))
    response = HttpResponse(bytes(shown.jpeg), content_type="image/jpeg", headers=SHUT)
    response["Cache-Control"] = "private, max-age=3600"
    return response


@csrf_exempt  # as for the list
def replace(request: PageRequest, ws_id: str, doc_id: str) -> HttpResponse:
    _require_fitting(request)
    return _replace(request, ws_id, doc_id)


@csrf_protect
@require_POST
def _replace(request: PageRequest, ws_id: str, doc_id: str) -> HttpResponse:
    """Replace a document's file by a newer one. The previous file becomes an earlier version."""
    document_row = _document(request, ws_id, doc_id, Role.EDITOR)
    file, now = request.FILES.get("file"), timezone.now()
    try:
        if file is None:
            raise Invalid(_("Choose a file first."))
        outcome = documents.replace(
            document_row, name=file.name or "", content=file.chunks(), by=request.user, now=now
        )
    except DomainError as error:
        notices.error(request, " ".join([error.message, *error.fields.values()]))
    else:
        if outcome.is_known:
            notices.success(request, _("It is the same file as before."))
        else:
            _offer_undo(request, document_row, _("The newer file is being read."))
    return redirect("workspaces:document", ws_id, doc_id)


@require_http_methods(["GET", "POST"])
def edit(request: PageRequest, ws_id: str, doc_id: str) -> HttpResponse:
    """Show the document's text for editing (GET), or save it as a newer version (POST).

    If another person saved in between, the differences between both texts are shown.
    """
    document_row = _document(request, ws_id, doc_id, Role.EDITOR)
    text = documents.text_of(document_row)
    context = {"workspace": get_workspace(request.user, ws_id), "document": document_row, "text": text}
    if request.method == "GET":
        return render(request, "documents/edit.html", context)
    typed, seen, now = request.POST.get("text", ""), _number(request.POST.get("version", "")), timezone.now()
    try:
        outcome = documents.edit(document_row, text=typed, seen=seen or 0, by=request.user, now=now)
    except DomainError as error:
        problem = " ".join([error.message, *error.fields.values()])
        context |= {"text": typed, "problem": problem, "lines": compare(text, typed.replace("\r\n", "\n"))}
        return render(request, "documents/edit.html", context, status=error.status)
    if outcome.is_known:
        notices.info(request, _("Nothing was changed."))
    else:
        _offer_undo(request, document_row, _("The newer text is being read."))
    return redirect("workspaces:document", ws_id, doc_id)


def _offer_undo(request: PageRequest, before: Document, text: str) -> None:
    """Show the notice ``text`` with an Undo button, which restores the version that ``before`` has now."""
    ids = [before.workspace.public_id, before.public_id, before.version]
    notices.success(request, text, extra_tags=reverse("workspaces:document_back", args=ids))


@require_POST
def back(request: PageRequest, ws_id: str, doc_id: str, number: int) -> HttpResponse:
    document_row = _document(request, ws_id, doc_id, Role.EDITOR)
    documents.restore_version(document_row, number, by=request.user, now=timezone.now())
    if not request.htmx:
        notices.success(request, _("Version %(number)s is the newest again.") % {"number": number})
    return reload_or_redirect(request, "workspaces:document", ws_id, doc_id)


@require_POST
def move(request: PageRequest, ws_id: str, doc_id: str) -> HttpResponse:
    """Move a document to the workspace or person chosen in the form."""
    document_row = _document(request, ws_id, doc_id, Role.EDITOR)
    moved = documents.move(document_row, destination(request), by=request.user, now=timezone.now())
    say_whose(request, moved)
    return redirect("workspaces:document", moved.workspace.public_id, doc_id)


@require_http_methods(["GET", "POST"])
def forget(request: PageRequest, ws_id: str, doc_id: str) -> HttpResponse:
    """Ask for confirmation (GET), or remove a document permanently, whether deleted or live (POST)."""
    document_row = _document(request, ws_id, doc_id, Role.EDITOR, or_deleted=True)
    require_right_to_forget(document_row, request.user)
    ask_for_password(request)
    if request.method == "GET":
        back = reverse("workspaces:documents", args=[ws_id])
        context = {"workspace": get_workspace(request.user, ws_id), "document": document_row, "back": back}
        return render(request, "documents/forget.html", context)
    documents.forget_document(document_row, by=request.user)
    notices.success(request, _("“%(name)s” has been deleted for good.") % {"name": document_row.title})
    return redirect("workspaces:documents", ws_id)


@require_POST
def delete(request: PageRequest, ws_id: str, doc_id: str) -> HttpResponse:
    document_row = _document(request, ws_id, doc_id, Role.EDITOR)
    documents.delete(document_row, by=request.user, now=timezone.now())
    undo_url = reverse("workspaces:restore_document", args=[ws_id, doc_id])
    notices.success(request, _("“%(name)s” is deleted.") % {"name": document_row.title}, extra_tags=undo_url)
    return redirect("workspaces:documents", ws_id)


@require_POST
def restore(request: PageRequest, ws_id: str, doc_id: str) -> HttpResponse:
    document_row = _document(request, ws_id, doc_id, Role.EDITOR, or_deleted=True)
    documents.restore(document_row, by=request.user, now=timezone.now())
    return reload_or_redirect(request, "workspaces:documents", ws_id)


@require_POST
def retry(request: PageRequest, ws_id: str, doc_id: str) -> HttpResponse:
    document_row = _document(request, ws_id, doc_id, Role.EDITOR)
    documents.retry_reading(document_row, by=request.user, now=timezone.now())
    return redirect("workspaces:documents", ws_id)
