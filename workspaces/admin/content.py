"""Admin of documents (reading state and size, without titles and text) and of assistants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum
from django.http import HttpRequest
from django.utils import timezone
from django.utils.http import urlencode

from memoryhub.languages import file_size
from workspaces.actions import workspaces
from workspaces.admin.base import ReadOnlyAdmin, acting_owner, action, counted, offer_undo, rows_by_id
from workspaces.admin.filters import ChoiceFilter
from workspaces.documents import documents, files
from workspaces.models import Agent, Artifact, ArtifactKind, ArtifactVersion, Document, DocumentStatus


class StatusFilter(ChoiceFilter):
    parameter_name = "status"
    offered = [("", "All"), *DocumentStatus.choices]


class KindFilter(ChoiceFilter):
    title = "kind"
    parameter_name = "media_type"
    offered = [("", "All"), *files.NAMES.items()]


class DeletedFilter(ChoiceFilter):
    parameter_name = "state"
    offered = [("", "All"), ("live", "In use"), ("deleted", "Deleted"), ("draft", "Drafts")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        states = {
            "live": Q(deleted_at=None),
            "deleted": Q(deleted_at__isnull=False, drafted_at=None),
            "draft": Q(drafted_at__isnull=False),
        }
        chosen = self.chosen()
        return queryset.filter(states[chosen]) if chosen else queryset


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    """Admin of documents by size and state, without titles and text, which are private to the workspace."""

    many = "documents"
    list_display = (
        "public_id",
        "workspace",
        "kind",
        "room",
        "status",
        "error",
        "pages",
        "passage_count",
        "reading_time",
        "created_at",
    )
    list_select_related = ("workspace",)
    list_filter = (StatusFilter, KindFilter, DeletedFilter)
    ordering = ("-id",)
    sortable_by = ("room", "passage_count", "reading_time")
    search_fields = ("public_id",)
    search_help_text = "The id of a document (doc_), of its bringer (usr_) or of a workspace (ws_)."
    fields = (
        "public_id",
        "workspace",
        "kind",
        "room",
        "sha256",
        "version",
        "status",
        "error",
        "pages",
        "characters",
        "passage_count",
        "reading_time",
        "created_by",
        "created_at",
        "updated_at",
        "reading_since",
        "deleted_at",
        "drafted_at",
    )
    actions = ("read_again",)

    def for_list(self, rows: QuerySet[Document]) -> QuerySet[Any]:
        return rows.defer("title", "file_name")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        places = {"doc": "public_id", "usr": "created_by__public_id", "ws": "workspace__public_id"}
        return rows_by_id(queryset, search_term, places), False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Add the storage used by each kind of file above the list, the largest first."""
        rows = Document.objects.live().values("media_type").annotate(number=Count("pk"), room=Sum("size"))
        figures = [
            {
                "url": f"?{urlencode({'media_type': row['media_type']})}",
                "value": file_size(row["room"]),
                "label": files.NAMES.get(row["media_type"], row["media_type"]),
                "note": counted(row["number"], "document", "documents"),
            }
            for row in rows.order_by("-room")
        ]
        groups = [{"title": "By kind", "figures": figures}] if figures else []
        return super().changelist_view(request, (extra_context or {}) | {"groups": groups})

    @admin.display(description="kind", ordering="media_type")
    def kind(self, document: Document) -> str:
        return files.NAMES.get(document.media_type, document.media_type)

    @admin.display(description="size", ordering="size")
    def room(self, document: Document) -> str:
        return file_size(document.size)

    @admin.display(description="reading time", ordering="seconds")
    def reading_time(self, document: Document) -> str:
        return f"{document.seconds:,.1f} s" if document.seconds else "-"

    @action(
        "Read again",
        "change",
        asks="Those that could not be read, and pictures that cannot be shown yet, are queued once more.",
    )
    def read_again(self, request: HttpRequest, rows: QuerySet[Document]) -> Iterator[tuple[str, int]]:
        failed = list(rows.filter(pk__in=Document.objects.not_quite_read()))
        for document in failed:
            documents.retry_reading(document, by=None, now=timezone.now())
        level = messages.SUCCESS if failed else messages.WARNING
        yield f"{counted(len(failed), 'document', 'documents')} queued to be read again.", level


# Artifacts by kind and size, without titles and content.


class ArtifactKindFilter(ChoiceFilter):
    title = "kind"
    parameter_name = "kind"
    offered = [("", "All"), *((kind.value, str(kind.label)) for kind in ArtifactKind)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.chosen()
        return queryset.filter(kind=chosen) if chosen else queryset


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin):
    many = "artifacts"
    list_display = (
        "public_id",
        "workspace",
        "kind",
        "version",
        "bytes",
        "created_by",
        "updated_at",
        "deleted_at",
    )
    list_select_related = ("workspace", "created_by")
    list_filter = (ArtifactKindFilter,)
    ordering = ("-id",)
    sortable_by = ()
    search_fields = ("public_id",)
    search_help_text = "The id of an artifact (art_), of its maker (usr_) or of a workspace (ws_)."
    fields = (
        "public_id",
        "workspace",
        "kind",
        "version",
        "bytes",
        "created_by",
        "created_at",
        "updated_at",
        "deleted_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows annotated with the size of all their versions in bytes."""
        versions = ArtifactVersion.objects.filter(artifact=OuterRef("pk")).order_by().values("artifact")
        total = Subquery(versions.annotate(total=Sum("size")).values("total"))
        return super().get_queryset(request).defer("title", "content", "gist").annotate(total=total)

    @admin.display(description="Size")
    def bytes(self, artifact: Any) -> str:
        return file_size(artifact.total or 0)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        places = {"art": "public_id", "usr": "created_by__public_id", "ws": "workspace__public_id"}
        return rows_by_id(queryset, search_term, places), False


# Assistants, to look at and to archive.


class InUseFilter(ChoiceFilter):
    parameter_name = "state"
    offered = [("", "All"), ("in_use", "In use"), ("archived", "Archived")]
    rules = {"in_use": Q(archived_at=None), "archived": Q(archived_at__isnull=False)}


@admin.register(Agent)
class AgentAdmin(ReadOnlyAdmin):
    """Admin of the assistants of all workspaces: their instructions, and archiving them."""

    many = "assistants"
    list_display = ("name", "workspace", "created_by", "created_at", "archived_at")
    list_select_related = ("workspace", "created_by")
    list_filter = (InUseFilter,)
    ids = {"agent": "public_id", "usr": "created_by__public_id", "ws": "workspace__public_id"}
    search_help_text = "The id of an assistant (agent_), of its maker (usr_) or of a workspace (ws_)."
    fields = (
        "name",
        "public_id",
        "workspace",
        "description",
        "instructions",
        "created_by",
        "created_at",
        "updated_at",
        "archived_at",
    )
    actions = ("archive", "restore")

    def for_list(self, rows: QuerySet[Agent]) -> QuerySet[Any]:
        return rows.defer("instructions", "description")

    @action(
        "Archive (no new chats with it)",
        "change",
        asks="Nobody can begin a chat with them. Chats that are there, and their memories, stay.",
    )
    def archive(self, request: HttpRequest, rows: QuerySet[Agent]) -> Iterator[tuple[str, int]]:
        found = list(rows.in_use().select_related("workspace"))  # type: ignore[attr-defined]
        for agent in found:
            workspaces.archive_agent(agent, by=acting_owner(agent.workspace, request), now=timezone.now())
        offer_undo(self, request, "restore", [agent.pk for agent in found])
        yield f"{counted(len(found), 'assistant', 'assistants')} archived.", messages.SUCCESS

    @action("Restore", "change", asks="Chats can be begun with them again.")
    def restore(self, request: HttpRequest, rows: QuerySet[Agent]) -> Iterator[tuple[str, int]]:
        found = list(rows.exclude(archived_at=None).select_related("workspace"))
        for agent in found:
            workspaces.restore_agent(agent, by=acting_owner(agent.workspace, request), now=timezone.now())
        offer_undo(self, request, "archive", [agent.pk for agent in found])
        yield f"{counted(len(found), 'assistant', 'assistants')} restored.", messages.SUCCESS
