"""The queue's pages, to look at. What runs when is the program's to say: a schedule or a job typed in here could
call any function of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import django_q.admin  # noqa: F401  registers its own pages, which ours replace
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django_q.models import Failure, OrmQ, Schedule, Success
from django_q.tasks import async_task

from workspaces.admin_kit.base import ReadOnlyAdmin, action, counted


class JobAdmin(ReadOnlyAdmin):
    many = "jobs"
    ordering = ()  # the queue's own
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
