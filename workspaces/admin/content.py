"""Admin of documents, artifacts and assistants, without the titles and texts of documents and artifacts."""

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery, Sum
from django.http import HttpRequest

from memoryhub.localization import file_size
from workspaces.actions import workspaces
from workspaces.admin.base import Messages, ReadOnlyAdmin, acting_owner, action
from workspaces.documents import documents, files
from workspaces.models import Agent, Artifact, ArtifactVersion, Document, User


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    """Admin of documents by size and state. Their titles and texts are private to the workspace, and not shown."""

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
    list_filter = (
        "status",
        ("deleted_at", admin.EmptyFieldListFilter),
        ("drafted_at", admin.EmptyFieldListFilter),
    )
    ids = {"doc": "public_id", "usr": "created_by__public_id", "ws": "workspace__public_id"}
    sortable_by = ("room", "passage_count", "reading_time")
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
    def read_again(self, request: HttpRequest, rows: QuerySet[Document]) -> Messages:
        wanted = rows.filter(pk__in=Document.objects.not_quite_read())

        def read(document: Document, *, by: User, now: datetime) -> None:
            documents.retry_reading(document, by=None, now=now)

        yield from self.each(request, rows, wanted, read, "queued to be read again")


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin):
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
    list_filter = ("kind", ("deleted_at", admin.EmptyFieldListFilter))
    ids = {"art": "public_id", "usr": "created_by__public_id", "ws": "workspace__public_id"}
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


@admin.register(Agent)
class AgentAdmin(ReadOnlyAdmin):
    """Admin of the assistants of all workspaces: their instructions, and archiving them."""

    list_display = ("name", "workspace", "created_by", "created_at", "archived_at")
    list_select_related = ("workspace", "created_by")
    list_filter = (("archived_at", admin.EmptyFieldListFilter),)
    ids = {"agent": "public_id", "usr": "created_by__public_id", "ws": "workspace__public_id"}
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

    @action(
        "Archive (no new chats with it)",
        "change",
        asks="Nobody can begin a chat with them. Chats that are there, and their memories, stay.",
    )
    def archive(self, request: HttpRequest, rows: QuerySet[Agent]) -> Messages:
        wanted = rows.in_use().select_related("workspace")  # type: ignore[attr-defined]

        def archive(agent: Agent, *, by: User, now: datetime) -> None:
            workspaces.archive_agent(agent, by=acting_owner(agent.workspace, request), now=now)

        yield from self.each(request, rows, wanted, archive, "archived")

    @action("Restore", "change", asks="Chats can be begun with them again.")
    def restore(self, request: HttpRequest, rows: QuerySet[Agent]) -> Messages:
        wanted = rows.exclude(archived_at=None).select_related("workspace")

        def restore(agent: Agent, *, by: User, now: datetime) -> None:
            workspaces.restore_agent(agent, by=acting_owner(agent.workspace, request), now=now)

        yield from self.each(request, rows, wanted, restore, "restored")
