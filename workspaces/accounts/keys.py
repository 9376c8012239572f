"""Creating, verifying, rate-limiting and revoking API keys. A key's text is shown once; only its hash is stored."""

import hashlib
import re
import secrets
from datetime import UTC, datetime

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext as _

from memoryhub.database import queries
from memoryhub.database.queries import PreparedQuery
from memoryhub.errors import Invalid, NotFound
from memoryhub.ids import ALPHABET
from workspaces.access import get_workspace
from workspaces.actions.workspaces import clean_text
from workspaces.audit import Verb, record
from workspaces.models import ApiKey, KeyScope, OAuthClient, Role, User, Workspace

PREFIX = "mh_"  # identifies a key to people, secret scanners and our secret filter
LENGTH = 43  # characters from an alphabet of 62: 256 bits, so a fast hash is safe
NAME_LENGTH = 80
SHAPE = re.compile(rf"{PREFIX}[A-Za-z0-9]{{{LENGTH}}}")
SHOWN = len(PREFIX) + 4
_BY_HASH = PreparedQuery(
    lambda key_hash: ApiKey.objects.select_related("user", "workspace").filter(key_hash=key_hash),
    key_hash=str,
)


def _valid(*, key: int, now: datetime) -> QuerySet[ApiKey]:
    live = ApiKey.objects.filter(pk=key, revoked_at=None, user__is_active=True).only("pk")
    live = live.filter(workspace__memberships__user=F("user"))
    return live.filter(Q(expires_at=None) | Q(expires_at__gt=now))


_VALID = PreparedQuery(_valid, key=int, now=datetime)

# A fixed window of one minute in a single conditional update, so that the limit holds across all processes. A refused
# request writes nothing. The last use is recorded once a minute.
_COUNT = """
UPDATE workspaces_apikey SET calls = calls + 1,
    counted = CASE WHEN counted_at >= %(minute)s::timestamptz THEN counted + 1 ELSE 1 END,
    last_used_at = CASE WHEN counted_at >= %(minute)s::timestamptz THEN last_used_at ELSE %(now)s::timestamptz END,
    counted_at = greatest(counted_at, %(minute)s::timestamptz)
WHERE id = %(key)s::bigint
  AND (counted_at IS NULL OR counted_at < %(minute)s::timestamptz OR counted < %(most)s::int)
RETURNING id
"""


class KeyRefused(Exception):
    """Raised for an invalid key. The message says why, and never contains the key."""


def make_key(
    workspace: Workspace,
    *,
    by: User,
    name: str,
    scope: str,
    expires_at: datetime | None,
    now: datetime,
    client: OAuthClient | None = None,
) -> tuple[ApiKey, str]:
    """Create an API key with which a program acts as ``by`` in this workspace. Return the key's row and its secret
    text.

    Only a hash of the text is stored. ``client``: the OAuth program that gets the key, if any. Raises NotFound if
    ``by`` is not a member. Raises Invalid for an invalid field, a name that another active key of ``by`` has, or a
    scope that allows more than the role of ``by``.
    """
    workspace = get_workspace(by, workspace.public_id)
    name = clean_text("name", " ".join(name.split()), low=1, high=NAME_LENGTH)
    check_scope(scope, workspace)
    if expires_at is not None and expires_at <= now:
        raise Invalid(fields={"expires_at": _("Must be in the future.")})
    text = new_text(PREFIX)
    try:
        with transaction.atomic():
            key = ApiKey.objects.create(
                workspace=workspace,
                user=by,
                client=client,
                name=name,
                scope=scope,
                key_hash=hashed(text),
                beginning=text[:SHOWN],
                created_at=now,
                expires_at=expires_at,
            )
            record(Verb.KEY_MADE, by=by, workspace=workspace, target=key.public_id, details={"scope": scope})
    except IntegrityError:
        raise Invalid(fields={"name": _("You already have a key with this name.")}) from None
    return key, text


def check_scope(scope: str, workspace: Workspace) -> None:
    """Raise Invalid if the scope is unknown or allows more than the user's role in ``workspace``."""
    if scope not in KeyScope.values:
        raise Invalid(fields={"scope": _("Must be one of %s.") % ", ".join(KeyScope.values)})
    if scope == KeyScope.WRITE and not Role(workspace.role).allows(Role.EDITOR):
        raise Invalid(
            fields={"scope": _("You can only read in this workspace, so a key for it can only read too.")}
        )


def verify_key(text: str, *, now: datetime) -> ApiKey:
    """Return the API key whose secret is ``text``, with its ``user`` and ``workspace``. Raises KeyRefused if it is not
    valid.

    The lookup is by hash, so its duration reveals nothing about existing keys.
    """
    return require_valid(_BY_HASH.first(key_hash=hashed(text)) if SHAPE.fullmatch(text) else None, now=now)


def require_valid(key: ApiKey | None, *, now: datetime) -> ApiKey:
    """Return the key if it is valid, else raise KeyRefused.

    A key is invalid if it does not exist, was revoked or has expired, or if its account is closed.
    """
    if key is None or not key.user.is_active:
        raise KeyRefused(_("There is no such API key."))
    if key.revoked_at is not None:
        raise KeyRefused(_("This API key was revoked."))
    if key.is_expired(now):
        raise KeyRefused(_("This API key has expired."))
    return key


def is_still_valid(key: ApiKey, *, now: datetime) -> bool:
    """Return whether a key verified earlier is still valid and its user still a member of the workspace."""
    return _VALID.first(key=key.pk, now=now) is not None


def count_request(key: ApiKey, *, now: datetime) -> int | None:
    """Count a request against the key's rate limit. Return None if it is allowed, else the seconds to wait."""
    minute = now.astimezone(UTC).replace(second=0, microsecond=0)
    params = {"key": key.pk, "now": now, "minute": minute, "most": settings.KEY_RATE}
    return None if queries.rows(_COUNT, params) else 60 - now.second


def revoke_key(key_id: str, *, by: User, now: datetime) -> ApiKey:
    """Permanently revoke one of the user's own keys. Idempotent. Raises NotFound for another user's key."""
    key = ApiKey.objects.filter(user=by, public_id=key_id).first()
    if key is None:
        raise NotFound(_("This key does not exist, or it is not yours."))
    end_keys([key.pk], by=by, now=now)
    return key


def end_keys(ids: list[int], *, by: User, now: datetime) -> int:
    """Revoke these keys, which may belong to any users. Return how many had not been revoked before."""
    with transaction.atomic():
        live = ApiKey.objects.filter(pk__in=ids, revoked_at=None).select_for_update(of=("self",))
        ending = list(live.select_related("workspace").order_by("pk"))
        ApiKey.objects.filter(pk__in=[key.pk for key in ending]).update(revoked_at=now)
        for key in ending:
            record(Verb.KEY_REVOKED, by=by, workspace=key.workspace, target=key.public_id)
    return len(ending)


def new_text(prefix: str) -> str:
    return prefix + "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
