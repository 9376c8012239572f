"""Memories with their history and sources, and tombstones of forgotten texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce, Now
from django.db.models.lookups import Exact
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from django.utils.translation import gettext_noop as noop

from memoryhub.ids import PublicIdField
from memoryhub.llm.base import Speaker
from workspaces.models import Agent, Membership, PassageVector, Role, User, Workspace
from workspaces.models.index import AGENT_PLACES, has_vector, place_of


class KeyInSameWorkspace(models.ForeignKey[Any, Any]):
    """A foreign key whose joins compare the workspaces too, so that the table can be distributed (docs/scale.md)."""

    def get_extra_restriction(self, alias: Any, related_alias: Any) -> Any:
        workspace: Any = self.model._meta.get_field("workspace")
        return Exact(workspace.get_col(alias), workspace.get_col(related_alias))

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        """Return the field as a plain foreign key for migrations, because the database column is one."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.ForeignKey", list(args), dict(kwargs)


CONTENT_LENGTH = 2000
KEY_LENGTH = 200
KEY_IS_UNIQUE = "memory_key"  # the name of the constraint
CATEGORY_LENGTH = 50
CATEGORIES = (noop("preference"), noop("fact"), noop("instruction"), noop("decision"), noop("event"))
MEMORY = 1  # the number of memories as a kind of passage (memories.indexing)
PLACE = f"coalesce(-owner_id, {AGENT_PLACES} + agent_id, workspace_id)"  # Memory.place in SQL
# Memory.written_by in SQL.
WRITTEN_BY = "CASE WHEN m.edited_at IS NULL THEN m.author_id ELSE m.edited_by_id END"


class Scope(models.TextChoices):
    WORKSPACE = "workspace", "Everyone in the workspace"
    USER = "user", "Its owner, in every workspace"
    AGENT = "agent", "Everyone, in chats with its assistant"


class SourceType(models.TextChoices):
    """The built-in sources of memories. API clients may store labels of their own, so the column has no choices."""

    USER = "user", later("Saved by a person")
    MODEL = "model", later("Saved by the model")
    AUTO_CHAT = "auto_chat", later("From a chat")
    AUTO_DEEP_THINK = "auto_deep_think", later("From thinking")
    AUTO_RESEARCH = "auto_research", later("From research")
    AUTO_COMPACTION = "auto_compaction", later("From a summary")
    IMPORT = "import", later("Imported")


# Computed once, because ``choices`` is slower than rendering a row.
SOURCE_LABELS: dict[str, str | Promise] = dict(SourceType.choices)


AUTOMATIC = Q(source_type=SourceType.MODEL) | Q(source_type__startswith="auto_")


def is_automatic(source_type: str) -> bool:
    """Return whether a memory with this source was saved by a model or extracted, and not by a person or an import.

    Such memories count towards MEMORYHUB_MAX_MEMORIES, above which the least useful of them are deleted.
    """
    return source_type == SourceType.MODEL or source_type.startswith("auto_")


# Memories that may replace an older one, about which nobody has decided yet.
MAY_REPLACE = Q(
    may_replace__isnull=False, may_replace__deleted_at=None, may_replace__replaced_by__isnull=True
)


class Review(models.TextChoices):
    NONE = "", "Not needed"
    PENDING = "pending", "Waits for review"
    REJECTED = "rejected", "Rejected"


def live_at(now: datetime | Now) -> Q:
    """Return the condition of memories that are neither deleted nor expired."""
    return Q(deleted_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))


def live_sql(table: str = "m") -> str:
    """Return ``live_at`` as SQL for this table or alias, with the parameter ``now``."""
    return f"{table}.deleted_at IS NULL AND ({table}.expires_at IS NULL OR {table}.expires_at > %(now)s::timestamptz)"


class MemoryQuerySet(models.QuerySet["Memory"]):
    def live(self, now: datetime | None = None) -> MemoryQuerySet:
        """Filter to memories that are neither deleted nor expired."""
        return self.filter(live_at(now or timezone.now()))

    def not_over(self, at: datetime) -> MemoryQuerySet:
        """Exclude memories whose validity has ended by the time ``at``."""
        return self.filter(Q(valid_to=None) | Q(valid_to__gt=at))

    def standing(self) -> MemoryQuerySet:
        """Filter to memories that are not deleted, or that were merged into one that is not deleted."""
        last = Revision.objects.filter(memory=models.OuterRef("pk")).order_by("-pk")
        into = Memory.objects.filter(public_id=models.OuterRef("merged_into"), deleted_at=None)
        rows = self.alias(merged_into=models.Subquery(last.values_list(KT("before__into"))[:1]))
        return rows.filter(Q(deleted_at=None) | models.Exists(into))

    def visible_to(self, user: User) -> MemoryQuerySet:
        """Filter to the memories of this person's workspaces, without the personal memories of others."""
        return self.filter(workspace__memberships__user=user).without_others_personal(user)

    def without_others_personal(self, user: User) -> MemoryQuerySet:
        """Exclude personal memories of other people. The caller checks that the user is a member of the workspaces."""
        return self.filter(Q(owner=None) | Q(owner=user))

    def forgettable_by(self, user: User) -> MemoryQuerySet:
        """Filter to those this person may forget for good, deleted ones too. ``require_right`` checks one memory."""
        places = Membership.objects.filter(user=user)
        shared = Q(workspace__in=places.filter(role=Role.OWNER).values("workspace"))
        shared |= Q(author=user, workspace__in=places.filter(role=Role.EDITOR).values("workspace"))
        return self.filter(Q(owner=user) | Q(shared, owner=None))

    def recallable_in(self, workspace: Workspace, user: User, agent: Agent | None = None) -> MemoryQuerySet:
        """Filter to memories that recall may use in this person's chats here. ``agent`` is the chat's assistant."""
        here = Q(workspace=workspace, scope=Scope.WORKSPACE) | Q(scope=Scope.USER, owner=user)
        if agent is not None:
            here |= Q(workspace=workspace, agent=agent)
        return self.visible_to(user).filter(here)

    def listed(self) -> MemoryQuerySet:
        """Order newest first, and load the related rows that a list shows."""
        rows = self.select_related("author", "edited_by", "imported_by", "workspace", "agent", "may_replace")
        return rows.order_by("-created_at", "-id")

    def after(self, moment: datetime | None, pk: int, *, column: str = "created_at") -> MemoryQuerySet:
        """Filter to the memories that follow the one with this time and primary key in a list, newest first."""
        return self.filter(Q(**{f"{column}__lt": moment}) | Q(**{column: moment}, pk__lt=pk))

    def without_vector(self, model: str) -> MemoryQuerySet:
        return self.filter(~has_vector(MEMORY, model))


class Memory(models.Model):
    public_id = PublicIdField(prefix="mem")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memories")
    scope = models.CharField(max_length=10, choices=Scope.choices, default=Scope.WORKSPACE)
    owner = models.ForeignKey(
        User,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="owned_memories",
        help_text="Whose personal memory this is. Personal ones lie in their owner's default workspace.",
    )
    agent = models.ForeignKey(
        Agent,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        db_index=False,  # the partial index memory_agent covers the few rows that have one
        related_name="memories",
        help_text="Whose memory this is: it is recalled in chats with this assistant only.",
    )
    content = models.TextField(max_length=CONTENT_LENGTH)
    summary = models.TextField(null=True, blank=True, max_length=CONTENT_LENGTH)  # noqa: DJ001  null says "never made"
    key = models.CharField(max_length=KEY_LENGTH, null=True, blank=True)  # noqa: DJ001  null never collides
    category = models.CharField(max_length=CATEGORY_LENGTH, null=True, blank=True)  # noqa: DJ001
    tags = ArrayField(models.CharField(max_length=50), default=list, blank=True)
    importance = models.FloatField(default=0.5, validators=[MinValueValidator(0), MaxValueValidator(1)])
    pinned = models.BooleanField(default=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    valid_from = models.DateTimeField(
        null=True, blank=True, help_text="From when on it holds. Empty: nobody said."
    )
    valid_to = models.DateTimeField(
        null=True, blank=True, help_text="Until when it holds or held. Empty: nobody said."
    )
    replaced_by = KeyInSameWorkspace(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,  # the partial index memory_replaced covers the few rows that have one
        related_name="replaces",
        help_text="The newer memory that holds instead.",
    )
    author = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="memories"
    )
    edited_by = models.ForeignKey(
        User,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,  # the partial index memory_edited covers the few rows that have one
        related_name="+",
        help_text="Who last changed the text, where that is not its author.",
    )
    edited_at = models.DateTimeField(null=True, blank=True, editable=False)  # kept when that person leaves
    imported_by = models.ForeignKey(
        User,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,  # the partial index memory_imported covers the few rows that have one
        related_name="+",
        help_text="Who imported these words under another person's name.",
    )
    imported_at = models.DateTimeField(null=True, blank=True, editable=False)  # kept when that person leaves
    brought_by = models.BigIntegerField(
        null=True,
        blank=True,
        editable=False,
        help_text="Key of the person who brought it in another's name, whose room it takes, also once they are gone.",
    )
    source_type = models.CharField(max_length=50, default=SourceType.USER)
    # Public ids, not foreign keys, because they outlive the chat, and this app does not import chats.
    source_chat_id = models.CharField(max_length=32, blank=True, default="")
    source_message_id = models.CharField(max_length=32, blank=True, default="")
    source_excerpt = models.TextField(blank=True, default="")
    source_details = models.JSONField(default=dict, blank=True)
    may_replace = KeyInSameWorkspace(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="may_be_replaced_by",
        help_text="An older memory that says nearly the same with another value.",
    )
    # SHA-256 of the normalized content, to find equal memories.
    content_hash = models.CharField(max_length=64, editable=False)
    # The words, with the scope as a lexeme; see memories.indexing.
    search = SearchVectorField(editable=False, null=True)
    embedding_failed_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Saved without a search for near-duplicates, so none follows when its vector is computed later
    # (writing.vector_backfill).
    own_row = models.BooleanField(default=False, db_default=False, editable=False)
    hidden_from_profile_of = models.ManyToManyField(
        User, blank=True, related_name="+", help_text="The people who hid it from their profile."
    )
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    last_accessed_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    # A proposal has a deleted_at as well, so all code that skips deleted rows skips it (writing.review).
    review = models.CharField(max_length=10, choices=Review.choices, default=Review.NONE, blank=True)
    # Version of the rules for credentials by which it was last checked (memories.forgetting.remaining_copies).
    secret_rules = models.IntegerField(default=0, editable=False)

    objects = MemoryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "memories"
        ordering = ["-created_at", "-id"]
        # For staff in the admin, because no other permission includes personal memories.
        permissions = [("read_personal_memory", "Can read memories that are one person's alone")]
        indexes = [
            models.Index(fields=["brought_by"], name="memory_brought", condition=Q(brought_by__isnull=False)),
            models.Index(fields=["edited_by"], name="memory_edited", condition=Q(edited_by__isnull=False)),
            models.Index(
                fields=["imported_by"], name="memory_imported", condition=Q(imported_by__isnull=False)
            ),
            models.Index(
                fields=["workspace", "-created_at", "-id"], name="memory_list", condition=Q(deleted_at=None)
            ),
            models.Index(
                fields=["workspace", "content_hash"], name="memory_equal", condition=Q(deleted_at=None)
            ),
            models.Index(
                fields=["agent", "-created_at", "-id"],
                name="memory_agent",
                condition=Q(agent__isnull=False),
            ),
            models.Index(fields=["source_chat_id"], name="memory_chat", condition=~Q(source_chat_id="")),
            models.Index(
                fields=["source_message_id"], name="memory_message", condition=~Q(source_message_id="")
            ),
            # Memories that count towards the limit, counted after every automatic save.
            models.Index(
                fields=["workspace", "owner"],
                name="memory_automatic",
                condition=Q(deleted_at=None) & (Q(source_type="model") | Q(source_type__startswith="auto_")),
            ),
            GinIndex(fields=["search"], name="memory_words"),
            # The order of lists over all workspaces, and the columns of the admin's charts.
            models.Index(fields=["created_at"], name="memory_days", include=["source_type", "workspace"]),
            # Lists of the admin over all workspaces, each with few rows.
            models.Index(
                fields=["-created_at", "-id"], name="memory_forgotten", condition=Q(deleted_at__isnull=False)
            ),
            # Memories to be purged, queried every minute.
            models.Index(fields=["deleted_at"], name="memory_purge", condition=Q(deleted_at__isnull=False)),
            models.Index(
                fields=["workspace", "-created_at", "-id"],
                name="memory_proposals",
                condition=Q(review="pending"),
            ),
            models.Index(fields=["-created_at", "-id"], name="memory_pinned", condition=Q(pinned=True)),
            models.Index(
                fields=["replaced_by"], name="memory_replaced", condition=Q(replaced_by__isnull=False)
            ),
            models.Index(fields=["expires_at"], name="memory_expiry", condition=Q(expires_at__isnull=False)),
            models.Index(
                fields=["embedding_failed_at"],
                name="memory_not_embedded",
                condition=Q(embedding_failed_at__isnull=False),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(importance__gte=0, importance__lte=1), name="importance_0_to_1"
            ),
            models.CheckConstraint(
                condition=Q(valid_from=None) | Q(valid_to=None) | Q(valid_from__lte=models.F("valid_to")),
                name="valid_from_before_valid_to",
            ),
            models.CheckConstraint(
                condition=Q(replaced_by=None) | Q(valid_to__isnull=False), name="replaced_ones_have_an_end"
            ),
            models.CheckConstraint(
                condition=Q(review="") | Q(deleted_at__isnull=False), name="proposals_are_not_in_use"
            ),
            # The scope follows from owner and agent (scope_says_whose). An expired memory keeps its key
            # until another takes it, because an index condition cannot depend on the time.
            models.UniqueConstraint(
                "workspace",
                "key",
                Coalesce("owner", 0, output_field=models.BigIntegerField()),
                Coalesce("agent", 0, output_field=models.BigIntegerField()),
                name=KEY_IS_UNIQUE,
                condition=Q(deleted_at=None, key__isnull=False),
            ),
            models.CheckConstraint(
                condition=Q(scope=Scope.WORKSPACE, owner=None, agent=None)
                | Q(scope=Scope.USER, owner__isnull=False, agent=None)
                | Q(scope=Scope.AGENT, owner=None, agent__isnull=False),
                name="scope_says_whose",
            ),
        ]

    def __str__(self) -> str:
        return self.content if len(self.content) <= 80 else self.content[:79] + "…"

    def _do_update(self, base_qs: models.QuerySet[Memory], *args: Any) -> Any:
        """Name the workspace in the UPDATE, so that the table can be distributed by workspace (docs/scale.md)."""
        return super()._do_update(base_qs.filter(workspace=self.workspace_id), *args)

    @property
    def place(self) -> int:
        """Return the number of the scope, within which memories are searched and compared (docs/decisions/0011)."""
        return place_of(self.workspace_id, owner_id=self.owner_id, agent_id=self.agent_id)

    def has_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def is_over(self, at: datetime) -> bool:
        return self.valid_to is not None and self.valid_to <= at

    @property
    def validity(self) -> str:
        """Return the validity in the reader's language, such as "until March 2026", or "" if none is stored."""
        begin, end = (moment and _bound(moment) for moment in (self.valid_from, self.valid_to))
        if begin and end:
            return _("from %(begin)s until %(end)s") % {"begin": begin, "end": end}
        if end:
            return _("until %(end)s") % {"end": end}
        return _("from %(begin)s") % {"begin": begin} if begin else ""

    @property
    def embeddings(self) -> models.QuerySet[PassageVector]:
        return PassageVector.objects.filter(kind=MEMORY, place=self.place, ref=self.pk)

    @property
    def written_by(self) -> User | None:
        """Return the author of the current text: the last person who edited it, or else the memory's author."""
        return self.author if self.edited_at is None else self.edited_by

    @property
    def rests_on(self) -> dict[str, str] | None:
        """Return the source of the text as ``speaker`` and ``id``, or None if it is a person's own words."""
        named = self.source_details.get("rests_on")
        if not isinstance(named, dict) or named.get("speaker") not in tuple(Speaker):
            return None
        given_id = named.get("id")
        return {"speaker": named["speaker"], "id": given_id if isinstance(given_id, str) else ""}

    @property
    def is_imported(self) -> bool:
        """Return whether one person imported these words under another person's name."""
        return self.imported_at is not None

    @property
    def is_live(self) -> bool:
        return self.deleted_at is None and not self.has_expired(timezone.now())

    @property
    def replaced(self) -> Memory | None:
        """Return the older memory that this one has replaced, if any."""
        older = self.may_replace
        return older if older is not None and older.replaced_by_id == self.pk else None

    @property
    def possibly_replaced(self) -> Memory | None:
        """Return the older memory that this one may replace; None once it was replaced or deleted."""
        older = self.may_replace
        return older if older is not None and older.is_live and older.replaced_by_id is None else None

    @property
    def is_automatic(self) -> bool:
        return is_automatic(self.source_type)

    @property
    def source_label(self) -> str:
        return str(SOURCE_LABELS.get(self.source_type, self.source_type))


def _bound(moment: datetime) -> str:
    """Format the begin or end of a validity: as a month at the first or last moment of a month, else as a day."""
    at = moment.astimezone(UTC)
    is_edge = at == at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    is_edge = is_edge or (at + timedelta(microseconds=1)).day == 1 != at.day
    return date_format(at, "YEAR_MONTH_FORMAT" if is_edge else "DATE_FORMAT")


class RevisionAction(models.TextChoices):
    CREATE = "create", later("Saved")
    EDIT = "edit", later("Edited")
    DELETE = "delete", later("Forgotten")
    RESTORE = "restore", later("Restored")
    EVICT = "evict", later("Made room")
    MERGE = "merge", later("Merged with another one")
    PROPOSE = "propose", later("Proposed")
    APPROVE = "approve", later("Approved")
    REJECT = "reject", later("Rejected")
    HIDE = "hide", later("Hidden: looks like a credential")
    KEY = "key", later("Its key went to another")
    ALSO_SAID = "also_said", later("Also said as")
    REPLACE = "replace", later("Replaced by a newer one")


class Revision(models.Model):
    """A change of a memory, with its time and the person who made it (None: the system).

    ``before`` holds the old values of the changed fields, and for some actions the id of the memory that took the key
    (``key_went_to``) or that this one was merged into (``into``), or another wording of the memory (``content``).
    """

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="revisions")
    action = models.CharField(max_length=10, choices=RevisionAction.choices)
    by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    before: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    at = models.DateTimeField(default=timezone.now)
    imported = models.BooleanField(
        default=False, db_default=False, help_text="A file says so that somebody else imported."
    )

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.get_action_display()} {self.at:%Y-%m-%d %H:%M}"


class MemorySource(models.Model):
    """The public id of a chat or message that an API caller named as a source. It outlives the chat."""

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, db_index=False, related_name="sources")
    source_id = models.CharField(max_length=32)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["source_id"], name="memory_of_source")]
        constraints = [models.UniqueConstraint(fields=["memory", "source_id"], name="one_source_once")]

    def __str__(self) -> str:
        return self.source_id


class Tombstone(models.Model):
    """A keyed hash of a forgotten text, which programs must not save again."""

    place = models.BigIntegerField(help_text="Where the memory was looked for; see Memory.place.")
    digest = models.CharField(max_length=64)  # HMAC-SHA256, hexadecimal
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["place", "digest"], name="one_tombstone_a_text")]

    def __str__(self) -> str:
        return f"something in place {self.place}"
