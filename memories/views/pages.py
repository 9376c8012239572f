"""The profile tab and the recall test tab of the Memory page."""

from typing import Any

from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memories.access import get_memory
from memories.models import Scope
from memories.models.recall import QUESTION_LENGTH
from memories.recalling import recall_questions
from memories.recalling.overview import hidden_lines, hide_line, profile_of
from memories.recalling.recall_questions import MOST_EXPECTED
from memories.views.panel_context import MemoryForm, is_shared
from memories.writing import gate
from memoryhub.errors import DomainError, Invalid
from workspaces.access import get_workspace
from workspaces.actions.workspaces import set_profile_in_chats
from workspaces.data_policy import Reach
from workspaces.models import Role, Workspace
from workspaces.views import PageRequest


@require_http_methods(["GET", "POST"])
def page(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the user's profile in this workspace, or on POST add a personal memory to it.

    ``part=lines`` returns only the list of memories. The new memory is pinned so that it stays in the profile.
    """
    workspace, now = get_workspace(request.user, ws_id), timezone.now()
    form = MemoryForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        draft = gate.Draft(
            content=form.cleaned_data["content"],
            category=form.cleaned_data["category"] or None,
            workspace=workspace,
            author=request.user,
            scope=Scope.USER,
            pinned=True,
            confirmed=form.confirmed,
        )
        try:
            gate.save_memory(draft, by=request.user, now=now)
        except Invalid as error:
            form.add_domain_errors(error)
        else:
            notices.success(request, _("Added to your profile. Other members do not see it."))
            return redirect("memories:profile", ws_id)
    profile = profile_of(workspace, request.user, reach=Reach.here(workspace), now=now)
    context = {
        "workspace": workspace,
        "can_write": Role(workspace.role).allows(Role.EDITOR),
        "is_shared": is_shared(workspace),
        "memories": [*profile.you, *profile.here],
        "sections": [
            ("about-you", _("About you"), profile.you),
            ("about-workspace", _("About this workspace"), profile.here),
        ],
        "hidden": hidden_lines(workspace, request.user, now),
        "form": form,
    }
    part = "lines" if request.GET.get("part") == "lines" else "page"
    status = 422 if form.errors or form.asks else 200
    return render(request, f"memories/profile/{part}.html", context, status=status)


@require_POST
def hide(request: PageRequest, ws_id: str) -> HttpResponse:
    """Hide a memory from the user's profile. With ``hidden=off``, which Undo sends, show it again."""
    asked = request.GET if "memory" in request.GET else request.POST
    workspace = get_workspace(request.user, ws_id)
    hidden = asked.get("hidden") != "off"
    memory = hide_line(asked.get("memory", ""), workspace, request.user, hidden=hidden)
    undo = f"{reverse('memories:profile_hide', args=[ws_id])}?memory={memory.public_id}&hidden=off"
    context = {
        "workspace": workspace,
        "text": _("Hidden from your profile. It is still remembered.") if hidden else _("It is shown again."),
        "undo_url": undo if hidden else "",
        "memory": True,
    }
    response = render(request, "partials/toast_oob.html", context)
    response["HX-Trigger"] = "memories:changed"
    return response


@require_POST
def use(request: PageRequest, ws_id: str) -> HttpResponse:
    """Set whether the user's chats use the profile."""
    get_workspace(request.user, ws_id)
    set_profile_in_chats(request.user, request.POST.get("profile") == "on")
    notices.success(request, _("Saved."))
    return redirect("memories:profile", ws_id)


RUN_SECONDS = 10.0  # of one request; the remaining questions run in the background


def _workspace(
    request: PageRequest, ws_id: str, need: Role = Role.VIEWER
) -> tuple[Workspace, dict[str, Any]]:
    found = get_workspace(request.user, ws_id, need=need)
    return found, {"workspace": found, "can_write": Role(found.role).allows(Role.EDITOR)}


@require_http_methods(["GET", "POST"])
def recall_test_page(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the recall questions, first those that miss an expected memory. On POST, save a new question."""
    workspace, context = _workspace(request, ws_id, Role.EDITOR if request.method == "POST" else Role.VIEWER)
    error = ""
    if request.method == "POST":
        try:
            chosen = request.POST.getlist("memories")[: MOST_EXPECTED + 1]
            memories = [get_memory(request.user, each, workspace=workspace) for each in chosen]
            text = request.POST.get("text", "")
            recall_questions.keep_question(workspace, text, memories, by=request.user, now=timezone.now())
        except DomainError as refused:
            error = " ".join(refused.fields.values()) or refused.message
        else:
            return redirect("memories:recall_test", workspace.public_id)
    questions = list(recall_questions.questions_of(workspace, request.user))
    state = recall_questions.state_of(workspace) if questions else ""
    for question in questions:
        question.misses = recall_questions.misses(question)  # type: ignore[attr-defined]
    missed = [question for question in questions if question.misses]  # type: ignore[attr-defined]
    found = [question for question in questions if not question.misses]  # type: ignore[attr-defined]
    context |= {
        "missed": missed,
        "found": found,
        "total": len(questions),
        "rates": recall_questions.rates(questions),
        "changed": any(question.ran_with != state for question in questions),
        "error": error,
        "text": request.POST.get("text", ""),
        "longest": QUESTION_LENGTH,
    }
    return render(request, "memories/recall_test/page.html", context, status=422 if error else 200)


@require_GET
def offered(request: PageRequest, ws_id: str) -> HttpResponse:
    """Return an HTML fragment with memories to choose as the expected ones of a new question."""
    workspace, context = _workspace(request, ws_id, Role.EDITOR)
    text, words = request.GET.get("text", "").strip(), request.GET.get("words", "")
    memories = []
    if text or words.strip():
        memories = recall_questions.offered(workspace, request.user, text, words, now=timezone.now())
    context |= {"memories": memories, "chosen": request.GET.getlist("memories"), "asked": bool(text or words)}
    return render(request, "memories/recall_test/offered.html", context)


@require_POST
def run(request: PageRequest, ws_id: str) -> HttpResponse:
    workspace, _context = _workspace(request, ws_id, Role.EDITOR)
    questions = recall_questions.questions_of(workspace, request.user).order_by("ran_at")
    asked = recall_questions.run(questions, now=timezone.now(), seconds=RUN_SECONDS)
    said = ngettext("%(number)s question asked.", "%(number)s questions asked.", asked)
    notices.success(request, said % {"number": asked})
    return redirect("memories:recall_test", workspace.public_id)


@require_POST
def remove(request: PageRequest, ws_id: str, ask_id: str) -> HttpResponse:
    workspace, _context = _workspace(request, ws_id, Role.EDITOR)
    recall_questions.get_question(request.user, ask_id, workspace=workspace, need=Role.EDITOR).delete()
    notices.success(request, _("The question is removed. Its memories stay."))
    return redirect("memories:recall_test", workspace.public_id)
