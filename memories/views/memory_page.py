"""Page of all memories that a person may see in a workspace: a table with filters and bulk actions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from memories.access import get_memory
from memories.models import Memory
from memories.models.memory import CATEGORIES, SOURCE_LABELS
from memories.views.forms import AddForm
from memories.views.panel_context import PanelFilters, assistants, choices, is_shared, search_panel
from memories.writing import changing, gate
from memories.writing.review import may_propose
from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.access import get_workspace
from workspaces.models import Role, User
from workspaces.views import PageRequest

PAGE_SIZE = 50
MOST_AT_ONCE = 100
WHOSE = ("", "user", "workspace", "agent")  # all, personal, shared, those of assistants


@require_GET
def page(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the table; with ``part=list`` only its rows and the link to the next ones."""
    workspace, asked = get_workspace(request.user, ws_id), request.GET
    filters = PanelFilters(
        q=asked.get("q", "").strip()[:400],
        category=asked.get("category", ""),
        source=asked.get("source", ""),
        pinned=asked.get("pinned") == "on",
        whose=asked.get("whose", "") if asked.get("whose") in WHOSE else "",
    )
    found = search_panel(workspace, request.user, filters, before=asked.get("before", ""), size=PAGE_SIZE)
    context = {
        "workspace": workspace,
        "can_write": Role(workspace.role).allows(Role.EDITOR),
        "can_propose": may_propose(workspace, workspace.role),
        "is_shared": is_shared(workspace),
        "page": found,
        "filters": filters,
        "is_first": not asked.get("before"),
    }
    if asked.get("part") == "list":
        return render(request, "memories/page/rows.html", context)
    categories, sources = choices(workspace, request.user)
    context |= {
        "form": AddForm(agents=[each for each in assistants(workspace) if not each.is_archived]),
        "usual_categories": CATEGORIES,
        "categories": categories,
        "sources": [(source, SOURCE_LABELS.get(source, source)) for source in sources],
    }
    return render(request, "memories/page/page.html", context)


@require_POST
def change(request: PageRequest, ws_id: str) -> HttpResponse:
    """Apply one action to the named memories, at most MOST_AT_ONCE, and skip those that the user may not change.

    The parameters are in the form, or in the query string of an Undo.
    """
    workspace, asked = (
        get_workspace(request.user, ws_id),
        request.POST if "act" in request.POST else request.GET,
    )
    act, ids = asked.get("act", ""), list(dict.fromkeys(asked.getlist("memory")))[:MOST_AT_ONCE]
    if act not in _CHANGES:
        raise Invalid(fields={"act": _("Must be one of %s.") % ", ".join(_CHANGES)})
    done = []
    for public_id in ids:
        with suppress(NotFound, Conflict):  # changed or deleted by somebody else since
            found = get_memory(request.user, public_id, need=Role.EDITOR, include_deleted=act == "restore")
            _CHANGES[act](found, asked.get("category", "").strip() or None, request.user)
            done.append(public_id)
    text = ngettext("%d memory changed.", "%d memories changed.", len(done)) % len(done)
    undo_url = ""
    if act == "forget":
        text = ngettext("%d memory forgotten.", "%d memories forgotten.", len(done)) % len(done)
        query = urlencode({"act": "restore", "memory": done}, doseq=True)
        undo_url = f"{request.path}?{query}" if done else ""
    context = {"workspace": workspace, "text": text, "undo_url": undo_url, "memory": True}
    response = render(request, "partials/toast_oob.html", context)
    response["HX-Trigger"] = "memories:changed"
    return response


def _forget(memory: Memory, _category: str | None, by: User) -> None:
    gate.delete_memory(memory, by=by, now=timezone.now())


def _restore(memory: Memory, _category: str | None, by: User) -> None:
    changing.restore_memory(memory, by=by, now=timezone.now())


def _categorise(memory: Memory, category: str | None, by: User) -> None:
    gate.edit_memory(memory, by=by, now=timezone.now(), category=category)


def _pin(memory: Memory, _category: str | None, by: User) -> None:
    gate.edit_memory(memory, by=by, now=timezone.now(), pinned=True)


def _unpin(memory: Memory, _category: str | None, by: User) -> None:
    gate.edit_memory(memory, by=by, now=timezone.now(), pinned=False)


_CHANGES: dict[str, Callable[[Memory, str | None, User], None]] = {
    "pin": _pin,
    "unpin": _unpin,
    "category": _categorise,
    "forget": _forget,
    "restore": _restore,
}
