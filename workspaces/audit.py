"""The audit log: who did what and when, by public ids and without people's texts.

A database trigger refuses to change or delete entries, except by ``prune``.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from django.conf import settings
from django.core import signing
from django.db import connection, models, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later

from memoryhub.errors import Malformed
from memoryhub.ids import PATTERN
from memoryhub.localization import translated
from memoryhub.monitoring import request_origin
from memoryhub.stored_messages import kept
from workspaces.models import AuditEvent, User, Workspace

Word: TypeAlias = str | int | float | bool | None
WORD = re.compile(r"[A-Za-z0-9_.:+-]{0,64}")  # an id, a number or our own word, but not a sentence
MOST_WORDS = 50
PAGE_SIZE = 50
BULK = 50
PRUNED_AT_ONCE = 5000
NAME_LENGTH = 150
RULES_HOLD_AFTER = timedelta(days=1)  # delay before new retention rules apply
_really_by: ContextVar[User | None] = ContextVar("really_by", default=None)


class Verb(models.TextChoices):
    """Recorded actions. The value is stored, the label is displayed."""

    SIGNED_IN = "signed_in", later("Signed in")
    SIGN_IN_FAILED = "sign_in_failed", later("Sign-in failed")
    SIGNED_OUT = "signed_out", later("Signed out")
    SIGNED_UP = "signed_up", later("Signed up")
    REAUTHENTICATED = "reauthenticated", later("Confirmed their identity")
    REAUTHENTICATION_FAILED = "reauthentication_failed", later("Failed to confirm their identity")
    PASSWORD_CHANGED = "password_changed", later("Changed the password")
    PASSWORD_LET_IN = "password_let_in", later("Let in by a password for a short time")
    PASSWORD_RESET = "password_reset", later("Reset the password")
    USERNAME_CHANGED = "username_changed", later("Changed the username")
    NAME_CHANGED = "name_changed", later("Changed the name")
    EMAIL_CHANGED = "email_changed", later("Changed the email address")
    RIGHTS_CHANGED = "rights_changed", later("Changed permissions")
    SIGN_ON_CONNECTED = "sign_on_connected", later("Connected single sign-on")
    SIGN_ON_DISCONNECTED = "sign_on_disconnected", later("Disconnected single sign-on")
    TWO_FACTOR_ON = "two_factor_on", later("Turned two-factor sign-in on")
    TWO_FACTOR_OFF = "two_factor_off", later("Turned two-factor sign-in off")
    RECOVERY_CODES_MADE = "recovery_codes_made", later("Created new recovery codes")
    SESSION_ENDED = "session_ended", later("Ended a session")
    ACCOUNT_MADE = "account_made", later("Created an account")
    ACCOUNT_CLOSED = "account_closed", later("Closed an account")
    ACCOUNT_REOPENED = "account_reopened", later("Reopened an account")
    ACCOUNT_DELETED = "account_deleted", later("Deleted an account")
    KEY_MADE = "key_made", later("Created an API key")
    KEY_REVOKED = "key_revoked", later("Revoked an API key")
    WORKSPACE_MADE = "workspace_made", later("Created the workspace")
    WORKSPACE_CHANGED = "workspace_changed", later("Changed the workspace")
    WORKSPACE_DELETED = "workspace_deleted", later("Deleted a workspace")
    MEMBER_ADDED = "member_added", later("Added a member")
    MEMBER_JOINED = "member_joined", later("Joined by an invitation")
    INVITATION_MADE = "invitation_made", later("Created an invitation")
    INVITATION_DECLINED = "invitation_declined", later("Declined an invitation")
    INVITATION_REVOKED = "invitation_revoked", later("Revoked an invitation")
    ROLE_CHANGED = "role_changed", later("Changed a role")
    HANDED_OVER = "handed_over", later("Handed the workspace over")
    MEMBER_REMOVED = "member_removed", later("Removed a member")
    MEMBER_LEFT = "member_left", later("Left the workspace")
    CONNECTION_MADE = "connection_made", later("Added a model connection")
    CONNECTION_CHANGED = "connection_changed", later("Changed a model connection")
    CONNECTION_DELETED = "connection_deleted", later("Deleted a model connection")
    WEBHOOK_MADE = "webhook_made", later("Created a webhook")
    WEBHOOK_CHANGED = "webhook_changed", later("Changed a webhook")
    WEBHOOK_SECRET_CHANGED = "webhook_secret_changed", later("Changed the secret of a webhook")
    WEBHOOK_DELETED = "webhook_deleted", later("Deleted a webhook")
    WEBHOOK_DISABLED = "webhook_disabled", later("Turned off a webhook that failed")
    AGENT_CHANGED = "agent_changed", later("Changed an assistant")
    MEMORY_EDITED = "memory_edited", later("Edited a memory")
    MEMORY_DELETED = "memory_deleted", later("Forgot a memory")
    MEMORY_RESTORED = "memory_restored", later("Restored a memory")
    MEMORY_FORGOTTEN = "memory_forgotten", later("Forgot a memory for good")
    MEMORIES_READ = "memories_read", later("Read memories in bulk")
    CHAT_DELETED = "chat_deleted", later("Deleted a chat")
    CHAT_RESTORED = "chat_restored", later("Restored a chat")
    CHAT_FORGOTTEN = "chat_forgotten", later("Deleted a chat for good")
    LINK_MADE = "link_made", later("Created a link to a chat")
    LINK_CHANGED = "link_changed", later("Updated a link to a chat")
    LINK_CLOSED = "link_closed", later("Turned off a link to a chat")
    DOCUMENT_ADDED = "document_added", later("Added a document")
    DOCUMENT_CHANGED = "document_changed", later("Changed a document")
    DOCUMENT_MOVED = "document_moved", later("Moved a document")
    DOCUMENT_DELETED = "document_deleted", later("Deleted a document")
    DOCUMENT_RESTORED = "document_restored", later("Restored a document")
    DOCUMENT_FORGOTTEN = "document_forgotten", later("Deleted a document for good")
    ARTIFACT_ADDED = "artifact_added", later("Saved an artifact")
    ARTIFACT_CHANGED = "artifact_changed", later("Changed an artifact")
    ARTIFACT_MOVED = "artifact_moved", later("Moved an artifact")
    ARTIFACT_DELETED = "artifact_deleted", later("Deleted an artifact")
    ARTIFACT_RESTORED = "artifact_restored", later("Restored an artifact")
    ARTIFACT_FORGOTTEN = "artifact_forgotten", later("Deleted an artifact for good")
    RETENTION_SET = "retention_set", later("Set how long things are kept")
    RETENTION_APPLIED = "retention_applied", later("Deleted by the retention rules")
    BUDGET_SET = "budget_set", later("Set a budget")
    EXPORTED = "exported", later("Exported")
    IMPORTED = "imported", later("Imported")
    MODERATED = "moderated", later("Moderated")
    PURGED = "purged", later("Purged what was deleted")
    ADMIN_ADDED = "admin_added", later("Added in the admin")
    ADMIN_CHANGED = "admin_changed", later("Changed in the admin")
    ADMIN_DELETED = "admin_deleted", later("Deleted in the admin")
    ADMIN_ACTION = "admin_action", later("Ran an action in the admin")
    BACKUP_MADE = "backup_made", later("Made a backup")


# Kept under any retention rule: who changed rules, and what must be forgotten again after restoring a backup.
KEPT_ANYWAY = (Verb.RETENTION_SET, Verb.DOCUMENT_FORGOTTEN, Verb.ARTIFACT_FORGOTTEN)

# Words in the details of entries, marked for translation. A missing word is shown in English.
DETAILS = [
    kept("role", "before", "of", "fields", "name", "description", "private short term", "reviews proposals"),
    kept(
        "local only", "share links", "connection", "scope", "read", "write", "people", "by mail", "invitation"
    ),
    kept("links", "change", "made", "tokens", "money", "kind", "count", "ids", "action", "approve", "reject"),
    kept("chats", "memories", "documents", "artifacts", "activity", "owner", "editor", "viewer"),
]


def record(
    verb: str,
    *,
    by: User | None,
    workspace: Workspace | None = None,
    target: str = "",
    details: Mapping[str, Word | list[Word]] | None = None,
) -> None:
    """Add an entry in the caller's transaction, so that a rolled-back action leaves none. One insert.

    ``by``: None for the system or if nobody is signed in. ``target``: a public id. ``details``: numbers, ids and single
    words from the code. Raises ValueError for anything that could be a person's text.
    """
    by = _really_by.get() or by
    if verb not in Verb.values:
        raise ValueError(f"{verb!r} is no verb of the audit log")
    if target and not PATTERN.fullmatch(target):
        raise ValueError("the target of an audit event is a public id")
    source = request_origin.current.get()
    AuditEvent.objects.create(
        at=timezone.now(),
        verb=verb,
        by_id=by.public_id if by else "",
        by_name=by.get_username()[:NAME_LENGTH] if by else "",
        workspace_id=workspace.public_id if workspace else "",
        target=target,
        details=_words(details or {}),
        network=source.network,
        request_id=source.request_id,
    )


def record_backup(size: int, installation: str) -> None:
    """Record a full backup of ``size`` bytes. The doctor command and Prometheus read the latest one."""
    record(Verb.BACKUP_MADE, by=None, details={"bytes": size, "installation": installation})


@dataclass(frozen=True)
class Page:
    """Entries, newest first. ``next``: the value of ``before`` for the following page, empty at the end."""

    events: list[AuditEvent]
    next: str = ""


def page_of(workspace: Workspace, *, before: str = "") -> Page:
    """Return one page of a workspace's entries. Two queries.

    Each entry has a ``sentence`` (the action), ``whom`` (the username of a target) and ``words`` (the details). Raises
    Malformed for a ``before`` that is not from this list.
    """
    salt = f"audit of {workspace.public_id}"
    rows = AuditEvent.objects.of_workspace(workspace).order_by("-id")
    if before:
        try:
            rows = rows.filter(id__lt=int(signing.loads(before, salt=salt)))
        except (signing.BadSignature, ValueError, TypeError):
            raise Malformed(_("This page does not exist. Go back to the newest entries.")) from None
    events = list(rows[: PAGE_SIZE + 1])
    more = signing.dumps(events[PAGE_SIZE - 1].pk, salt=salt) if len(events) > PAGE_SIZE else ""
    events = events[:PAGE_SIZE]
    people = [event.target for event in events if event.target.startswith("usr_")]
    names = dict(User.objects.filter(public_id__in=people).values_list("public_id", "username"))
    for event in events:
        event.sentence = sentence(event.verb)  # type: ignore[attr-defined]
        event.whom = names.get(event.target, "")  # type: ignore[attr-defined]
        event.words = in_words(event.details)  # type: ignore[attr-defined]
    return Page(events, more)


def sentence(verb: str) -> str:
    """Return the action in words that follow a name, such as "deleted a chat".

    An action that this version does not know is returned unchanged.
    """
    label = str(Verb(verb).label) if verb in Verb.values else verb
    return label[:1].lower() + label[1:]


def in_words(details: Mapping[str, Any]) -> str:
    """Return details as text in the reader's language, such as "role editor, before viewer"."""
    return ", ".join(
        f"{translated(name.replace('_', ' '))} {_said(value)}" for name, value in details.items()
    )


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if value is None:
        return "-"
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    text = str(value)
    return text if PATTERN.fullmatch(text) else translated(text.replace("_", " "))


def record_bulk_read(number: int, *, by: User, workspace: Workspace) -> None:
    """Record a response with more than ``BULK`` memories, because a program is probably copying them."""
    if number > BULK:
        record(Verb.MEMORIES_READ, by=by, workspace=workspace, details={"count": number})


@contextmanager
def really_by(person: User) -> Iterator[None]:
    """Record all actions in this context as done by this person, when staff act in the name of a workspace's owner."""
    token = _really_by.set(person)
    try:
        yield
    finally:
        _really_by.reset(token)


def prune(*, now: datetime) -> int:
    """Delete entries older than MEMORYHUB_AUDIT_DAYS (0: no limit) or than their workspace's retention rule allows.

    Return the number deleted.
    """
    gone = _prune(_OF_RULES, {"now": now, "kept": [*KEPT_ANYWAY], "set_before": now - RULES_HOLD_AFTER})
    if settings.AUDIT_DAYS:
        gone += _prune(_OF_ALL, {"until": now - timedelta(days=settings.AUDIT_DAYS)})
    return gone


_OF_ALL = "SELECT id FROM workspaces_auditevent WHERE at < %(until)s ORDER BY at"
_OF_RULES = """
SELECT event.id FROM workspaces_retention rule JOIN workspaces_workspace place ON place.id = rule.workspace_id
JOIN workspaces_auditevent event ON event.workspace_id = place.public_id
WHERE rule.activity IS NOT NULL AND rule.updated_at < %(set_before)s AND event.verb <> ALL(%(kept)s)
  AND event.at < %(now)s - rule.activity * interval '1 day'
"""


def _prune(which: str, values: dict[str, Any]) -> int:
    gone = 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL memoryhub.audit_retention = 'on'")
            delete = f"DELETE FROM workspaces_auditevent WHERE id IN ({which} LIMIT {PRUNED_AT_ONCE})"  # noqa: S608  ours
            cursor.execute(delete, values)
            number = cursor.rowcount
        gone += number
        if number < PRUNED_AT_ONCE:
            return gone


def _words(details: Mapping[str, Word | list[Word]]) -> dict[str, Word | list[Word]]:
    for name, value in details.items():
        values = value if isinstance(value, list) else [value]
        if not WORD.fullmatch(name) or len(values) > MOST_WORDS or not all(map(_is_word, values)):
            raise ValueError(f"{name!r} of an audit event is not a number, an id or a word of ours")
    return dict(details)


def _is_word(value: object) -> bool:
    if isinstance(value, str):
        return WORD.fullmatch(value) is not None
    return value is None or isinstance(value, bool | int | float)
