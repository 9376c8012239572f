"""The admin's first page: what waits, what failed, what grows, for everything or for one workspace.

A part is shown to who may look at the list behind it. What can be done from here are the actions of those lists,
which ask first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django_q.models import Failure

from memories.admin import activity
from memories.admin.choosing import chosen_workspace, may_choose, picker
from memories.admin.overview import model_use, overview
from memories.admin.private import readable
from memories.admin.side_by_side import possible_updates, with_older
from memories.models import Extraction, Memory, Review
from memories.models.extraction import ExtractionStatus
from memoryhub.database.queries import count_or_estimate

SHOWN = 5


@dataclass(frozen=True)
class Row:
    key: Any
    name: str
    at: datetime | None
    reason: str


@dataclass(frozen=True)
class Failed:
    """Work that failed, newest first, and the action of its list that tries again; empty for who may not."""

    title: str
    rows: list[Row]
    number: str
    url: str
    action: str


def dashboard(request: HttpRequest, now: datetime) -> dict[str, Any]:
    user: Any = request.user
    workspace = chosen_workspace(request)
    within = workspace.pk if workspace else None
    groups, rankings = model_use(user, now, within)
    shown: dict[str, Any] = {
        "workspace": workspace,
        "picker": picker(workspace) if may_choose(request) else "",
        "groups": [*overview(user, now, within), *groups],
        "rankings": rankings,
        "failed": [failed for failed in _failed(user, within) if failed.rows],
        "here": request.get_full_path(),
    }
    if user.has_perm("memories.view_memory"):
        shown["proposals"] = list(_proposals(user, within)[:SHOWN])
        shown["saved"] = activity.saved(now, within)
        shown["pairs"] = with_older(possible_updates(user, within)[:SHOWN])
        shown["may_forget"] = user.has_perm("memories.delete_memory")
        shown["may_change"] = user.has_perm("memories.change_memory")
    if user.has_perm("memories.view_refusal"):
        shown["refused"], shown["kinds"] = activity.refused(now, within)
    return shown


def _proposals(user: Any, workspace_id: int | None) -> QuerySet[Memory]:
    """What waits for review, the longest first."""
    rows = readable(Memory.objects.filter(review=Review.PENDING), user)
    rows = rows if workspace_id is None else rows.filter(workspace=workspace_id)
    rows = rows.select_related("workspace", "author", "edited_by").defer(
        "search", "source_excerpt", "source_details"
    )
    return rows.order_by("created_at", "pk")


def _failed(user: Any, workspace_id: int | None) -> Iterator[Failed]:
    if user.has_perm("memories.view_extraction"):
        rows: QuerySet[Any] = Extraction.objects.filter(status=ExtractionStatus.FAILED).order_by("-id")
        place = ""
        if workspace_id is not None:
            rows, place = rows.filter(workspace=workspace_id), f"&workspace={workspace_id}"
        newest = rows.select_related("workspace")[:SHOWN]
        shown = [Row(row.pk, row.workspace.name, row.finished_at, row.error) for row in newest]
        url = reverse("admin:memories_extraction_changelist") + f"?status=failed{place}"
        retry = "retry" if user.has_perm("memories.change_extraction") else ""
        yield Failed("Failed extractions", shown, _number(rows), url, retry)
    if workspace_id is None and user.has_perm("django_q.view_failure"):
        rows = Failure.objects.order_by("-stopped")
        shown = [
            Row(row.pk, row.name or row.func, row.stopped, str(row.result or "").split("\n", 1)[0][:200])
            for row in rows[:SHOWN]
        ]
        url = reverse("admin:django_q_failure_changelist")
        retry = "run_again" if user.has_perm("django_q.change_failure") else ""
        yield Failed("Failed jobs", shown, _number(rows), url, retry)


def _number(rows: QuerySet[Any]) -> str:
    number, estimate = count_or_estimate(rows)
    return f"about {number:,}" if estimate else f"{number:,}"
