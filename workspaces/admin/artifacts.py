"""Artifacts, by kind and size: never their titles nor what they say."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery, Sum
from django.http import HttpRequest

from memoryhub.languages import file_size
from workspaces.admin_kit.base import ReadOnlyAdmin, rows_by_id
from workspaces.admin_kit.filters import ChoiceFilter
from workspaces.models import Artifact, ArtifactKind, ArtifactVersion


class KindFilter(ChoiceFilter):
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
    list_filter = (KindFilter,)
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
        """With the bytes of all versions."""
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
