"""Deciding about proposals in the memory panel: one click each. The panel redraws itself afterwards."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST

from memories.access import get_memory
from memories.models import Memory
from memories.writing import review
from workspaces.access import get_workspace
from workspaces.models import Role
from workspaces.views import PageRequest


@require_POST
def approve(request: PageRequest, ws_id: str, mem_id: str) -> HttpResponse:
    """With ``replacing`` the older memory that the proposal shows no longer holds."""
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
    """The Undo of either decision."""
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
