"""Read-only admin of the system's records: extractions, receipts and the queue.

Schedules and jobs cannot be added here, because a job can call any function of the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import django_q.admin  # noqa: F401  registers its own pages, which ours replace
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django_q.models import Failure, OrmQ, Schedule, Success
from django_q.tasks import async_task

from memories.admin.filters import may_read_personal
from memories.models import Extraction, Receipt, ReceiptItem
from memories.models.extraction import ExtractionStatus
from memories.writing import extracting
from workspaces.admin.base import ReadOnlyAdmin, ReadOnlyInline, action, counted
from workspaces.admin.filters import ChoiceFilter, WorkspaceFilter


class StatusFilter(ChoiceFilter):
    parameter_name = "status"
    offered = [("", "All"), *ExtractionStatus.choices]


class DegradedFilter(ChoiceFilter):
    parameter_name = "recall"
    offered = [("", "All"), ("degraded", "Fell back to words")]
    rules = {"degraded": ~Q(degraded="")}


@admin.register(Extraction)
class ExtractionAdmin(ReadOnlyAdmin):
    many = "extractions"
    list_display = (
        "message_id",
        "workspace",
        "user",
        "source_type",
        "status",
        "attempts",
        "outcome",
        "created_at",
    )
    list_select_related = ("workspace", "user")
    list_filter = (WorkspaceFilter, StatusFilter)
    ids = {"msg": "message_id", "chat": "chat_id"}
    search_help_text = "The id of a message (msg_) or chat (chat_)."
    actions = ("retry",)

    @admin.display(description="outcome")
    def outcome(self, extraction: Extraction) -> str:
        if extraction.status != ExtractionStatus.DONE:
            return extraction.error or "-"
        counts = {
            "stored": extraction.stored_count,
            "known already": extraction.duplicate_count,
            "refused": extraction.refused_count,
        }
        parts = [f"{count} {name}" for name, count in counts.items() if count]
        return ", ".join(parts) or "nothing to remember"

    @action(
        "Retry the failed ones",
        "change",
        asks="Each begins anew in the background, with all its attempts. What is found twice is stored once.",
    )
    def retry(self, request: HttpRequest, rows: QuerySet[Extraction]) -> Iterator[tuple[str, int]]:
        failed = list(rows.filter(status=ExtractionStatus.FAILED))
        others = rows.count() - len(failed)
        for extraction in failed:
            extracting.retry(extraction, now=timezone.now())
        sentence = f"{counted(len(failed), 'extraction', 'extractions')} queued again"
        rest = f", {counted(others, 'had', 'had')} not failed" if others else ""
        yield f"{sentence}{rest}.", messages.SUCCESS


class ReceiptItemInline(ReadOnlyInline):
    model = ReceiptItem
    fields = (
        "position",
        "content",
        "score",
        "score_parts",
        "strength",
        "used",
        "in_profile",
        "reason",
        "not_relevant",
    )
    readonly_fields = fields
    verbose_name_plural = "what was recalled, best first"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Hide positions from staff who may not read personal memories, because a gap would reveal such a memory."""
        return self.fields if may_read_personal(request.user) else self.fields[1:]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        return rows if may_read_personal(request.user) else rows.filter(memory__owner=None)


@admin.register(Receipt)
class ReceiptAdmin(ReadOnlyAdmin):
    many = "receipts"
    list_display = ("message_id", "workspace", "user", "ranking", "fell_back", "imported", "created_at")
    list_select_related = ("workspace", "user")
    list_filter = (WorkspaceFilter, DegradedFilter)
    ids = {"msg": "message_id"}
    search_help_text = "The id of a message (msg_)."
    inlines = (ReceiptItemInline,)

    @admin.display(description="fell back to words", boolean=True)
    def fell_back(self, receipt: Receipt) -> bool:
        return bool(receipt.degraded)


class JobAdmin(ReadOnlyAdmin):
    many = "jobs"
    ordering = ()  # the default order of the queue
    search_fields: ClassVar[tuple[str, ...]] = ("name", "func")


class SuccessAdmin(JobAdmin):
    list_display = ("name", "func", "started", "stopped", "time_taken")


class FailureAdmin(JobAdmin):
    list_display = ("name", "func", "started", "stopped", "reason")
    actions = ("run_again",)

    @admin.display(description="reason")
    def reason(self, failure: Failure) -> str:
        return str(failure.result or "").split("\n", 1)[0][:200]

    @action(
        "Run again",
        "change",
        asks="Each is queued once more, and leaves the list of failed ones. Jobs may run twice without harm.",
    )
    def run_again(self, request: HttpRequest, rows: QuerySet[Failure]) -> Iterator[tuple[str, int]]:
        failed = list(rows)
        for failure in failed:
            async_task(failure.func, *(failure.args or ()), task_name=failure.name, **(failure.kwargs or {}))
            failure.delete()
        yield f"{counted(len(failed), 'job', 'jobs')} queued again.", messages.SUCCESS


class ScheduleAdmin(JobAdmin):
    list_display = ("name", "func", "schedule_type", "minutes", "next_run")


class QueuedAdmin(JobAdmin):
    list_display = ("id", "name", "func", "lock")
    fields = ("key", "lock", "task_id", "name", "func", "args", "kwargs")
    readonly_fields = fields
    search_fields = ()


PAGES: dict[Any, type[JobAdmin]] = {
    Success: SuccessAdmin,
    Failure: FailureAdmin,
    Schedule: ScheduleAdmin,
    OrmQ: QueuedAdmin,
}
admin.site.unregister(PAGES)
for model, page in PAGES.items():
    admin.site.register(model, page)
