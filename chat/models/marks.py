"""Each user's pins, archive, tags and ratings, share links, and saved prompts.

Share links are written by ``chat.chats.sharing``, saved prompts by ``chat.chats.saved_prompts``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy

from chat.models.chats import Chat, Message
from memoryhub.ids import PublicIdField
from workspaces.models import Agent, Membership, Role, User, Workspace


class ChatMark(models.Model):
    """A user's mark of a chat: pinned to the top, or archived (hidden from the list, still found by search)."""

    class Kind(models.TextChoices):
        PINNED = "pinned", "Pinned"
        ARCHIVED = "archived", "Archived"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="marks")
    kind = models.CharField(max_length=8, choices=Kind.choices)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "chat"], name="one_mark_a_person_and_chat")]
        indexes = [models.Index(fields=["user", "kind"], name="chat_marks")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} by {self.user}"


TAG_LENGTH = 40


class ChatTag(models.Model):
    """A user's tag of a chat, for finding it again."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(max_length=TAG_LENGTH)

    class Meta:
        ordering = [Lower("name")]
        constraints = [models.UniqueConstraint("user", "chat", Lower("name"), name="one_tag_of_a_name")]
        indexes = [models.Index("user", Lower("name"), name="chat_tags")]

    def __str__(self) -> str:
        return self.name


COMMENT_LENGTH = 500


class Rating(models.TextChoices):
    UP = "up", gettext_lazy("Good answer")
    DOWN = "down", gettext_lazy("Bad answer")


class RatingReason(models.TextChoices):
    """Reasons for a rating. The first three are for a good answer, the others for a bad one."""

    CORRECT = "correct", gettext_lazy("Correct")
    HELPFUL = "helpful", gettext_lazy("Helpful")
    WELL_WRITTEN = "well_written", gettext_lazy("Well written")
    WRONG = "wrong", gettext_lazy("Not correct")
    BESIDE = "beside", gettext_lazy("Did not answer the question")
    LONG = "long", gettext_lazy("Too long")
    MEMORY = "memory", gettext_lazy("Used or missed a memory")
    REFUSED = "refused", gettext_lazy("Refused without reason")


GOOD = (RatingReason.CORRECT, RatingReason.HELPFUL, RatingReason.WELL_WRITTEN)
REASONS = {
    Rating.UP: GOOD,
    Rating.DOWN: tuple(reason for reason in RatingReason if reason not in GOOD),
}


class AnswerRating(models.Model):
    """A reader's rating of an answer. Written by ``chat.chats.services``."""

    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="ratings")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    rating = models.CharField(max_length=4, choices=Rating.choices)
    reasons = ArrayField(
        models.CharField(max_length=12, choices=RatingReason.choices), default=list, blank=True
    )
    comment = models.CharField(max_length=COMMENT_LENGTH, blank=True)
    # The values at the time of the rating, because a chat's model and assistant may change.
    model_name = models.CharField("model", max_length=200, blank=True)
    agent = models.ForeignKey(
        Agent, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", verbose_name="assistant"
    )
    rated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-rated_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["message", "user"], name="one_rating_a_person_and_answer")
        ]
        indexes = [models.Index(fields=["-rated_at", "-id"], name="ratings_newest")]

    def __str__(self) -> str:
        return f"{self.rating} for message {self.message_id}"


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


class SavedPromptQuerySet(models.QuerySet["SavedPrompt"]):
    def visible_to(self, user: User, workspace: Workspace) -> SavedPromptQuerySet:
        """Filter to the prompts that this person may use in ``workspace``: their own and the workspace's."""
        return self.filter(Q(owner=user) | Q(workspace=workspace))


class SavedPrompt(models.Model):
    """A prompt that belongs either to a user, in all their workspaces, or to a workspace."""

    public_id = PublicIdField(prefix="prm")
    owner = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="saved_prompts")
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, null=True, related_name="saved_prompts"
    )
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    name = models.CharField(max_length=80)
    text = models.TextField(max_length=8000)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    objects = SavedPromptQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="one_own_prompt_a_name"),
            models.UniqueConstraint(fields=["workspace", "name"], name="one_shared_prompt_a_name"),
            models.CheckConstraint(
                condition=Q(owner=None, workspace__isnull=False) | Q(owner__isnull=False, workspace=None),
                name="prompt_of_one",
            ),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def is_personal(self) -> bool:
        return self.owner_id is not None
