"""The audit log: who did what when, by public ids and never by text. Rows are added and never changed.

A trigger in the database refuses to change a row and to delete one, except for ``prune``, the only end of a row.
"""

from __future__ import annotations

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

from memoryhub.errors import Malformed
from memoryhub.http import origin
from memoryhub.ids import PATTERN
from workspaces.models import AuditEvent, User, Workspace

Word: TypeAlias = str | int | float | bool | None
WORD = re.compile(r"[A-Za-z0-9_.:+-]{0,64}")  # an id, a number, a word of ours: no room for a sentence
MOST_WORDS = 50
PAGE_SIZE = 50
BULK = 50
PRUNED_AT_ONCE = 5000
NAME_LENGTH = 150
_really_by: ContextVar[User | None] = ContextVar("really_by", default=None)


class Verb(models.TextChoices):
    """What can be done. The value is stored, the label shown."""

    SIGNED_IN = "signed_in", "Signed in"
    SIGN_IN_FAILED = "sign_in_failed", "Sign-in failed"
    SIGNED_OUT = "signed_out", "Signed out"
    SIGNED_UP = "signed_up", "Signed up"
    REAUTHENTICATED = "reauthenticated", "Confirmed their identity"
    REAUTHENTICATION_FAILED = "reauthentication_failed", "Failed to confirm their identity"
    PASSWORD_CHANGED = "password_changed", "Changed the password"
    PASSWORD_RESET = "password_reset", "Reset the password"
    USERNAME_CHANGED = "username_changed", "Changed the username"
    EMAIL_CHANGED = "email_changed", "Changed the e-mail address"
    RIGHTS_CHANGED = "rights_changed", "Changed the rights"
    TWO_FACTOR_ON = "two_factor_on", "Turned two-factor sign-in on"
    TWO_FACTOR_OFF = "two_factor_off", "Turned two-factor sign-in off"
    RECOVERY_CODES_MADE = "recovery_codes_made", "Made new recovery codes"
    SESSION_ENDED = "session_ended", "Ended a session"
    ACCOUNT_CLOSED = "account_closed", "Closed an account"
    ACCOUNT_REOPENED = "account_reopened", "Reopened an account"
    ACCOUNT_DELETED = "account_deleted", "Deleted an account"
    KEY_MADE = "key_made", "Made an API key"
    KEY_REVOKED = "key_revoked", "Revoked an API key"
    WORKSPACE_MADE = "workspace_made", "Made the workspace"
    WORKSPACE_CHANGED = "workspace_changed", "Changed the workspace"
    WORKSPACE_DELETED = "workspace_deleted", "Deleted a workspace"
    MEMBER_ADDED = "member_added", "Added a member"
    ROLE_CHANGED = "role_changed", "Changed a role"
    MEMBER_REMOVED = "member_removed", "Removed a member"
    MEMBER_LEFT = "member_left", "Left the workspace"
    CONNECTION_MADE = "connection_made", "Made a model connection"
    CONNECTION_CHANGED = "connection_changed", "Changed a model connection"
    CONNECTION_DELETED = "connection_deleted", "Deleted a model connection"
    WEBHOOK_MADE = "webhook_made", "Made a webhook"
    WEBHOOK_CHANGED = "webhook_changed", "Changed a webhook"
    WEBHOOK_SECRET_CHANGED = "webhook_secret_changed", "Changed the secret of a webhook"
    WEBHOOK_DELETED = "webhook_deleted", "Deleted a webhook"
    WEBHOOK_DISABLED = "webhook_disabled", "Turned off a webhook that failed"
    AGENT_CHANGED = "agent_changed", "Changed an assistant"
    MEMORY_EDITED = "memory_edited", "Edited a memory"
    MEMORY_DELETED = "memory_deleted", "Deleted a memory"
    MEMORY_RESTORED = "memory_restored", "Restored a memory"
    MEMORY_FORGOTTEN = "memory_forgotten", "Forgot a memory for good"
    MEMORIES_READ = "memories_read", "Read memories in bulk"
    CHAT_DELETED = "chat_deleted", "Deleted a chat"
    CHAT_RESTORED = "chat_restored", "Restored a chat"
    CHAT_FORGOTTEN = "chat_forgotten", "Forgot a chat for good"
    DOCUMENT_ADDED = "document_added", "Added a document"
    DOCUMENT_CHANGED = "document_changed", "Changed a document"
    DOCUMENT_DELETED = "document_deleted", "Deleted a document"
    DOCUMENT_RESTORED = "document_restored", "Restored a document"
    DOCUMENT_FORGOTTEN = "document_forgotten", "Forgot a document for good"
    ARTIFACT_ADDED = "artifact_added", "Kept an artifact"
    ARTIFACT_CHANGED = "artifact_changed", "Changed an artifact"
    ARTIFACT_DELETED = "artifact_deleted", "Deleted an artifact"
    ARTIFACT_RESTORED = "artifact_restored", "Restored an artifact"
    ARTIFACT_FORGOTTEN = "artifact_forgotten", "Forgot an artifact for good"
    EXPORTED = "exported", "Exported"
    IMPORTED = "imported", "Imported"
    MODERATED = "moderated", "Moderated"
    PURGED = "purged", "Purged what was deleted"
    ADMIN_ADDED = "admin_added", "Added in the admin"
    ADMIN_CHANGED = "admin_changed", "Changed in the admin"
    ADMIN_DELETED = "admin_deleted", "Deleted in the admin"
    ADMIN_ACTION = "admin_action", "Ran an action in the admin"


def record(
    verb: str,
    *,
    by: User | None,
    workspace: Workspace | None = None,
    target: str = "",
    details: Mapping[str, Word | list[Word]] | None = None,
) -> None:
    """Add one event, in the caller's transaction: what is rolled back was never done. One insert.

    ``target`` is a public id; ``details`` holds numbers, ids and words of our own. Anything that could be a
    person's text is a ValueError, so that none can come in by mistake. ``by=None``: nobody signed in, or the system.
    """
    by = _really_by.get() or by
    if verb not in Verb.values:
        raise ValueError(f"{verb!r} is no verb of the audit log")
    if target and not PATTERN.fullmatch(target):
        raise ValueError("the target of an audit event is a public id")
    source = origin.current()
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


@dataclass(frozen=True)
class Page:
    """Events, newest first; ``next`` asks for those before them, empty at the end."""

    events: list[AuditEvent]
    next: str = ""


def page_of(workspace: Workspace, *, before: str = "") -> Page:
    """What was done in a workspace. Each event carries ``sentence``, ``about`` and ``words``. Two queries.

    Raises Malformed for a ``before`` that is not of this list.
    """
    salt = f"audit of {workspace.public_id}"
    found = AuditEvent.objects.of_workspace(workspace).order_by("-id")
    if before:
        try:
            found = found.filter(id__lt=int(signing.loads(before, salt=salt)))
        except (signing.BadSignature, ValueError, TypeError):
            raise Malformed(_("This page does not exist. Go back to the newest entries.")) from None
    events = list(found[: PAGE_SIZE + 1])
    more = signing.dumps(events[PAGE_SIZE - 1].pk, salt=salt) if len(events) > PAGE_SIZE else ""
    events = events[:PAGE_SIZE]
    people = [event.target for event in events if event.target.startswith("usr_")]
    names = dict(User.objects.filter(public_id__in=people).values_list("public_id", "username"))
    for event in events:
        event.sentence = sentence(event.verb)  # type: ignore[attr-defined]
        event.about = names.get(event.target, event.target)  # type: ignore[attr-defined]
        event.words = in_words(event.details)  # type: ignore[attr-defined]
    return Page(events, more)


def sentence(verb: str) -> str:
    """What was done, to stand after a name; the word itself for one of an older version."""
    label = str(Verb(verb).label) if verb in Verb.values else verb
    return label[:1].lower() + label[1:]


def in_words(details: Mapping[str, Any]) -> str:
    """ "role editor, before viewer" """
    return ", ".join(f"{name.replace('_', ' ')} {_said(value)}" for name, value in details.items())


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    text = str(value)
    return text if PATTERN.fullmatch(text) else text.replace("_", " ")


def note_bulk_read(number: int, *, by: User, workspace: Workspace) -> None:
    """Memories that went out in one answer, if they are more than a person looks at: a program takes them away."""
    if number > BULK:
        record(Verb.MEMORIES_READ, by=by, workspace=workspace, details={"count": number})


@contextmanager
def really_by(person: User) -> Iterator[None]:
    """Whatever is recorded within was done by this person, whoever the domain was told: staff in the admin act
    through one of a workspace's owners.
    """
    token = _really_by.set(person)
    try:
        yield
    finally:
        _really_by.reset(token)


def prune(*, now: datetime) -> int:
    """Delete what is older than ``MEMORYHUB_AUDIT_DAYS`` (0 keeps everything); how many rows."""
    if not settings.AUDIT_DAYS:
        return 0
    until, gone = now - timedelta(days=settings.AUDIT_DAYS), 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL memoryhub.audit_retention = 'on'")
            cursor.execute(
                "DELETE FROM workspaces_auditevent WHERE id IN"
                " (SELECT id FROM workspaces_auditevent WHERE at < %s ORDER BY at LIMIT %s)",
                [until, PRUNED_AT_ONCE],
            )
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
