"""The admin of records about memories: extractions, receipts, refusals, jobs, clearings, nodes and files."""

from datetime import datetime
from typing import Any, ClassVar, cast

import django_q.admin  # noqa: F401  registers its own pages, which ours replace
from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django_q.models import Failure, OrmQ, Schedule, Success
from django_q.tasks import async_task

from memories.admin.memory import may_read_personal, readable
from memories.forgetting import clear
from memories.models import (
    Asset,
    Clearing,
    Extraction,
    MemoryNode,
    NodeRelation,
    Receipt,
    ReceiptItem,
    Refusal,
    Scope,
)
from memories.models.extraction import ExtractionStatus
from memories.topics import number_of
from memories.writing import extraction_jobs
from memoryhub.localization import file_size
from workspaces.accounts.reauthentication import ask_for_password
from workspaces.admin.base import Messages, ReadOnlyAdmin, ReadOnlyInline, action, counted
from workspaces.models import User


@admin.register(Extraction)
class ExtractionAdmin(ReadOnlyAdmin):
    # fmt: off
    list_display = (
        "message_id", "workspace", "user", "source_type", "status", "attempts", "outcome", "created_at",
    )
    # fmt: on
    list_select_related = ("workspace", "user")
    list_filter = ("status",)
    ids = {"msg": "message_id", "chat": "chat_id"}
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
    def retry(self, request: HttpRequest, rows: QuerySet[Extraction]) -> Messages:
        failed = rows.filter(status=ExtractionStatus.FAILED)

        def again(extraction: Extraction, *, by: User, now: datetime) -> None:
            extraction_jobs.retry(extraction, now=now)

        yield from self.each(request, rows, failed, again, "queued again")


class ReceiptItemInline(ReadOnlyInline):
    model = ReceiptItem
    # fmt: off
    fields = (
        "position", "content", "score", "score_parts", "strength", "used", "in_profile", "reason",
        "not_relevant",
    )
    # fmt: on
    readonly_fields = fields
    verbose_name_plural = "what was recalled, best first"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Leave out ``position`` for staff who may not read personal memories: its gaps would reveal their items."""
        return self.fields if may_read_personal(request.user) else self.fields[1:]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return readable(super().get_queryset(request), request.user, "memory__owner")


@admin.register(Receipt)
class ReceiptAdmin(ReadOnlyAdmin):
    list_display = ("message_id", "workspace", "user", "ranking", "fell_back", "imported", "created_at")
    list_select_related = ("workspace", "user")
    list_filter = (("degraded", admin.EmptyFieldListFilter),)
    ids = {"msg": "message_id"}
    inlines = (ReceiptItemInline,)

    @admin.display(description="fell back to words", boolean=True)
    def fell_back(self, receipt: Receipt) -> bool:
        return bool(receipt.degraded)


@admin.register(Refusal)
class RefusalAdmin(ReadOnlyAdmin):
    """The admin of refused memories, counted by day and kind. Their texts are not stored."""

    list_display = ("day", "kind", "number", "source_type", "workspace")
    list_display_links = None
    list_select_related = ("workspace",)
    list_filter = ("kind",)
    date_hierarchy = "day"
    ordering = ("-day", "-id")


admin.site.unregister([Success, Failure, Schedule, OrmQ])


class JobAdmin(ReadOnlyAdmin):
    ordering = ()  # the default order of the queue
    search_fields: ClassVar[tuple[str, ...]] = ("name", "func")


@admin.register(Success)
class SuccessAdmin(JobAdmin):
    list_display = ("name", "func", "started", "stopped", "time_taken")


@admin.register(Failure)
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
    def run_again(self, request: HttpRequest, rows: QuerySet[Failure]) -> Messages:
        def again(failure: Failure, *, by: User, now: datetime) -> None:
            async_task(failure.func, *(failure.args or ()), task_name=failure.name, **(failure.kwargs or {}))
            failure.delete()

        yield from self.each(request, rows, rows, again, "queued again")


@admin.register(Schedule)
class ScheduleAdmin(JobAdmin):
    list_display = ("name", "func", "schedule_type", "minutes", "next_run")


@admin.register(OrmQ)
class QueuedAdmin(JobAdmin):
    list_display = ("id", "name", "func", "lock")
    fields = ("key", "lock", "task_id", "name", "func", "args", "kwargs")
    readonly_fields = fields
    search_fields = ()


class ClearingForm(forms.ModelForm):
    """A form for the scope to clear. As a confirmation, staff type the number of memories that will be deleted."""

    number = forms.IntegerField(
        min_value=0, required=False, help_text="How many memories go. Leave it empty to be told."
    )

    class Meta:
        model = Clearing
        fields = ("workspace", "agent", "for_good")

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean() or {}
        workspace, agent = cleaned.get("workspace"), cleaned.get("agent")
        if agent is not None and agent.workspace != workspace:
            self.add_error("agent", "This assistant belongs to another workspace.")
        elif workspace is not None:
            scope = Scope.AGENT if agent else Scope.WORKSPACE
            live, whole = clear.count_in(workspace, scope, agent, by=self.instance.by)
            number = whole if cleaned.get("for_good") else live
            if cleaned.get("number") != number:
                self.add_error(
                    "number", f"{counted(number, 'memory goes', 'memories go')}. Type the number to go on."
                )
        return cleaned


@admin.register(Clearing)
class ClearingAdmin(ReadOnlyAdmin):
    """The admin of clearings, without those of personal memories, which only their owner may begin and see."""

    form = ClearingForm
    list_display = ("public_id", "workspace", "scope", "for_good", "status", "progress", "by", "started_at")
    list_select_related = ("workspace", "by")
    ids = {"clr": "public_id"}
    autocomplete_fields = ("workspace",)
    raw_id_fields = ("agent",)
    asked = ("workspace", "agent", "for_good", "number")
    # fmt: off
    shown = (
        "public_id", "workspace", "scope", "agent", "for_good", "status", "progress", "left_out", "by",
        "as_staff", "started_at", "finished_at",
    )
    # fmt: on
    actions = ("undo",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Clearing]:
        return super().get_queryset(request).exclude(scope=Scope.USER)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super(ReadOnlyAdmin, self).has_add_permission(request)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return self.asked if obj is None else self.shown

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return () if obj is None else self.shown

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)

        class OfStaff(form):  # type: ignore[misc, valid-type]
            def __init__(self, *args: Any, **values: Any) -> None:
                super().__init__(*args, **values)
                self.instance.by = request.user

        return OfStaff if obj is None else form

    @admin.display(description="done")
    def progress(self, clearing: Clearing) -> str:
        return f"{clearing.handled:,} of {clearing.total:,}"

    def save_model(self, request: HttpRequest, obj: Clearing, form: Any, change: bool) -> None:
        if obj.for_good:
            ask_for_password(request)
        scope, by = Scope.AGENT if obj.agent else Scope.WORKSPACE, cast("User", request.user)
        begun = clear.begin(
            obj.workspace, scope, obj.agent, by=by, for_good=obj.for_good, now=timezone.now(), as_staff=True
        )
        obj.pk, obj.public_id = begun.pk, begun.public_id

    @action("Undo", "change", asks="What each of them deleted is brought back in the background.")
    def undo(self, request: HttpRequest, rows: QuerySet[Clearing]) -> Messages:
        def back(clearing: Clearing, *, by: User, now: datetime) -> None:
            clear.undo(clearing, by=by, as_staff=True)

        yield from self.each(request, rows, rows, back, "being undone")


class RelationInline(ReadOnlyInline):
    model = NodeRelation
    fk_name = "source"
    fields = ("relation", "target", "created_at")
    readonly_fields = fields
    verbose_name_plural = "relations from it"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request).select_related("target")
        return readable(rows, request.user, "target__owner")


@admin.register(MemoryNode)
class MemoryNodeAdmin(ReadOnlyAdmin):
    list_display = ("name", "workspace", "kind", "relations", "created_by", "created_at")
    list_select_related = ("workspace", "created_by")
    ids = {"node": "public_id"}
    # fmt: off
    fields = (
        "public_id", "workspace", "name", "kind", "description", "gathers_by_name", "owner", "created_by",
        "created_at", "updated_at",
    )
    # fmt: on
    inlines = (RelationInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[MemoryNode]:
        """Exclude private nodes for staff who may not read personal memories, which a node's name may reveal."""
        every = NodeRelation.objects.all()
        both = number_of(every, "source") + number_of(every, "target")
        return readable(super().get_queryset(request).annotate(relation_count=both), request.user)

    @admin.display(description="relations")
    def relations(self, node: MemoryNode) -> int:
        return node.relation_count  # type: ignore[attr-defined]  # annotated by get_queryset


@admin.register(Asset)
class AssetAdmin(ReadOnlyAdmin):
    """The admin of attached files, without their contents, which only people who may see the memory can download."""

    list_display = ("name", "memory_id", "content_type", "bytes", "created_by", "created_at")
    list_select_related = ("created_by",)
    ids = {"asset": "public_id", "mem": "memory__public_id"}
    fields = ("public_id", "memory", "name", "content_type", "bytes", "sha256", "created_by", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Asset]:
        """Exclude files of personal memories, whose names are private too, for staff who may not read those."""
        return readable(super().get_queryset(request), request.user, "memory__owner")

    @admin.display(description="size")
    def bytes(self, asset: Asset) -> str:
        return file_size(asset.size)
