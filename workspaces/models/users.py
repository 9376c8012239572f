"""Models of users, their sessions and API keys, OAuth programs, and unsent mail."""

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
IGNORED_MARKS = frozenset("'\u0640\u07fa")  # apostrophe, and the marks that stretch Arabic and N'Ko
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
    """Return the text in NFKD, without accents, ``IGNORED_MARKS``, modifier letters and invisible characters."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if not _is_nothing(sign))


def _is_nothing(sign: str) -> bool:
    if sign in FILLERS or sign in IGNORED_MARKS or unicodedata.category(sign) in {"Mn", "Me", "Cf", "Cc"}:
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


class SignIn(models.Model):
    """A browser in which a person is signed in. Written by ``accounts.sessions``.

    Django has no list of a user's sessions. With this one a person can sign out a lost phone.
    """

    public_id = PublicIdField(prefix="ses")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sign_ins")
    session_key = models.CharField(max_length=40, unique=True, editable=False)
    # Such as "Firefox on Linux", from the User-Agent header.
    device = models.CharField(max_length=60, blank=True)
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


class KeyScope(models.TextChoices):
    READ = "read", later("Read")
    WRITE = "write", later("Read and write")


class ApiKey(models.Model):
    """A key with which a program acts as the key's creator in one workspace. Written by ``workspaces.accounts.keys``.

    Only a hash of the secret is stored, so it cannot be shown again.
    """

    public_id = PublicIdField(prefix="key")
    workspace = models.ForeignKey("workspaces.Workspace", on_delete=models.CASCADE, related_name="api_keys")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    # The OAuth program that this key was made for, which uses it by tokens. None: the text is used.
    client = models.ForeignKey(
        "workspaces.OAuthClient", null=True, blank=True, on_delete=models.PROTECT, related_name="keys"
    )
    name = models.CharField(max_length=80)
    scope = models.CharField(max_length=5, choices=KeyScope.choices, default=KeyScope.READ)
    key_hash = models.CharField(max_length=64, unique=True, editable=False)  # SHA-256, hexadecimal
    beginning = models.CharField(max_length=12, editable=False)  # shown so that its creator can recognize it
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="To the minute.")
    calls = models.PositiveBigIntegerField(default=0, editable=False, help_text="Requests that passed.")
    # The minute that is being counted, and the requests in it. Stored here because all web processes share the count.
    counted_at = models.DateTimeField(null=True, editable=False)
    counted = models.PositiveIntegerField(default=0, editable=False)

    class Meta:
        verbose_name = "API key"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "name"],
                condition=models.Q(revoked_at=None),
                name="one_live_key_of_a_name",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.beginning}…)"

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


# OAuth programs. What a person authorizes is stored as an ``ApiKey``; these models give the program access to it.


class OAuthClient(models.Model):
    """A program that registered itself (RFC 7591). Any program can register, so the name is not trustworthy.

    It has no secret; each authorization uses PKCE instead.
    """

    public_id = PublicIdField(prefix="app")
    name = models.CharField(max_length=60)
    redirect_uris = models.JSONField(default=list)  # allowed redirect URIs
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        verbose_name = "program"

    def __str__(self) -> str:
        return self.name


class OAuthCode(models.Model):
    """An authorization code. It stores a person's consent and is exchanged for tokens once.

    ``key``: the API key that the exchange created.
    """

    client = models.ForeignKey(OAuthClient, on_delete=models.CASCADE, related_name="codes")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    workspace = models.ForeignKey("workspaces.Workspace", on_delete=models.CASCADE, related_name="+")
    key = models.ForeignKey(ApiKey, null=True, on_delete=models.CASCADE, related_name="+")
    code_hash = models.CharField(max_length=64, unique=True, editable=False)
    scope = models.CharField(max_length=5, choices=KeyScope.choices)
    challenge = models.CharField(max_length=128)
    redirect_uri = models.TextField()
    names_redirect = models.BooleanField(default=True)  # the request named it, so the exchange must too
    resource = models.CharField(max_length=20)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name = "sign-in of a program"
        verbose_name_plural = "sign-ins of programs"

    def __str__(self) -> str:
        return f"{self.client} for {self.user}"


class TokenKind(models.TextChoices):
    ACCESS = "access", "Access"
    REFRESH = "refresh", "Refresh"


class OAuthToken(models.Model):
    """An access token or a refresh token. A refresh token is exchanged once for new tokens.

    A program with an access token may do what its API key allows, below the path ``resource``.
    """

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="tokens")
    kind = models.CharField(max_length=7, choices=TokenKind.choices)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    scope = models.CharField(max_length=5, choices=KeyScope.choices)
    resource = models.CharField(max_length=20)
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "token of a program"
        verbose_name_plural = "tokens of programs"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(kind="refresh") | models.Q(used_at=None), name="only_refresh_is_used_up"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.key}"


# Mail that could not be sent yet. Written by ``workspaces.accounts.unsent_mail``.


class WaitingMail(models.Model):
    """A complete mail that waits for a retry. It is encrypted because it may contain a password reset link."""

    sealed = models.TextField()
    attempts = models.PositiveSmallIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now)
    next_attempt_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"Mail {self.pk}"
