"""Models of users, workspaces, memberships, assistants and sessions."""

from __future__ import annotations

import unicodedata
from contextlib import suppress
from datetime import datetime
from functools import cache
from string import ascii_uppercase
from typing import Any, ClassVar

from confusable_homoglyphs.categories import unique_aliases
from confusable_homoglyphs.utils import load
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import connection, models, transaction
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_lazy as later

from memoryhub.ids import PublicIdField

# Scripts that one name may combine: Unicode's "highly restrictive" level (UTS 39, 5.2).
TOGETHER = (
    {"LATIN", "HAN", "HIRAGANA", "KATAKANA"},
    {"LATIN", "HAN", "BOPOMOFO"},
    {"LATIN", "HAN", "HANGUL"},
)
ANY_SCRIPT = {"COMMON", "INHERITED"}
FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0")  # invisible
STROKES = frozenset("'\u0640\u07fa")  # apostrophe, and the marks that stretch Arabic and N'Ko
DIRECTION = "\u200e"  # surrounds right-to-left text in the data
UNSEEN = _("This name contains invisible characters.")
MIXED = _("This name mixes alphabets, so it could be mistaken for another. Use only one.")
ALIKE = _("This name, or one that looks like it, is taken. Choose another.")
# Django's characters, and the apostrophe of O'Neil@example.org, which company directories use.
SIGNS = RegexValidator(r"^[\w.@+'-]+\Z", _("Use only letters, numbers and these signs: @ . + - _ '"))
ENDS = ".@+-_'"
_HELD = 0x757365726E616D65  # "username": key of the lock for checking and creating names


def is_invisible(sign: str) -> bool:
    return unicodedata.category(sign) in {"Cc", "Cf"} or sign in FILLERS


def check_username(name: str, others: Any) -> None:
    """Raise ValidationError if a new name has invisible characters, mixes scripts, or looks like another user's.

    ``others``: a queryset of the users to compare with.
    """
    if any(is_invisible(sign) for sign in name):
        raise ValidationError(UNSEEN, code="unseen")
    scripts = unique_aliases(name) - ANY_SCRIPT
    if len(scripts) > 1 and not any(scripts <= group for group in TOGETHER):
        raise ValidationError(MIXED, code="mixed")
    if others.filter(looks__overlap=looks_of(name)).exists():
        raise ValidationError(ALIKE, code="alike")


def lock_usernames() -> None:
    """Lock the creation of user names until the transaction ends.

    Otherwise two concurrent transactions could create names that look alike, because neither sees the other's.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_HELD])


def looks_of(name: str) -> list[str]:
    """Return the skeletons of a name (Unicode TR39): of the name as written and of the name in lower case.

    Two names that share a skeleton look alike. Case, width, accents, invisible characters, strokes and signs at the
    ends are ignored: ``nora.`` could be read as ``nora`` before a full stop. Confusable letters are equal: ``I``,
    ``l``, ``i`` and ``1``; ``rn`` and ``m``; small capitals and their letters.
    """
    name = name.strip(ENDS) or name
    return sorted({_skeleton(name), _skeleton(name.casefold())})


def _skeleton(text: str) -> str:
    """Return the confusable skeleton of a text.

    Characters are replaced until nothing changes, because a replacement may itself be confusable in lower case.
    """
    alike = _bare("".join(_prototypes().get(sign, sign) for sign in _bare(text))).casefold()
    return alike.replace("i", "l") if alike == text else _skeleton(alike)


def _bare(text: str) -> str:
    """Return the text without accents, width variants, strokes and invisible characters."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if not _is_nothing(sign))


def _is_nothing(sign: str) -> bool:
    if sign in FILLERS or sign in STROKES or unicodedata.category(sign) in {"Mn", "Me", "Cf", "Cc"}:
        return True
    return unicodedata.name(sign, "").startswith("MODIFIER LETTER ")


@cache
def _prototypes() -> dict[str, str]:
    """Return the prototype of each character in Unicode's table of confusables. Reading the table takes 70 ms, once."""
    table = {sign: [other["c"] for other in others] for sign, others in load("confusables.json").items()}
    prototypes = {}
    for sign, (first, *more) in table.items():
        # A character lists only its prototype, a prototype all its characters. In a pair each lists the other.
        lone_pair = len(table[first]) == 1
        if len(sign) == 1 and not more and (not lone_pair or (len(first), first) > (1, sign)):
            prototypes[sign] = first.replace(DIRECTION, "")
    for letter in ascii_uppercase:
        with suppress(KeyError):  # there is no small capital X
            small = unicodedata.lookup(f"LATIN LETTER SMALL CAPITAL {letter}")
            prototypes |= {
                sign: letter for sign in (small, prototypes.get(small, small)) if not sign.isascii()
            }
    for sign in list(prototypes):
        if prototypes.get(prototypes[sign].casefold(), "").casefold() == sign.casefold():
            del prototypes[sign]  # two characters map to each other: keep one mapping
    return prototypes


class User(AbstractUser):
    """A person: Django's user with a public id, so that no primary key is exposed."""

    public_id = PublicIdField(prefix="usr")
    username = models.CharField(
        max_length=150,
        unique=True,
        validators=[SIGNS],
        error_messages={"unique": later("A user with that username already exists.")},
    )
    memory_default = models.BooleanField(
        "memory on by default",
        null=True,
        blank=True,
        help_text="Automatic memory in this person's chats. Empty: not asked yet.",
    )
    short_term_everywhere = models.BooleanField(
        "short-term memory across workspaces",
        default=False,
        help_text="Their chats are told of their recent chats in other workspaces, too.",
    )
    profile_in_chats = models.BooleanField(
        "profile in chats",
        default=False,
        db_default=False,
        help_text="What memory says of them and of the workspace in general is given to the model in their chats.",
    )
    language = models.CharField(
        max_length=20,
        default="",
        blank=True,
        help_text="Of the pages and mails they read, as the settings name it. Empty: as their browser asks.",
    )

    # Version of the profile picture (PersonPicture), part of its URL. Empty: no picture.
    picture_version = models.CharField(max_length=16, default="", db_default="", blank=True, editable=False)

    # Skeletons of the username (``looks_of``), which no new name may share. Set by ``save``.
    looks = ArrayField(models.TextField(), default=list, editable=False)

    class Meta(AbstractUser.Meta):
        indexes: ClassVar = [GinIndex(fields=["looks"], name="user_looks")]

    @property
    def shown_name(self) -> str:
        """Return the display name, or the user name if none is set."""
        return self.get_full_name() or self.username

    @property
    def attributed_name(self) -> str:
        """Return the display name followed by the unique user name."""
        name = self.shown_name
        return name if name == self.username else f"{name} ({self.username})"

    def clean(self) -> None:
        super().clean()
        if self.username and self._is_renamed():
            try:
                check_username(self.username, User.objects.exclude(pk=self.pk))
            except ValidationError as error:
                raise ValidationError({"username": error}) from None

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the user. Raises ValidationError for a new or changed user name that looks like another user's."""
        fields = kwargs.get("update_fields")
        if (fields is not None and "username" not in fields) or not self._is_renamed():
            return super().save(*args, **kwargs)
        with transaction.atomic():
            lock_usernames()
            check_username(self.username, User.objects.exclude(pk=self.pk))
            self.looks = looks_of(self.username)
            if fields is not None:
                kwargs["update_fields"] = {*fields, "looks"}
            return super().save(*args, **kwargs)

    def _is_renamed(self) -> bool:
        """Return whether the user is new or its name differs from the stored one. At most one query.

        A deferred name counts as unchanged.
        """
        if self._state.adding or "username" not in self.__dict__:
            return self._state.adding
        stored = User.objects.filter(pk=self.pk).values_list("username", flat=True).first()
        return stored != self.username


class PersonPicture(models.Model):
    """Profile picture, re-encoded as a small square. Written by ``workspaces.views.accounts``."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, primary_key=True, related_name="picture")
    jpeg = models.BinaryField()

    class Meta:
        verbose_name_plural = "pictures"

    def __str__(self) -> str:
        return f"Of {self.user_id}"


class Role(models.TextChoices):
    OWNER = "owner", later("Owner")
    EDITOR = "editor", later("Editor")
    VIEWER = "viewer", later("Viewer")

    @property
    def rank(self) -> int:
        return {Role.VIEWER: 1, Role.EDITOR: 2, Role.OWNER: 3}[self]

    def allows(self, need: Role) -> bool:
        return self.rank >= need.rank


class WorkspaceQuerySet(models.QuerySet["Workspace"]):
    def visible_to(self, user: User) -> WorkspaceQuerySet:
        """Return the workspaces of which this person is a member, annotated with their ``role``."""
        role = models.F("memberships__role")
        return self.filter(memberships__user=user).annotate(role=role)  # type: ignore[no-redef]  # the model declares it


class Workspace(models.Model):
    """The tenant boundary: chats, memories and documents each belong to one workspace."""

    role: str  # the reader's, where ``visible_to`` has annotated it
    public_id = PublicIdField(prefix="ws")
    name = models.CharField(max_length=120)
    description = models.TextField(max_length=2000, blank=True)
    default_of = models.OneToOneField(
        User,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="default_workspace",
        help_text="The person whose default workspace this is, if it is one.",
    )
    made_by = models.ForeignKey(
        User,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Who is charged for it. Nobody, if it is somebody's default one.",
    )
    private_short_term = models.BooleanField(
        "private chats in short-term memory",
        default=False,
        help_text="A person's private chats here are told of, in short, in that person's other chats.",
    )
    reviews_proposals = models.BooleanField(
        default=False, help_text="What viewers or models propose waits for an editor."
    )
    connection = models.ForeignKey(
        "Connection",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="workspaces",
        help_text="Which model answers here, where a chat has not chosen another. Empty: the configured one.",
    )
    share_links = models.BooleanField(
        default=True,
        db_default=True,
        help_text="Chats here may be read by a link, by whoever has it, without signing in.",
    )
    local_only = models.BooleanField(
        "memories never leave this machine",
        default=False,
        help_text="Only models and embedders that are marked local are asked about what is said and stored here.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_default(self) -> bool:
        return self.default_of_id is not None


class Membership(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [models.UniqueConstraint(fields=["workspace", "user"], name="one_membership_a_person")]

    status = "member"  # in the list of members

    def __str__(self) -> str:
        return f"{self.user} in {self.workspace}: {self.role}"

    @property
    def joined_at(self) -> datetime:
        return self.created_at


class AgentQuerySet(models.QuerySet["Agent"]):
    def in_use(self) -> AgentQuerySet:
        """Return the assistants that are not archived."""
        return self.filter(archived_at=None)

    def visible_to(self, user: User) -> AgentQuerySet:
        """Return the assistants of this person's workspaces, annotated with the person's ``role`` there."""
        role = models.F("workspace__memberships__role")
        return self.filter(workspace__memberships__user=user).annotate(role=role)  # type: ignore[no-redef]  # the model declares it


class Agent(models.Model):
    """An assistant of a workspace. Its instructions are part of the prompt in every chat with it.

    It is archived instead of deleted, so that its chats and memories stay.
    """

    role: str  # the reader's, where ``visible_to`` has annotated it
    public_id = PublicIdField(prefix="agent")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="agents")
    name = models.CharField(max_length=80)
    description = models.CharField(max_length=300, blank=True)
    instructions = models.TextField(max_length=4000, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    imported = models.BooleanField(
        default=False, db_default=False, help_text="Somebody else imported it under its author's name."
    )
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = AgentQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(
                "workspace",
                Lower("name"),
                condition=models.Q(archived_at=None),
                name="one_agent_of_a_name",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_archived(self) -> bool:
        return self.archived_at is not None


class SignIn(models.Model):
    """A browser in which a person is signed in. Written by ``accounts.sessions``.

    Django has no list of a user's sessions. With this one a person can sign out a lost phone.
    """

    public_id = PublicIdField(prefix="ses")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sign_ins")
    session_key = models.CharField(max_length=40, unique=True, editable=False)
    device = models.CharField(
        max_length=60, blank=True
    )  # such as "Firefox on Linux", from the User-Agent header
    network = models.CharField(max_length=50, blank=True)  # the address without its last part
    created_at = models.DateTimeField(default=timezone.now)
    last_seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-last_seen_at", "-id"]

    def __str__(self) -> str:
        return f"{self.user} with {self.device or 'an unknown browser'}"


class Spent(models.Model):
    """State of one rate limit of a person. Only ``workspaces.quotas`` reads and writes it."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    limit = models.CharField(max_length=20)
    paid_until = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "limit"], name="one_count_a_limit")]

    def __str__(self) -> str:
        return f"{self.limit} of {self.user_id}"


class DoneRequest(models.Model):
    """A completed request with an ``Idempotency-Key``, without its text.

    Stored for a day by ``workspaces.api.idempotency``.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=64, unique=True)  # keyed hash of the sender and the Idempotency-Key
    fingerprint = models.CharField(max_length=64)  # keyed hash of the request
    note: models.JSONField[Any, Any] = models.JSONField()  # ids, numbers and flags of the result
    done_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.name[:8]} {self.done_at:%Y-%m-%d %H:%M}"


# Retention rules of a workspace. Written by ``workspaces.retention``.


def _days(what: str) -> models.PositiveIntegerField[int | None, int | None]:
    return models.PositiveIntegerField(null=True, blank=True, help_text=f"Days that {what}. Empty: for good.")


class Retention(models.Model):
    """Retention rules of a workspace. Without a row nothing is deleted because of its age."""

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, related_name="retention")
    set_by = models.ForeignKey(
        User,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="The owner who set it: of personal memories it concerns theirs alone.",
    )
    chats = _days("a chat is kept after its last message")
    memories = _days("a memory is kept that nobody changed and no answer used")
    documents = _days("a document is kept after its last change")
    artifacts = _days("an artifact is kept after its last change")
    activity = _days("an entry of the activity is kept")
    updated_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"Retention {self.pk}"
