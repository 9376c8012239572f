"""Models of connections to language models, and of their usage and budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryhub.encryption import seal, unseal
from memoryhub.ids import PublicIdField
from memoryhub.llm.base import Capabilities
from memoryhub.llm.metering import Price
from workspaces.models.workspaces import Workspace

if TYPE_CHECKING:
    from workspaces.models import User

NAME_LENGTH = 80
URL_LENGTH = 500
MODEL_LENGTH = 200
LEAST_CONTEXT, MOST_CONTEXT = 512, 10_000_000
ANSWER_TOKENS = 4096  # limit of an answer; a quarter of the context if that is less
HISTORY_TOKENS = 12_000  # of a conversation; older messages are summarized above this


def _price(name: str, help_text: str = "") -> models.DecimalField[Any, Any]:
    """Return a field for a price in the installation's currency (MEMORYHUB_CURRENCY)."""
    return models.DecimalField(
        name, max_digits=13, decimal_places=6, null=True, blank=True, help_text=help_text
    )


class ConnectionQuerySet(models.QuerySet["Connection"]):
    def live(self) -> ConnectionQuerySet:
        return self.filter(deleted_at=None, is_built_in=False)

    def shared(self) -> ConnectionQuerySet:
        """Return the connections that administrators made for everyone."""
        return self.filter(owner=None)

    def everyones_default(self) -> ConnectionQuerySet:
        """Return the shared connection that administrators marked as the default, if any."""
        return self.live().shared().filter(is_default=True)

    def built_in(self) -> Connection:
        """Return the row that stands for the model in the settings, created if missing.

        With it a workspace or chat can choose this model even if a shared connection is the default.
        """
        row, _made = self.get_or_create(
            is_built_in=True, defaults={"name": "Built-in model", "is_local": True}
        )
        return row

    def usable_by(self, user: User) -> ConnectionQuerySet:
        """Return the shared connections, then this person's own if the settings allow them, each sorted by name."""
        mine = Q(owner=user) if settings.PEOPLE_MAY_CONNECT else Q(pk=None)
        return (
            self.live().filter(Q(owner=None) | mine).order_by(models.F("owner").asc(nulls_first=True), "name")
        )


class Connection(models.Model):
    """A connection to a language model: shared by an administrator (``owner`` is None), or a person's own.

    Written by ``workspaces.actions.model_connections``. If a chat or workspace uses a connection that is deleted, the
    row stays with its name only, to show which connection is missing.
    """

    public_id = PublicIdField(prefix="conn")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="connections",
        help_text="Whose own it is. Empty: for everybody here.",
    )
    name = models.CharField(max_length=NAME_LENGTH)
    base_url = models.CharField("address", max_length=URL_LENGTH)
    model = models.CharField(max_length=MODEL_LENGTH)
    sealed_key = models.TextField(blank=True, editable=False)
    has_tools = models.BooleanField("can call tools", default=True)
    can_extract = models.BooleanField(
        "can extract memories", default=True, help_text="Off: rules notice what is said, and no model."
    )
    sees = models.BooleanField(
        "can see pictures",
        null=True,
        blank=True,
        help_text="Unknown: its list of models is asked, or a picture is sent once, and what came of it is kept here.",
    )
    context_tokens = models.PositiveIntegerField(
        default=16_384, help_text="What prompt and answer may hold together."
    )
    is_local = models.BooleanField(
        "runs on this machine",
        default=False,
        help_text="Workspaces whose memories never leave this machine may use it. It is then connected to at internal "
        "addresses only.",
    )
    is_default = models.BooleanField(
        "default for everyone",
        default=False,
        db_default=False,
        help_text="Answers wherever nothing else is chosen, in place of the built-in model. One alone can be it.",
    )
    is_built_in = models.BooleanField(default=False, db_default=False, editable=False)
    price_in = _price("price of a million tokens in")
    price_cached = _price("of them from the provider's cache", "Empty: as the others.")
    price_out = _price("price of a million tokens out", "Both empty: nobody is told what an answer costs.")
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ConnectionQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(
                models.F("is_built_in"), condition=Q(is_built_in=True), name="one_built_in_connection"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).netloc

    @property
    def has_key(self) -> bool:
        return bool(self.sealed_key)

    @property
    def is_shared(self) -> bool:
        return self.owner_id is None

    @property
    def api_key(self) -> str:
        """Return the decrypted API key, or an empty string.

        Raises Unsealable if no current encryption key decrypts it.
        """
        return unseal(self.sealed_key) if self.sealed_key else ""

    def set_key(self, key: str) -> None:
        self.sealed_key = seal(key) if key else ""

    @property
    def price(self) -> Price | None:
        """Return the price per million tokens, or None if the input or output price is not set."""
        if self.price_in is None or self.price_out is None:
            return None
        return Price(self.price_in, self.price_out, self.price_cached)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            has_tools=self.has_tools,
            can_extract=self.can_extract,
            context_tokens=self.context_tokens,
            local=self.is_local,
            sees=self.sees,
            answer_tokens=min(ANSWER_TOKENS, self.context_tokens // 4),
            history_tokens=min(HISTORY_TOKENS, self.context_tokens),
        )


# Daily usage and cost of models, and monthly budgets. Only numbers are stored, no texts.


class Purpose(models.TextChoices):
    ANSWER = "answer", _("Answers")
    MEMORY = "memory", _("Noticing what to remember")
    SUMMARY = "summary", _("Summaries of long chats")
    RUN = "run", _("Runs and research")
    PROGRAM = "program", _("Other programs")
    INDEX = "index", _("Making things findable")


class ModelUse(models.Model):
    """Daily sum of one person's use of one model in one workspace for one purpose. Written by ``usage_records``.

    A thousand people make about ten thousand rows a month. When a person or workspace is deleted, the rows stay without
    the reference. Rows with the purpose INDEX have neither, because one embedding call may serve many workspaces.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.SET_NULL, null=True, related_name="+", db_index=False
    )
    user: models.ForeignKey[User | None] = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+", db_index=False
    )
    day = models.DateField(help_text="In UTC.")
    purpose = models.CharField(max_length=10, choices=Purpose.choices)
    model = models.CharField(max_length=200, blank=True, help_text="Empty: of somebody's own connection.")
    is_embedded = models.BooleanField(default=False, help_text="Of this installation: no budget counts it.")
    calls = models.BigIntegerField(default=0)
    estimated = models.BigIntegerField(
        default=0, help_text="Calls whose provider did not say what they took."
    )
    unpriced = models.BigIntegerField(default=0, help_text="Calls that nobody had set a price of.")
    tokens_in = models.BigIntegerField(default=0)
    cached = models.BigIntegerField(default=0, help_text="Of those in, from the provider's cache.")
    tokens_out = models.BigIntegerField(default=0)
    reasoning = models.BigIntegerField(default=0, help_text="Of those out, thoughts.")
    memory = models.BigIntegerField(default=0, help_text="Of those in, recalled memories; estimated.")
    documents = models.BigIntegerField(default=0, help_text="Of those in, passages of documents; estimated.")
    tools = models.BigIntegerField(
        default=0, help_text="Of those in, tools and what they returned; estimated."
    )
    cost = models.DecimalField(
        max_digits=24,
        decimal_places=8,
        default=0,
        help_text="In the installation's currency, as far as priced.",
    )

    class Meta:
        verbose_name_plural = "use of models"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "user", "day", "purpose", "model", "is_embedded"],
                name="one_sum_a_day",
            ),
            models.UniqueConstraint(
                fields=["day", "model"], condition=Q(purpose=Purpose.INDEX), name="one_sum_of_index_a_day"
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "day"], name="use_of_workspace"),
            models.Index(fields=["user", "day"], name="use_of_person"),
            models.Index(fields=["day"], name="use_of_day"),
        ]

    def __str__(self) -> str:
        return f"{self.calls:,} calls on {self.day}"


class Budget(models.Model):
    """Monthly limit for one workspace, or for one person over all workspaces.

    Written by ``spending.budgets``.
    """

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, null=True, related_name="budget")
    user: models.OneToOneField[User | None] = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="budget"
    )
    tokens = models.BigIntegerField(
        null=True, blank=True, help_text="In and out together. Empty: any number."
    )
    money = models.DecimalField(
        max_digits=13, decimal_places=2, null=True, blank=True, help_text="Empty: any amount."
    )
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(workspace__isnull=False, user=None) | Q(workspace=None, user__isnull=False),
                name="budget_of_one",
            )
        ]

    def __str__(self) -> str:
        return f"Budget {self.pk}"
