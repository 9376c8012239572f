"""The Recall test tab of the Memory page."""

from django.contrib import messages as notices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memories.access import get_memory
from memories.models.recall import QUESTION_LENGTH
from memories.recalling import recall_tests
from memories.recalling.recall_tests import MOST_EXPECTED
from memories.views.panel_context import workspace_context
from memoryhub.errors import DomainError
from workspaces.models import Role
from workspaces.views import PageRequest

RUN_SECONDS = 10.0  # of one request; the remaining questions run in the background


@require_http_methods(["GET", "POST"])
def recall_test_page(request: PageRequest, ws_id: str) -> HttpResponse:
    """Show the recall questions, first those that miss an expected memory. On POST, save a new question."""
    need = Role.EDITOR if request.method == "POST" else Role.VIEWER
    workspace, context = workspace_context(request, ws_id, need)
    error = ""
    if request.method == "POST":
        try:
            chosen = request.POST.getlist("memories")[: MOST_EXPECTED + 1]
            memories = [get_memory(request.user, each, workspace=workspace) for each in chosen]
            text = request.POST.get("text", "")
            recall_tests.save_question(workspace, text, memories, by=request.user, now=timezone.now())
        except DomainError as refused:
            error = " ".join(refused.fields.values()) or refused.message
        else:
            return redirect("memories:recall_test", workspace.public_id)
    questions = list(recall_tests.questions_of(workspace, request.user))
    state = recall_tests.state_of(workspace) if questions else ""
    for question in questions:
        question.misses = recall_tests.misses(question)  # type: ignore[attr-defined]
    context |= {
        "missed": [question for question in questions if question.misses],  # type: ignore[attr-defined]
        "found": [question for question in questions if not question.misses],  # type: ignore[attr-defined]
        "total": len(questions),
        "rates": recall_tests.rates(questions),
        "changed": any(question.ran_with != state for question in questions),
        "error": error,
        "text": request.POST.get("text", ""),
        "longest": QUESTION_LENGTH,
    }
    return render(request, "memories/recall_test/page.html", context, status=422 if error else 200)


@require_GET
def offered(request: PageRequest, ws_id: str) -> HttpResponse:
    """Return an HTML fragment with memories to choose as the expected ones of a new question."""
    workspace, context = workspace_context(request, ws_id, Role.EDITOR)
    text, words = request.GET.get("text", "").strip(), request.GET.get("words", "")
    memories = []
    if text or words.strip():
        memories = recall_tests.offered(workspace, request.user, text, words, now=timezone.now())
    context |= {"memories": memories, "chosen": request.GET.getlist("memories"), "asked": bool(text or words)}
    return render(request, "memories/recall_test/offered.html", context)


@require_POST
def run(request: PageRequest, ws_id: str) -> HttpResponse:
    workspace, _context = workspace_context(request, ws_id, Role.EDITOR)
    questions = recall_tests.questions_of(workspace, request.user).order_by("ran_at")
    count = recall_tests.run(questions, now=timezone.now(), seconds=RUN_SECONDS)
    message = ngettext("%(number)s question asked.", "%(number)s questions asked.", count)
    notices.success(request, message % {"number": count})
    return redirect("memories:recall_test", workspace.public_id)


@require_POST
def remove(request: PageRequest, ws_id: str, ask_id: str) -> HttpResponse:
    workspace, _context = workspace_context(request, ws_id, Role.EDITOR)
    recall_tests.get_question(request.user, ask_id, workspace=workspace, need=Role.EDITOR).delete()
    notices.success(request, _("The question is removed. Its memories stay."))
    return redirect("memories:recall_test", workspace.public_id)
