"""Chats, their messages and summaries, turns of API clients, and the filters for personal answers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from chat.models.answer_steps import Mode
from memoryhub.ids import PublicIdField
from workspaces.models import Agent, Membership, User, Workspace
from workspaces.models.language_models import Connection


class PersonalUse(models.TextChoices):
    """Whether an answer used personal data, directly or through an earlier answer in its prompt.

    Personal data are personal memories, files and artifacts, private chats, and chats of other workspaces.
    """

    NONE = "", "Nothing personal"
    SEEN = "seen", "Written with an answer in view that was given something personal"
    HELD = "held", "Given something personal"


def was_reader(user: User, *, at: str) -> Q:
    """Return a filter for rows that were created (field ``at``) while this user could read their chat.

    A private chat has its creator as its only reader until it is opened (``Chat.opened_at``).
    """
    joined = Membership.objects.filter(user=user, workspace=models.OuterRef("chat__workspace"))
    was_open = Q(chat__opened_at=None) | Q(**{f"{at}__gte": models.F("chat__opened_at")})
    is_member = Q(**{f"{at}__gte": models.Subquery(joined.values("created_at"))})
    return is_member & (was_open | Q(chat__created_by=user))


TITLE_LENGTH = 200
MESSAGE_LENGTH = 32_000
ABANDONED_AFTER = timedelta(seconds=8)  # without a heartbeat; then the answer's process is gone
STOPPED_AFTER = timedelta(seconds=3)  # after a stop request, which a running process notices in 1.2 s
SHARED = Q(is_private=False, is_temporary=False)  # chats that all members of the workspace see


class ChatQuerySet(models.QuerySet["Chat"]):
    def live(self) -> ChatQuerySet:
        return self.filter(deleted_at=None)

    def visible_to(self, user: User) -> ChatQuerySet:
        """Filter to chats in this person's workspaces, without private and temporary chats of others."""
        return self.filter(workspace__memberships__user=user).filter(SHARED | Q(created_by=user))

    def with_roles(self) -> ChatQuerySet:
        """Annotate each chat with the user's ``role`` in its workspace. Call it after ``visible_to`` of the user."""
        role = models.F("workspace__memberships__role")
        return self.annotate(role=role)  # type: ignore[no-redef]  # the model declares it

    def listed(self) -> ChatQuerySet:
        """Exclude temporary chats, and order by latest activity first."""
        return self.filter(is_temporary=False).order_by("-active_at", "-id")


class Chat(models.Model):
    role: str  # the reader's role, annotated by ``with_roles``
    mark: str | None  # the reader's mark, annotated by ``chat_list_page``
    public_id = PublicIdField(prefix="chat")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="chats")
    created_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="chats")
    brought_by = models.BigIntegerField(
        null=True,
        blank=True,
        editable=False,
        help_text="Key of the person who brought it in another's name, whose room it takes, also once they are gone.",
    )
    is_imported = models.BooleanField(
        default=False, db_default=False, help_text="Somebody else imported it under its creator's name."
    )
    agent = models.ForeignKey(
        Agent,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="chats",
        help_text="Which assistant answers. Empty: none in particular.",
    )
    connection = models.ForeignKey(
        Connection,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="chats",
        help_text="Which model answers. Empty: the workspace's.",
    )
    title = models.CharField(max_length=TITLE_LENGTH, blank=True)
    memory_enabled = models.BooleanField(
        null=True, blank=True, help_text="The chip. Empty: the person's default."
    )
    is_private = models.BooleanField(default=False)
    is_temporary = models.BooleanField(default=False)
    personal_of = models.ManyToManyField(
        User,
        related_name="+",
        blank=True,
        help_text="Who lets their personal memories be used here though others read it (chat.chats.personal_memories).",
    )
    opened_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When it was last a private chat that its creator opened to the workspace. Empty: never.",
    )
    created_at = models.DateTimeField(default=timezone.now)
    active_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = ChatQuerySet.as_manager()

    class Meta:
        ordering = ["-active_at", "-id"]
        # For staff in the admin. No other permission covers the text of private and temporary chats.
        permissions = [("read_private_chat", "Can read private and temporary chats")]
        indexes = [
            models.Index(fields=["brought_by"], name="chat_brought", condition=Q(brought_by__isnull=False)),
            models.Index(
                fields=["workspace", "-active_at", "-id"], name="chat_list", condition=Q(deleted_at=None)
            ),
            # For the purge of deleted chats.
            models.Index(fields=["deleted_at"], name="chat_deleted", condition=Q(deleted_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.title or "New chat"

    @property
    def is_shared(self) -> bool:
        """Whether all members of the workspace see the chat. Private and temporary ones are their creator's alone."""
        return not (self.is_private or self.is_temporary)


class MessageRole(models.TextChoices):
    USER = "user", "User"
    ASSISTANT = "assistant", "Assistant"


class MessageStatus(models.TextChoices):
    STREAMING = "streaming", "Being written"
    DONE = "done", "Done"
    STOPPED = "stopped", "Stopped"
    FAILED = "failed", "Failed"


class MessageQuerySet(models.QuerySet["Message"]):
    def current(self) -> MessageQuerySet:
        """Filter to the current conversation, without messages that were replaced by an edit or another answer."""
        return self.filter(superseded_by=None)

    def readable_by(self, user: User) -> MessageQuerySet:
        """Exclude personal answers to others that were written before ``user`` could read the chat.

        The caller filters to chats that are visible to ``user``.
        """
        is_theirs = Q(personal=PersonalUse.NONE) | Q(reply_to__author=user)
        return self.filter(is_theirs | was_reader(user, at="created_at"))

    def marked(self) -> MessageQuerySet:
        """Filter to answers that used personal data, or text of another workspace that must stay on this machine."""
        return self.filter(~Q(personal=PersonalUse.NONE) | Q(stays_here=True))


class Message(models.Model):
    """A message of a chat. An answer is stored empty before the model is called and grows while it streams."""

    public_id = PublicIdField(prefix="msg")
    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="messages")
    role = models.CharField(max_length=10, choices=MessageRole.choices)
    author = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    imported_by = models.ForeignKey(
        User,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,  # the partial index message_imported covers the few rows with a value
        related_name="+",
        help_text="Who imported it under its author's name, where that is another person.",
    )
    # Kept when the importer's account is deleted.
    imported_at = models.DateTimeField(null=True, blank=True, editable=False)
    content = models.TextField(blank=True)
    html = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="An answer's content as it is shown. Empty: as it was written. Written by chat.rendering.",
    )
    html_of = models.CharField(
        max_length=32,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Marks the content, and the renderer, that the HTML was made of and by.",
    )
    status = models.CharField(max_length=10, choices=MessageStatus.choices, default=MessageStatus.DONE)
    error_code = models.CharField(max_length=30, blank=True)
    error = models.CharField(
        max_length=500, blank=True, help_text="Why the answer failed, fit for a person's eyes."
    )
    reply_to = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="answers"
    )
    memory_enabled = models.BooleanField(
        default=False, help_text="Whether automatic memory was on in this turn."
    )
    mode = models.CharField(max_length=20, choices=Mode.choices, default=Mode.CHAT, db_default=Mode.CHAT)
    only_documents = ArrayField(
        models.CharField(max_length=32),
        null=True,
        blank=True,
        help_text="Of a question: the public ids of the documents that its answer may draw on. Null: all; none: none.",
    )
    has_thoughts = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether its model showed what it thought: a step has that.",
    )
    other_chats = ArrayField(
        models.CharField(max_length=32),
        default=list,
        blank=True,
        editable=False,
        help_text="Of an answer: the public ids of the other chats that it was shown in short.",
    )
    personal = models.CharField(
        max_length=4,
        choices=PersonalUse.choices,
        blank=True,
        default=PersonalUse.NONE,
        editable=False,
        help_text="Of an answer: whether it rests on something of somebody's own. Later readers do not see it.",
    )
    stays_here = models.BooleanField(
        default=False,
        editable=False,
        help_text="Of an answer: whether it rests on another workspace's text that never leaves this machine.",
    )
    model = models.CharField(max_length=200, blank=True)
    seen_from = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        help_text="Key of the first message that the model was shown as it was. Empty: of all of them.",
    )
    usage: models.JSONField[Any, Any] = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="What all attempts at this answer took and cost, as of Bill.as_json().",
    )
    attempt = models.PositiveSmallIntegerField(
        default=1, help_text="Counts up with every retry in the same place."
    )
    superseded_by = models.ForeignKey(
        "self",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="supersedes",
        db_index=False,  # rarely set; the partial index below covers it
        help_text="What stands in its place: an edited question, or another answer.",
    )
    superseded_at = models.DateTimeField(
        null=True, blank=True, help_text="What was set aside at one time belongs together."
    )
    stop_requested = models.BooleanField(default=False)
    beat_at = models.DateTimeField(
        null=True, blank=True, help_text="Last sign of life of the process that answers."
    )
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["chat", "id"], name="message_list"),
            models.Index(
                fields=["superseded_by"],
                name="message_superseded",
                condition=Q(superseded_by__isnull=False),
            ),
            models.Index(
                fields=["imported_by"], name="message_imported", condition=Q(imported_by__isnull=False)
            ),
        ]
        constraints = [
            # Two concurrent requests must not start two answers that overwrite each other's context.
            models.UniqueConstraint(
                fields=["chat"], condition=Q(status="streaming"), name="one_answer_at_a_time_in_a_chat"
            )
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.public_id}"

    @property
    def is_imported(self) -> bool:
        """Whether the message was imported and its text may not be the author's own."""
        return self.imported_at is not None

    @property
    def is_marked(self) -> bool:
        """Whether the answer used personal or local-only data, as in ``MessageQuerySet.marked``."""
        return bool(self.personal) or self.stays_here

    @property
    def written_by(self) -> User | None:
        """The author. An alias, so that code can treat messages and memories alike."""
        return self.author

    @property
    def has_steps(self) -> bool:
        """Whether the answer has steps: because of its mode, a reasoning model, or files that it waited for."""
        return self.has_thoughts or Mode(self.mode).has_steps

    def is_abandoned(self, now: datetime) -> bool:
        """Return whether the process that was writing this answer is gone."""
        limit = STOPPED_AFTER if self.stop_requested else ABANDONED_AFTER
        return self.status == MessageStatus.STREAMING and (self.beat_at or self.created_at) < now - limit


class MessageWords(models.Model):
    """Full-text index of a message's workspace and of its words, without stemming. Used by ``chat.chats.chat_list``.

    Database triggers update it when a message is stored, finished or deleted, but not while an answer is streaming.
    """

    message_id = models.BigIntegerField(primary_key=True)
    words = SearchVectorField()

    class Meta:
        indexes = [GinIndex(fields=["words"], name="message_words", fastupdate=False)]

    def __str__(self) -> str:
        return f"Words of message {self.message_id}"


SUMMARY_LENGTH = 1500


class ShortTermMemory(models.Model):
    """The current topic of a chat, for prompts of its next turns and of other chats whose users may see it.

    Created after a turn with memory on, and expires. Written by ``chat.prompting.short_term_memory``.
    """

    chat = models.OneToOneField(Chat, on_delete=models.CASCADE, related_name="short_term")
    summary = models.TextField(blank=True, max_length=SUMMARY_LENGTH)
    summarised_by = models.ForeignKey(
        User,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Who wrote the summary. Empty: the model.",
    )
    summarised_in = models.CharField(
        max_length=40, blank=True, help_text="The answer, and which attempt, in which the model wrote it."
    )
    summarised_at = models.DateTimeField(null=True, blank=True)
    last_said: models.JSONField[Any, Any] = models.JSONField(
        default=list,
        blank=True,
        help_text="[role, text] of the last messages of turns with memory on, cut short.",
    )
    personal_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When the first personal answer that it tells of was written. Empty: it tells of none.",
    )
    stays_here = models.BooleanField(
        default=False,
        editable=False,
        help_text="Whether it tells of another workspace's text that never leaves this machine.",
    )
    touched_at = models.DateTimeField(help_text="The last turn with memory on, or change of the summary.")
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "short-term memories"

    def __str__(self) -> str:
        return f"Short-term memory of chat {self.chat_id}"


class Compaction(models.Model):
    """A summary that replaces a chat's older messages in prompts if they do not all fit."""

    public_id = PublicIdField(prefix="sum")
    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="compactions")
    upto = models.ForeignKey(
        Message,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The last message that it summarises; it speaks for all before, too.",
    )
    summary = models.TextField()
    is_marked = models.BooleanField(
        default=False,
        editable=False,
        help_text="Whether an answer is in it that not every reader, or not every model, may be shown.",
    )
    model = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-upto_id", "-id"]

    def __str__(self) -> str:
        return f"Summary of chat {self.chat_id} up to message {self.upto_id}"


class PassingTurn(models.Model):
    """A turn of an API client. Its text is stored until extraction; then only the fingerprint remains.

    A client sends its whole conversation with every request and retry, so the ``fingerprint`` ensures that each turn is
    extracted once. Written by ``chat.turns.client_turns``.
    """

    public_id = PublicIdField(prefix="turn")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    connection = models.ForeignKey(
        Connection, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    conversation = models.CharField(max_length=32, help_text="Of a keyed hash of its beginning.")
    fingerprint = models.CharField(
        max_length=64, unique=True, help_text="Keyed hash of all up to the question."
    )
    said: models.JSONField[Any, Any] = models.JSONField(
        default=list, blank=True, help_text="[role, text] of the question, the last, and of some before it."
    )
    shown: models.JSONField[Any, Any] = models.JSONField(
        default=list, blank=True, help_text="Words before the model that no person said."
    )
    shown_more = models.BooleanField(
        default=False, db_default=False, help_text="It was shown more than these: pictures, files, too many."
    )
    answer = models.TextField(blank=True)
    memory_ids = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    created_at = models.DateTimeField(db_index=True)
    ended_at = models.DateTimeField(null=True, blank=True, help_text="When it was handed on to be mined.")

    def __str__(self) -> str:
        return self.public_id
