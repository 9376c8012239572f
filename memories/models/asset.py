"""Files attached to memories. The row describes a file; its bytes are stored by ``memoryhub.files.stored_files``."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from memories.models.memory import Memory
from memoryhub.ids import PublicIdField
from workspaces.models import User

ASSET_NAME_LENGTH = 150
RASTER = ("image/png", "image/jpeg", "image/gif", "image/webp")  # browsers run no code in these
PICTURE_BYTES = 2_000_000


class Asset(models.Model):
    public_id = PublicIdField(prefix="asset")
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="assets")
    name = models.CharField(max_length=ASSET_NAME_LENGTH)
    content_type = models.CharField(
        max_length=50, help_text="From its first bytes, never as the sender says."
    )
    size = models.BigIntegerField(help_text="Bytes.")
    sha256 = models.CharField(max_length=64, help_text="Of the content, hexadecimal.")
    file_name = models.CharField(
        max_length=40, unique=True, editable=False
    )  # random; memoryhub.files.stored_files
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_picture(self) -> bool:
        """Return whether it is an image of a safe type and small enough to be shown on a card."""
        return self.content_type in RASTER and self.size <= PICTURE_BYTES
