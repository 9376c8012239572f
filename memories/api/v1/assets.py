"""Files attached to memories, for programs with a key."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.v1 import examples
from memories.api.v1.serializers import PlaceQuery
from memories.api.v1.views import DELETING, OrganisationView
from memories.assets import assets
from memories.assets.downloads import download
from memories.models import Asset
from memoryhub.errors import NotFound, TooLarge
from workspaces.models import Role
from workspaces.rest.docs import (
    answer_example,
    documented,
    page_example,
    page_of,
)
from workspaces.rest.fields import Body, Moment
from workspaces.rest.idempotency import ONCE
from workspaces.rest.paging import PageQuery

TAG = "memory assets"
ENVELOPE = 64 * 1024  # bytes that a multipart body may have beside the file
ASSET: dict[str, Any] = {
    "id": "asset_6tGs3TzB9mYw4RsX1vLcHn2P",
    "memoryId": examples.MEMORY["id"],
    "name": "plan.pdf",
    "contentType": "application/pdf",
    "size": 48213,
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "createdAt": "2026-03-07T10:30:00.000000Z",
}


class AssetJson(serializers.ModelSerializer[Asset]):
    id = serializers.CharField(source="public_id")
    memoryId = serializers.CharField(source="memory.public_id")
    contentType = serializers.CharField(
        source="content_type", help_text="From its first bytes: an image, a PDF, a ZIP, text, or octets."
    )
    createdAt = Moment(source="created_at")

    class Meta:
        model = Asset
        fields = ["id", "memoryId", "name", "contentType", "size", "sha256", "createdAt"]


class AssetBody(Body):
    file = serializers.FileField(
        help_text="The part must have a file name.",
        error_messages={
            "required": "Is required: one part of this name, with a file name.",
            "invalid": "Must be a file: a part with a file name.",
            "empty": "Must not be empty.",
        },
    )


class AssetQuery(PageQuery, PlaceQuery):
    """The page of a memory's files."""


class AssetList(OrganisationView):
    parser_classes = [MultiPartParser]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """What says by itself that it is too long is not read: the check of the CSRF token would."""
        length = request.META.get("CONTENT_LENGTH") or "0"
        if length.isdecimal() and int(length) > settings.ASSET_MAX_BYTES + ENVELOPE:
            raise TooLarge(_("A file may have at most %s bytes.") % f"{settings.ASSET_MAX_BYTES:,}")
        super().initial(request, *args, **kwargs)

    @documented(
        "List the files of a memory",
        tag=TAG,
        operation="v1_assets_list",
        answers={200: page_of(AssetJson, "Asset")},
        query=AssetQuery,
        errors=[404, 429],
        description="Oldest first.",
        examples=[page_example(ASSET)],
    )
    def get(self, request: Request, memory_id: str) -> Response:
        memory = self.memory(memory_id)
        return self.page(
            memory.assets.select_related("memory"), AssetJson, list_name=f"assets of {memory.public_id}"
        )

    @documented(
        "Attach a file to a memory",
        tag=TAG,
        operation="v1_assets_create",
        answers={201: AssetJson},
        body=AssetBody,
        query=PlaceQuery,
        errors=[404, 409, 429, 503],
        writes=True,
        headers=ONCE,
        description=f"`multipart/form-data` with one part `file`. At most {assets.MOST_ASSETS} files a memory (409), "
        "and as many bytes as MEMORYHUB_ASSET_MAX_BYTES says (413).",
        examples=[
            OpenApiExample(
                "A file",
                value={"file": "(its bytes)"},
                request_only=True,
                media_type="multipart/form-data",
            ),
            answer_example("Attached", ASSET, code=201),
        ],
    )
    def post(self, request: Request, memory_id: str) -> Response:
        memory = self.memory(memory_id, Role.EDITOR)
        file = self.body(AssetBody)["file"]
        if len(request.FILES.getlist("file")) > 1:
            raise serializers.ValidationError({"file": "Must be one file at a time."})
        now = timezone.now()
        made = self.once(
            lambda: assets.attach(
                memory, name=file.name or "", content=file.chunks(), by=self.person, now=now
            ),
            keep=lambda asset: {"asset": asset.public_id},
            again=lambda note: assets.get_asset(self.person, note["asset"]),
        )
        return Response(AssetJson(made).data, status=status.HTTP_201_CREATED)


class AssetDetail(OrganisationView):
    def asset(self, asset_id: str, need: Role = Role.VIEWER) -> Asset:
        asset = assets.get_asset(self.person, asset_id, need=need)
        try:
            self.memory(asset.memory.public_id, need)
        except NotFound:
            raise NotFound(_("This file does not exist, or you do not have access to it.")) from None
        return asset

    @documented(
        "Download a file",
        tag=TAG,
        operation="v1_assets_get",
        answers={
            (200, "*/*"): OpenApiResponse(
                OpenApiTypes.BINARY,
                description="The bytes, as a download under its name; the type is that of the file.",
                examples=[OpenApiExample("A file", value="(its bytes)")],
            )
        },
        query=PlaceQuery,
        errors=[404, 429],
    )
    def get(self, request: Request, asset_id: str) -> HttpResponseBase:
        return download(self.asset(asset_id))

    @documented(
        "Delete a file",
        tag=TAG,
        operation="v1_assets_delete",
        answers={204: None},
        query=PlaceQuery,
        errors=[404, 429],
        writes=True,
        session_only=True,
        description=f"For good; the memory stays. {DELETING}",
    )
    def delete(self, request: Request, asset_id: str) -> Response:
        self.require_fresh_password()
        assets.remove(self.asset(asset_id, Role.EDITOR), by=self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)
