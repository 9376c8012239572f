"""Links by which people without an account read a chat. Written by ``chat.chats.sharing``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from chat.models.chats import Chat
from memoryhub.ids import PublicIdField
from workspaces.models import Membership, Role, User


class ShareLinkQuerySet(models.QuerySet["ShareLink"]):
    def open(self, now: datetime) -> ShareLinkQuerySet:
        """Filter to links that are still valid. Call it on each request, since settings and memberships change."""
        if not settings.SHARE_LINKS:
            return self.none()
        makers = Membership.objects.filter(workspace=OuterRef("chat__workspace"), user=OuterRef("made_by"))
        return self.filter(
            Exists(makers.filter(role__in=[Role.OWNER, Role.EDITOR])),
            Q(expires_at=None) | Q(expires_at__gt=now),
            Q(chat__is_private=False) | Q(chat__created_by=F("made_by")),
            chat__is_temporary=False,
            chat__deleted_at=None,
            chat__workspace__share_links=True,
            chat__workspace__local_only=False,
            made_by__is_active=True,
        )

    def visible_to(self, user: User) -> ShareLinkQuerySet:
        """Filter to links of chats that this person may see."""
        return self.filter(chat__in=Chat.objects.visible_to(user))


class ShareLink(models.Model):
    """A link to the messages of a chat as they were when it was shared. It copies no text, so deleted messages
    disappear.

    Only a hash of the token is stored, so the URL cannot be displayed again.
    """

    public_id = PublicIdField(prefix="link")
    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="share_links")
    made_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    token_hash = models.CharField(max_length=64, unique=True, editable=False)  # SHA-256, hexadecimal
    message_ids = ArrayField(models.BigIntegerField(), help_text="Keys of the messages, as they stood then.")
    memories_used: models.JSONField[Any, Any] = models.JSONField(
        db_column="resting",
        default=dict,
        help_text="Ids of memories that were in these messages or used for them, with the keys of those messages.",
    )
    created_at = models.DateTimeField(default=timezone.now)
    shared_at = models.DateTimeField(help_text="As of when the chat is shown.")
    expires_at = models.DateTimeField(null=True, blank=True)
    last_opened_at = models.DateTimeField(null=True, blank=True, help_text="To the minute.")

    objects = ShareLinkQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"Link {self.public_id} to chat {self.chat_id}"
