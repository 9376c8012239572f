"""Read-only admin of memory nodes and of files attached to memories."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from memories.admin.filters import may_read_personal
from memories.models import Asset, MemoryNode, NodeRelation
from memories.nodes.nodes import number_of
from memoryhub.languages import file_size
from workspaces.admin.base import ReadOnlyAdmin, ReadOnlyInline
from workspaces.admin.filters import WorkspaceFilter


class RelationInline(ReadOnlyInline):
    model = NodeRelation
    fk_name = "source"
    fields = ("relation", "target", "created_at")
    readonly_fields = fields
    verbose_name_plural = "relations from it"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request).select_related("target")
        return rows if may_read_personal(request.user) else rows.filter(target__owner=None)


@admin.register(MemoryNode)
class MemoryNodeAdmin(ReadOnlyAdmin):
    many = "nodes"
    list_display = ("name", "workspace", "kind", "relations", "created_by", "created_at")
    list_select_related = ("workspace", "created_by")
    list_filter = (WorkspaceFilter,)
    ids = {"node": "public_id"}
    search_help_text = "The id of a node (node_)."
    fields = (
        "public_id",
        "workspace",
        "name",
        "kind",
        "description",
        "gathers_by_name",
        "owner",
        "created_by",
        "created_at",
        "updated_at",
    )
    inlines = (RelationInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[MemoryNode]:
        """Exclude nodes of one person for staff who may not read personal memories, because node names may reveal
        these.
        """
        every = NodeRelation.objects.all()
        both = number_of(every, "source") + number_of(every, "target")
        rows = super().get_queryset(request).annotate(relation_count=both)
        return rows if may_read_personal(request.user) else rows.filter(owner=None)

    @admin.display(description="relations")
    def relations(self, node: MemoryNode) -> int:
        return node.relation_count  # type: ignore[attr-defined]  # annotated by get_queryset


@admin.register(Asset)
class AssetAdmin(ReadOnlyAdmin):
    """The admin of attached files, without access to their bytes, which only people who may see the memory can
    download.
    """

    many = "files"
    list_display = ("name", "memory_id", "content_type", "bytes", "created_by", "created_at")
    list_select_related = ("created_by",)
    ids = {"asset": "public_id", "mem": "memory__public_id"}
    search_help_text = "The id of a file (asset_) or of its memory (mem_)."
    fields = ("public_id", "memory", "name", "content_type", "bytes", "sha256", "created_by", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Asset]:
        """Exclude files of personal memories for staff who may not read these, because the file's name is as
        private.
        """
        rows = super().get_queryset(request)
        return rows if may_read_personal(request.user) else rows.filter(memory__owner=None)

    @admin.display(description="size")
    def bytes(self, asset: Asset) -> str:
        return file_size(asset.size)
