"""REST endpoints (/api/v1) for files attached to memories."""

from typing import Any

from django.conf import settings
from django.http import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from memories import assets
from memories.api.v1.views import OrganisationView
from memories.models import Asset
from memoryhub.errors import NotFound
from memoryhub.stored_files import require_fitting
from workspaces.api.fields import Body, Moment
from workspaces.api.idempotency import ONCE
from workspaces.api.schema import ID, documented_under, page_of
from workspaces.models import Role

documented = documented_under("memory assets")


class AssetJson(serializers.Serializer[Any]):
    example = {
        "id": f"asset_{ID}",
        "name": "plan.pdf",
        "contentType": "application/pdf",
        "sha256": "9f86" * 16,
    }
    id = serializers.CharField(source="public_id")
    memoryId = serializers.CharField(source="memory.public_id")
    name = serializers.CharField()
    contentType = serializers.CharField(
        source="content_type", help_text="From its first bytes: an image, a PDF, a ZIP, text, or octets."
    )
    size = serializers.IntegerField(min_value=0, help_text="Bytes.")
    sha256 = serializers.RegexField("^[0-9a-f]{64}$", help_text="Of the content, hexadecimal.")
    createdAt = Moment(source="created_at")


class AssetBody(Body):
    example = {"file": "(its bytes)"}
    file = serializers.FileField(
        help_text="The part must have a file name.",
        error_messages={
            "required": later("Is required: one part of this name, with a file name."),
            "invalid": later("Must be a file: a part with a file name."),
            "empty": later("Must not be empty."),
        },
    )


class AssetList(OrganisationView):
    parser_classes = [MultiPartParser]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Reject a request by its Content-Length before the CSRF check, which would read the whole body."""
        require_fitting(request, settings.ASSET_MAX_BYTES)
        super().initial(request, *args, **kwargs)

    @documented("v1_assets_list", page_of(AssetJson))
    def get(self, request: Request, memory_id: str) -> Response:
        """List the files of a memory.

        Oldest first.
        """
        memory = self.memory(memory_id)
        return self.page(
            memory.assets.select_related("memory"), AssetJson, list_name=f"assets of {memory.public_id}"
        )

    @documented("v1_assets_create", {201: AssetJson}, body=AssetBody, headers=ONCE, errors=[503])
    def post(self, request: Request, memory_id: str) -> Response:
        """Attach a file to a memory.

        Send `multipart/form-data` with one part, `file`. 409 if the memory already has twenty files, 413 if the file
        has more bytes than MEMORYHUB_ASSET_MAX_BYTES allows.
        """
        memory = self.memory(memory_id, Role.EDITOR)
        file = self.body(AssetBody)["file"]
        if len(request.FILES.getlist("file")) > 1:
            raise serializers.ValidationError({"file": _("Must be one file at a time.")})
        now = timezone.now()
        asset = self.make_once(
            lambda: assets.attach(
                memory, name=file.name or "", content=file.chunks(), by=self.person, now=now
            ),
            assets.get_asset,
        )
        return Response(AssetJson(asset).data, status=status.HTTP_201_CREATED)


class AssetDetail(OrganisationView):
    def asset(self, asset_id: str, need: Role = Role.VIEWER) -> Asset:
        asset = assets.get_asset(self.person, asset_id, need=need)
        try:
            self.memory(asset.memory.public_id, need)
        except NotFound:
            raise NotFound(_("This file does not exist, or you do not have access to it.")) from None
        return asset

    @documented(
        "v1_assets_get",
        {
            (200, "*/*"): OpenApiResponse(
                OpenApiTypes.BINARY,
                description="The bytes, as a download under its name; the type is that of the file.",
                examples=[OpenApiExample("A file", value="(its bytes)")],
            )
        },
    )
    def get(self, request: Request, asset_id: str) -> HttpResponseBase:
        """Download a file."""
        return assets.download(self.asset(asset_id))

    @documented("v1_assets_delete", fresh=True)
    def delete(self, request: Request, asset_id: str) -> Response:
        """Delete a file permanently.

        The memory stays.
        """
        self.require_fresh_password()
        assets.remove(self.asset(asset_id, Role.EDITOR), by=self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)
