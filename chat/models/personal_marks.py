"""Each user's own marks on chats and answers: pins, archive, tags and ratings."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy

from chat.models.chats import Chat, Message
from workspaces.models import Agent, User


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
