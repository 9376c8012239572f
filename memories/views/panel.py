"""The memory panel, its cards, the receipt under an answer, and the page of all memories with bulk actions."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memories.access import count_listed, get_memory, usage
from memories.forgetting.for_good import forget_memories, with_noted_copies
from memories.models import Memory, ReceiptItem, Scope
from memories.models.memory import CATEGORIES, SOURCE_LABELS, RevisionAction
from memories.recalling.recall import mark_not_relevant, receipt_for
from memories.views.panel_context import (
    PROPOSALS_SHOWN,
    AddForm,
    EditForm,
    PanelFilters,
    PanelPage,
    assistants,
    changed_notice,
    choices,
    for_cards,
    is_shared,
    on_cards,
    proposals,
    search_forgotten,
    search_panel,
    workspace_context,
)
from memories.writing import changing, gate, review
from memories.writing.changing import Stale, version_of
from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.access import get_workspace
from workspaces.models import Agent, Role, User, Workspace
from workspaces.views import PageRequest

# The template that shows a memory after an edit, a delete or an undo, by the place on the page.
PLACES = {
    "panel": "memories/cards.html",
    "receipt": "memories/receipt_memory.html",
    "page": "memories/page/memory.html",
    "run": "memories/receipt_memory.html",
    "message": "memories/message_slot.html",
}


def _workspace(
    request: PageRequest, ws_id: str, need: Role = Role.VIEWER
) -> tuple[Workspace, dict[str, Any]]:
    workspace, context = workspace_context(request, ws_id, need)
    can_propose = review.may_propose(workspace, workspace.role)
    return workspace, context | {"can_propose": can_propose, "now": timezone.now()}


def _memory(
    request: PageRequest, ws_id: str, mem_id: str, need: Role = Role.EDITOR, *, include_deleted: bool = False
) -> tuple[Memory, dict[str, Any]]:
    workspace, context = _workspace(request, ws_id, need)
    memory = get_memory(request.user, mem_id, workspace=workspace, need=need, include_deleted=include_deleted)
    return memory, context | {"memory": memory, "place": _place(request)}


def _place(request: PageRequest) -> str:
    wanted = request.GET.get("as") or request.POST.get("as", "")
    return wanted if wanted in PLACES else "panel"


def _show(
    request: PageRequest, memory: Memory, context: dict[str, Any], *, changed: bool = False
) -> HttpResponse:
    """Render a memory by the template for its place. With ``changed``, update the badge and other fragments, too."""
    workspace = context["workspace"]
    [shown] = on_cards([for_cards(Memory.objects.all()).get(pk=memory.pk)])
    context = context | {"memory": shown, "page": PanelPage([shown]), "is_shared": is_shared(workspace)}
    response = render(request, PLACES[_place(request)], context)
    return _changed(request, response, workspace) if changed else response


def _changed(request: PageRequest, response: HttpResponse, workspace: Workspace) -> HttpResponse:
    """Trigger the event on which fragments with memories reload. On chat pages of the workspace, update its badge."""
    page = urlsplit(request.htmx.current_url or "").path
    is_chat = not page or "/chats/" in page or page.endswith(f"/workspaces/{workspace.public_id}/")
    if is_chat and request.session.get("workspace", workspace.public_id) == workspace.public_id:
        count = count_listed(workspace, request.user, now=timezone.now())
        badge = {"workspace": workspace, "count": count, "oob": True}
        response.write(render(request, "memories/badge.html", badge).content.decode())
    response["HX-Trigger"] = "memories:changed"
    return response


def _with_partial(
    request: PageRequest, response: HttpResponse, name: str, context: dict[str, Any]
) -> HttpResponse:
    """Append a partial that htmx swaps out of band to the response."""
    response.write(render(request, f"partials/{name}.html", context).content.decode())
    return response


@require_GET
def panel(request: PageRequest, ws_id: str) -> HttpResponse:
    """Render the panel, with ``part=list`` only the part below its filters, with ``before`` only the next cards."""
    workspace, context = _workspace(request, ws_id)
    params = request.GET
    filters = PanelFilters(
        q=params.get("q", ""),
        category=params.get("category", ""),
        source=params.get("source", ""),
        pinned=params.get("pinned") == "on",
        review=params.get("review") == "on",
        whose=params.get("whose", ""),
    )
    before = params.get("before", "")
    page = search_panel(workspace, request.user, filters, before=before)
    context |= {"page": page, "filters": filters, "place": "panel", "is_shared": is_shared(workspace)}
    if before:
        return render(request, "memories/cards.html", context)
    context["usage"] = usage(workspace, request.user)
    if not filters:
        context["proposals"] = proposals(workspace, request.user)
        context["copies"] = with_noted_copies(workspace, request.user)[:PROPOSALS_SHOWN]
    if params.get("part") == "list":
        return render(request, "memories/region.html", context)
    return render(request, "memories/panel.html", context | _form_and_choices(workspace, request.user))


def _form_and_choices(workspace: Workspace, user: User) -> dict[str, Any]:
    """Return the form for a new memory, and the choices of the filters."""
    categories, sources = choices(workspace, user)
    agents = assistants(workspace)
    return {
        "agents": agents,
        "categories": categories,
        "sources": [(source, SOURCE_LABELS.get(source, source)) for source in sources],
        "usual_categories": CATEGORIES,
        "form": AddForm(agents=_in_use(agents)),
    }


@require_GET
def count(request: PageRequest, ws_id: str) -> HttpResponse:
    workspace, context = _workspace(request, ws_id)
    context |= {"count": count_listed(workspace, request.user, now=timezone.now())}
    return render(request, "memories/count.html", context)


@require_POST
def create(request: PageRequest, ws_id: str) -> HttpResponse:
    """Save a memory, or save it as a proposal if the user may only propose."""
    workspace, context = _workspace(request, ws_id)
    review.require_to_save(workspace)
    agents = _in_use(assistants(workspace))
    form = AddForm(request.POST, agents=agents)
    if form.is_valid():
        draft = gate.Draft(workspace=workspace, author=request.user, **form.draft_fields)
        try:
            saved = review.save_or_propose(draft, by=request.user, now=context["now"])
        except Invalid as error:
            form.add_domain_errors(error)
        else:
            context |= {"form": AddForm(agents=agents), "saved": saved}
            return _changed(request, render(request, "memories/add_form.html", context), workspace)
    return _refused(request, "memories/add_form.html", context | {"form": form})


def _in_use(agents: list[Agent]) -> list[Agent]:
    return [agent for agent in agents if not agent.is_archived]


def _refused(
    request: PageRequest, template: str, context: dict[str, Any], *, status: int = 422
) -> HttpResponse:
    """Render a form by which htmx replaces the sent one, instead of showing the response as a notice."""
    response = render(request, template, context, status=status)
    response["HX-Retarget"], response["HX-Reswap"] = "this", "outerHTML"
    return response


@require_GET
def card(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    memory, context = _memory(request, ws_id, mem_id, Role.VIEWER)
    return _show(request, memory, context)


@require_http_methods(["GET", "POST"])
def edit(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    """Show the form for a memory, or save it on POST.

    ``?item=`` is the key of the receipt item that contains the form, if any. A POST with ``?undo=`` undoes the edit
    that produced this version, unless the memory has changed since.
    """
    memory, context = _memory(request, ws_id, mem_id)
    item = request.GET.get("item", "")
    context["item"] = item if item.isdecimal() else ""
    if request.method == "GET":
        context["form"] = EditForm.of(memory, by=request.user)
        return render(request, "memories/edit_form.html", context)
    if "undo" in request.GET:
        before, seen = _before_edit(memory), {request.GET["undo"]}
        # Confirmed, since it was stored before.
        edited = gate.edit_memory(
            memory, by=request.user, now=context["now"], seen=seen, confirmed=True, **before
        )
        return _edited(request, edited, context, text=_("Changed back."))
    form = EditForm.of(memory, by=request.user, data=request.POST)
    if form.is_valid():
        try:
            who: dict[str, Any] = {"by": request.user, "now": context["now"]}
            edited = gate.edit_memory(memory, **who, seen=form.seen, confirmed=form.confirmed, **form.changes)
        except Invalid as error:
            form.add_domain_errors(error)
        except Stale as stale:
            context |= {"form": form.over(stale.memory, request.user), "newer": stale.memory}
            return _refused(request, "memories/edit_form.html", context, status=stale.status)
        else:
            if "whose" in form.fields and "whose" in form.changed_data:
                return _moved(request, edited, form, context)
            place, item = context["place"], context["item"]
            undo_url = f"{request.path}?as={place}&item={item}&undo={version_of(edited)}"
            return _edited(request, edited, context, text=_("Saved."), undo_url=undo_url)
    return _refused(request, "memories/edit_form.html", context | {"form": form})


def _before_edit(memory: Memory) -> dict[str, Any]:
    """Return the form fields that the last edit changed, with their previous values."""
    last = memory.revisions.filter(action=RevisionAction.EDIT).first()
    if last is None:
        raise Conflict(_("There is no edit to take back."))
    before = last.before
    fields = {name: before[name] for name in ("content", "category") if name in before}
    days = {name: before[name] for name in ("valid_from", "valid_to") if name in before}
    return fields | {name: at and datetime.fromisoformat(at) for name, at in days.items()}


def _edited(
    request: PageRequest, memory: Memory, context: dict[str, Any], *, text: str, undo_url: str = ""
) -> HttpResponse:
    """Render an edited memory, in a receipt its whole item, there and on the page of all memories with a notice."""
    if context["place"] not in ("receipt", "page"):
        return _show(request, memory, context, changed=True)
    items = ReceiptItem.objects.filter(memory=memory).select_related("receipt")
    item = items.filter(pk=context["item"]).first() if context["item"] else None
    answer_receipt = receipt_for(item.receipt.message_id, request.user) if item else None
    if answer_receipt is None or item is None:
        response = _show(request, memory, context, changed=True)
    else:
        shown = next((each for each in answer_receipt.shown if each.pk == item.pk), item)
        context |= {"item": shown, "is_own": answer_receipt.user_id == request.user.pk}
        response = render(request, "memories/receipt_item.html", context)
        response = _changed(request, response, context["workspace"])
        response["HX-Retarget"], response["HX-Reswap"] = f"#receipt-item-{item.pk}", "outerHTML"
    notice = {"text": text, "undo_url": undo_url, "memory": True, "about": memory.public_id}
    return _with_partial(request, response, "toast_oob", notice)


def _moved(request: PageRequest, memory: Memory, form: EditForm, context: dict[str, Any]) -> HttpResponse:
    """Change who may see an edited memory, as chosen in the form, and render it with a notice."""
    chosen = form.cleaned_data["whose"]
    to = None if chosen == Scope.USER else get_workspace(request.user, chosen, need=Role.EDITOR)
    try:
        moved = gate.move_memory(memory, workspace=to, by=request.user, now=context["now"]).memory
    except Conflict as error:
        form = form.over(memory, request.user)
        form.add_error("whose", error.message)
        return _refused(request, "memories/edit_form.html", context | {"form": form})
    response = _show(request, moved, context, changed=True)
    if to is None:  # not even among the forgotten ones
        forget_memories([memory], by=request.user, now=context["now"])
        text = _("Other members no longer see this memory.")
    else:
        text = _("Everyone in %(name)s sees this memory now.") % {"name": to.name}
    return _with_partial(request, response, "toast_oob", {"text": text, "memory": True})


@require_POST
def delete(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    """Delete a memory and show “Forgotten. Undo”, or below a chat message the button Remember."""
    memory, context = _memory(request, ws_id, mem_id)
    context |= {"memory": gate.delete_memory(memory, by=request.user, now=context["now"])}
    template = PLACES["message"] if context["place"] == "message" else "memories/forgotten.html"
    return _changed(request, render(request, template, context), context["workspace"])


@require_POST
def restore(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    memory, context = _memory(request, ws_id, mem_id, include_deleted=True)
    restored = changing.restore_memory(memory, by=request.user, now=context["now"])
    response = _show(request, restored, context, changed=True)
    text = ""
    if memory.key != restored.key:
        text = _("Restored without its key “{key}”, which another memory has by now.").format(key=memory.key)
    elif "listed" in request.GET:  # from the list of forgotten memories, which it leaves
        text = _("Restored.")
    notice = {"text": text, "about": restored.public_id}
    return _with_partial(request, response, "toast_oob", notice) if text else response


@require_POST
def pin(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    memory, context = _memory(request, ws_id, mem_id)
    pinned = request.POST.get("pinned") == "on"
    edited = gate.edit_memory(memory, by=request.user, now=context["now"], pinned=pinned)
    response = _show(request, edited, context)
    text = _("Pinned.") if pinned else _("Unpinned.")
    return _with_partial(request, response, "announce_oob", {"text": text})


@require_POST
def replace(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    """Replace the older memory. ``keep=older`` undoes the replacement; ``keep=both`` records that both are valid."""
    memory, context = _memory(request, ws_id, mem_id)
    ways = {"both": changing.keep_both, "older": changing.hold_again}
    act = ways.get(request.POST.get("keep", ""), changing.replace_older)
    decided = act(memory, by=request.user, now=context["now"])
    return _show(request, decided, context, changed=act is not changing.keep_both)


@require_GET
def history(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    memory, context = _memory(request, ws_id, mem_id, Role.VIEWER)
    revisions = memory.revisions.select_related("by")[:50]
    return render(request, "memories/history.html", context | {"revisions": revisions})


@require_GET
def receipt(request: PageRequest, msg_id: str) -> HttpResponse:
    """Show the memories that were recalled for an answer: those used, then those left out."""
    answer_receipt = receipt_for(msg_id, request.user)
    if answer_receipt is None:
        raise NotFound(_("No memories are noted for this answer."))
    _found, context = _workspace(request, answer_receipt.workspace.public_id)
    items = answer_receipt.shown
    context |= {
        "receipt": answer_receipt,
        "used": [item for item in items if item.used and not item.in_profile],
        "profile": [item for item in items if item.in_profile],
        "left_out": [item for item in items if not item.used],
        "is_own": answer_receipt.user_id == request.user.pk,
        "place": "receipt",
    }
    return render(request, "memories/receipt.html", context)


@require_POST
def not_relevant(request: PageRequest, item_id: int) -> HttpResponse:
    value = request.POST.get("value", "on") == "on"
    item = mark_not_relevant(item_id, request.user, value=value)
    return render(request, "memories/not_relevant.html", {"item": item})


PAGE_SIZE = 50
MOST_AT_ONCE = 100
WHOSE = ("", "user", "workspace", "agent")  # all, personal, shared, those of assistants


@require_GET
def page(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the table of all memories. With ``part=list``, return only its rows and the link to the next ones."""
    workspace, context = _workspace(request, ws_id)
    params = request.GET
    filters = PanelFilters(
        q=params.get("q", "").strip()[:400],
        category=params.get("category", ""),
        source=params.get("source", ""),
        pinned=params.get("pinned") == "on",
        whose=params.get("whose", "") if params.get("whose") in WHOSE else "",
        forgotten=params.get("forgotten") == "on",
    )
    search = search_forgotten if filters.forgotten else search_panel
    context |= {
        "is_shared": is_shared(workspace),
        "page": search(workspace, request.user, filters, before=params.get("before", ""), size=PAGE_SIZE),
        "filters": filters,
        "is_first": not params.get("before"),
    }
    if params.get("part") == "list":
        return render(request, "memories/page/rows.html", context)
    return render(request, "memories/page/page.html", context | _form_and_choices(workspace, request.user))


@require_POST
def change(request: PageRequest, ws_id: str) -> HttpResponse:
    """Apply the action ``act`` to the given memories, at most MOST_AT_ONCE, that were not changed or deleted since.

    The parameters are in the form, or in the query string if the request is an Undo.
    """
    workspace = get_workspace(request.user, ws_id)
    params = request.POST if "act" in request.POST else request.GET
    act, ids = params.get("act", ""), list(dict.fromkeys(params.getlist("memory")))[:MOST_AT_ONCE]
    if act not in _CHANGES:
        raise Invalid(fields={"act": _("Must be one of %s.") % ", ".join(_CHANGES)})
    done = []
    for public_id in ids:
        with suppress(NotFound, Conflict):  # changed or deleted by somebody else since
            memory = get_memory(request.user, public_id, need=Role.EDITOR, include_deleted=act == "restore")
            _CHANGES[act](memory, params.get("category", "").strip() or None, request.user, timezone.now())
            done.append(public_id)
    count = {"count": len(done)}
    text = ngettext("%(count)s memory changed.", "%(count)s memories changed.", len(done)) % count
    undo_url = ""
    if act == "forget":
        text = ngettext("%(count)s memory forgotten.", "%(count)s memories forgotten.", len(done)) % count
        query = urlencode({"act": "restore", "memory": done}, doseq=True)
        undo_url = f"{request.path}?{query}" if done else ""
    elif act == "restore":
        text = ngettext("%(count)s memory restored.", "%(count)s memories restored.", len(done)) % count
    return changed_notice(request, workspace, text, undo_url)


_CHANGES: dict[str, Callable[[Memory, str | None, User, datetime], Memory]] = {
    "pin": lambda memory, category, by, now: gate.edit_memory(memory, by=by, now=now, pinned=True),
    "unpin": lambda memory, category, by, now: gate.edit_memory(memory, by=by, now=now, pinned=False),
    "category": lambda memory, category, by, now: gate.edit_memory(memory, by=by, now=now, category=category),
    "forget": lambda memory, category, by, now: gate.delete_memory(memory, by=by, now=now),
    "restore": lambda memory, category, by, now: changing.restore_memory(memory, by=by, now=now),
}
