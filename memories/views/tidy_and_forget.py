"""Pages for tidying up, for forgetting memories permanently, and for clearing a scope."""

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memories import tidy
from memories.access import get_memory
from memories.forgetting import clear
from memories.forgetting.for_good import forget_memories, forget_noted, get_noted, keep_noted, require_right
from memories.models import Memory
from memories.tidy import LISTS, SHOWN, pairs_in, without_vector
from memories.views.panel_context import changed_notice, workspace_context
from memories.writing import gate, review, vector_backfill
from workspaces.access import get_workspace
from workspaces.accounts.reauthentication import ask_for_password
from workspaces.models import Agent, Role, Workspace
from workspaces.views import PageRequest

PAIRS = ("duplicates", "contradictions")


def _memory(request: PageRequest, workspace: Workspace, name: str = "memory") -> Memory:
    return get_memory(request.user, request.POST.get(name, ""), workspace=workspace, need=Role.EDITOR)


@require_GET
def page(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show a list of memories to review and the number in each. ``part=list`` and ``part=tabs`` return only these."""
    workspace, context = workspace_context(request, ws_id)
    now = timezone.now()
    pairs = pairs_in(workspace, request.user, now)
    lists = {name: rows(workspace, request.user, now) for name, rows in LISTS.items()}
    numbers = {"duplicates": len(pairs.duplicates), "contradictions": len(pairs.contradictions)}
    numbers |= {name: rows[: SHOWN + 1].count() for name, rows in lists.items()}
    show = request.GET.get("show", "")
    if show not in numbers:
        show = next((name for name, number in numbers.items() if number and name != "waiting"), PAIRS[0])
    undecided = sum(number for name, number in numbers.items() if name != "waiting")
    part = request.GET.get("part", "")
    context |= {
        "numbers": numbers,
        "undecided": undecided if undecided <= SHOWN else f"{SHOWN}+",
        "most": SHOWN,
        "show": show,
        "partly": pairs.partly,
        "pairs": getattr(pairs, show)[:SHOWN] if show in PAIRS else [],
        "memories": list(lists[show].select_related("author", "edited_by", "imported_by")[:SHOWN])
        if show in lists and part != "tabs"
        else [],
    }
    templates = {"list": "memories/tidy/region.html", "tabs": "memories/tidy/tabs.html"}
    template = templates.get(part, "memories/tidy/page.html")
    return render(request, template, context | {"tab": request.GET.get("tab", "")})


@require_POST
def forget(request: PageRequest, ws_id: str) -> HttpResponse:
    """Delete a memory and show Undo. If ``into`` names another memory, merge it into that one."""
    workspace, now = get_workspace(request.user, ws_id, need=Role.EDITOR), timezone.now()
    memory = _memory(request, workspace)
    if request.POST.get("into"):
        tidy.merge(memory, into=_memory(request, workspace, "into"), by=request.user, now=now)
        text = _("Merged. The older wording is in the history of the memory that stays.")
    else:
        gate.delete_memory(memory, by=request.user, now=now)
        text = _("Forgotten.")
    undo_url = reverse("memories:restore", args=[workspace.public_id, memory.public_id])
    return changed_notice(request, workspace, text, undo_url)


@require_POST
def replace(request: PageRequest, ws_id: str) -> HttpResponse:
    """Mark the older of two memories as replaced by the newer. The older one stays for questions about the past."""
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    older, newer = _memory(request, workspace), _memory(request, workspace, "into")
    gate.edit_memory(older, by=request.user, now=timezone.now(), replaced_by=newer)
    undo_url = reverse("memories:tidy_undo_replace", args=[workspace.public_id, older.public_id])
    return changed_notice(
        request, workspace, _("Replaced. The older one is kept for questions about the past."), undo_url
    )


@require_POST
def undo_replace(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    older = get_memory(request.user, mem_id, workspace=workspace, need=Role.EDITOR)
    gate.edit_memory(older, by=request.user, now=timezone.now(), replaced_by=None)
    return changed_notice(request, workspace, _("It is listed again."))


@require_POST
def keep(request: PageRequest, ws_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    beside = _memory(request, workspace, "beside") if request.POST.get("beside") else None
    memory = _memory(request, workspace)
    record = tidy.record_as_kept(memory, beside=beside, by=request.user, now=timezone.now())
    undo_url = reverse("memories:tidy_undo_keep", args=[workspace.public_id, record.pk])
    return changed_notice(request, workspace, _("Both kept.") if beside else _("Memory kept."), undo_url)


@require_POST
def undo_keep(request: PageRequest, ws_id: str, kept_id: int) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    record = tidy.get_kept(request.user, kept_id, workspace=workspace)
    tidy.take_back(record)
    return changed_notice(request, workspace, _("It is listed again."))


@require_POST
def index(request: PageRequest, ws_id: str) -> HttpResponse:
    """Queue a job that embeds the memories without a vector."""
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    vector_backfill.reembed(without_vector(workspace, request.user, timezone.now()))
    return changed_notice(request, workspace, _("They are being indexed in the background."))


@require_POST
def approve(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    """Approve a proposal. With ``replacing``, also end the older memory that it may replace."""
    proposal, replacing = _proposal(request, ws_id, mem_id), request.POST.get("replacing") == "on"
    saved = review.approve(proposal, by=request.user, now=timezone.now(), replacing=replacing)
    outcome = "replaced" if replacing and saved.memory.replaced else "approved"
    return _decided(request, saved.memory, "known" if saved.duplicate else outcome)


@require_POST
def reject(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    memory = review.reject(_proposal(request, ws_id, mem_id), by=request.user, now=timezone.now())
    return _decided(request, memory, "rejected")


@require_POST
def reconsider(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    """Undo the approval or rejection of a proposal."""
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    memory = get_memory(request.user, mem_id, workspace=workspace, need=Role.EDITOR, include_deleted=True)
    return _decided(request, review.reconsider(memory, by=request.user, now=timezone.now()), "waiting")


def _proposal(request: PageRequest, ws_id: str, mem_id: str) -> Memory:
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    return review.get_proposal(request.user, mem_id, workspace=workspace)


def _decided(request: PageRequest, memory: Memory, outcome: str) -> HttpResponse:
    context = {"workspace": memory.workspace, "memory": memory, "outcome": outcome}
    response = render(request, "memories/decided_toast.html", context)
    response["HX-Trigger"] = "memories:changed"
    return response


@require_http_methods(["GET", "POST"])
def forget_memory(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    """Ask for confirmation on GET; permanently forget the memory on POST. It may be deleted already."""
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    memory = get_memory(request.user, mem_id, workspace=workspace, need=Role.EDITOR, include_deleted=True)
    require_right(memory, request.user)
    ask_for_password(request)
    back = reverse("memories:all", args=[workspace.public_id])
    back += "?forgotten=on" if memory.deleted_at else ""
    context = {"workspace": workspace, "memory": memory, "back": back}
    if request.method == "GET":
        return render(request, "memories/forget.html", context)
    report = forget_memories([memory], by=request.user, now=timezone.now())
    removed = _("It is no longer in the database.")
    message = removed if report.removed["memories"] else _("It was gone already.")
    return render(request, "forgetting/done.html", context | {"report": report, "said": message})


Asked = tuple[Workspace, str, Agent | None]


def _requested_scope(request: PageRequest, ws_id: str) -> Asked:
    """Return the scope named in the query string. Raises the errors of ``clear.scope_of``."""
    scope, agent_id = request.GET.get("scope", ""), request.GET.get("agent") or None
    workspace, agent = clear.scope_of(request.user, ws_id, scope, agent_id)
    return workspace, scope, agent


def _begin(request: PageRequest, selection: Asked, *, for_good: bool) -> HttpResponse:
    workspace, scope, agent = selection
    clear.begin(workspace, scope, agent, by=request.user, for_good=for_good, now=timezone.now())
    return redirect("memories:clear", workspace.public_id)


@require_http_methods(["GET", "POST"])
def clear_page(request: PageRequest, ws_id: str) -> HttpResponse:
    """List the scopes that can be cleared (with ``part=list`` only the list). On POST, begin a soft clearing of one."""
    if request.method == "POST":
        return _begin(request, _requested_scope(request, ws_id), for_good=False)
    workspace = get_workspace(request.user, ws_id)
    scopes = clear.clearable_by(request.user, workspace)
    at_work = any(each.last and each.last.is_at_work for each in scopes)
    part = request.GET.get("part") == "list"
    context = {"workspace": workspace, "scopes": scopes, "at_work": at_work}
    return render(request, "memories/clear/list.html" if part else "memories/clear/page.html", context)


@require_http_methods(["GET", "POST"])
def for_good(request: PageRequest, ws_id: str) -> HttpResponse:
    """Ask for confirmation on GET; begin the permanent clearing of a scope on POST. Both require the password."""
    selection = _requested_scope(request, ws_id)
    ask_for_password(request)
    if request.method == "POST":
        return _begin(request, selection, for_good=True)
    workspace, scope, agent = selection
    _live, whole = clear.count_in(workspace, scope, agent, by=request.user)
    back = reverse("memories:clear", args=[workspace.public_id])
    context = {"workspace": workspace, "scope": scope, "agent": agent, "count": whole, "back": back}
    return render(request, "memories/clear/for_good.html", context)


@require_POST
def undo(request: PageRequest, ws_id: str, clearing_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id)
    clear.undo(clear.get_clearing(request.user, workspace, clearing_id), by=request.user)
    return redirect("memories:clear", workspace.public_id)


@require_POST
def forget_copies(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    """Permanently remove the noted copies in a memory, after asking for the password, and show the counts."""
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    memory = get_noted(request.user, mem_id, workspace=workspace)
    ask_for_password(request)
    report = forget_noted(memory, by=request.user, now=timezone.now())
    message = _("The copies are no longer in the database.")
    context = {"workspace": workspace, "report": report, "said": message}
    return render(request, "forgetting/done.html", context)


@require_POST
def keep_copies(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    workspace = get_workspace(request.user, ws_id, need=Role.EDITOR)
    memory = get_noted(request.user, mem_id, workspace=workspace)
    keep_noted(memory)
    return _decided(request, memory, "kept")
