"""Idempotency: a request with the same ``Idempotency-Key`` is done once (docs/api.md).

What was done and the note of it are committed together, so a crash leaves both or neither. While the first request is
at work it holds a lock of the database, which ends with its connection: nobody waits for a process that is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db import connection, transaction
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as later

from memoryhub.errors import Conflict, Invalid
from workspaces.models import DoneRequest, User

KEPT = timedelta(hours=24)
DELETED_AT_ONCE = 5000
Note = dict[str, Any]  # ids, numbers and flags from which the answer is built again; never a person's text
T = TypeVar("T")


class StillRunning(Conflict):
    code = "idempotency_running"
    default_message = later(
        "The first request with this Idempotency-Key is still running. Try again in a moment."
    )

    def headers(self) -> dict[str, str]:
        return {"Retry-After": "1"}


class OtherRequest(Invalid):
    code = "idempotency_mismatch"
    default_message = later(
        "This Idempotency-Key was used for another request. Use a new key for each operation."
    )


@dataclass(frozen=True)
class Asked:
    """A request under a key: ``name`` is equal for those of one sender and key, ``fingerprint`` for equal ones."""

    user: User
    name: str
    fingerprint: str

    @classmethod
    def of(cls, user: User, *, sender: str, key: str, said: str) -> Asked:
        """``sender``: a person, and one API key of theirs. ``said``: the whole request. Kept as keyed hashes."""
        return cls(user, _hash("name", f"{sender} {key}"), _hash("fingerprint", said))


@dataclass(frozen=True)
class Done(Generic[T]):
    """``result`` is what was just done; None, and ``note`` what is known of it, when that was before."""

    result: T | None
    note: Note


def do_once(request: Asked, act: Callable[[], T], *, keep: Callable[[T], Note], now: datetime) -> Done[T]:
    """Act and keep a note of it; within 24 hours of that, give the note instead.

    Runs ``act`` in a transaction. What it raises is raised and nothing is kept: the same key may try again. Raises
    StillRunning, and OtherRequest where the key came with something else before.
    """
    with transaction.atomic():
        if not _only_one(request.name):
            raise StillRunning
        before = DoneRequest.objects.filter(name=request.name).first()
        if before is not None and before.done_at > now - KEPT:
            if before.fingerprint != request.fingerprint:
                raise OtherRequest
            return Done(None, before.note)
        if before is not None:
            before.delete()
        result = act()
        note = keep(result)
        DoneRequest.objects.create(
            user=request.user,
            name=request.name,
            fingerprint=request.fingerprint,
            note=note,
            done_at=now,
        )
    return Done(result, note)


def sweep(*, now: datetime) -> int:
    """Delete the notes that are older than 24 hours; how many."""
    gone = 0
    while True:
        old = DoneRequest.objects.filter(done_at__lte=now - KEPT).order_by("done_at")
        number, _ = DoneRequest.objects.filter(pk__in=old.values("pk")[:DELETED_AT_ONCE]).delete()
        gone += number
        if number < DELETED_AT_ONCE:
            return gone


def _only_one(name: str) -> bool:
    """True for one transaction at a time, until it ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(('x' || left(%s, 16))::bit(64)::bigint)", [name])
        return bool(cursor.fetchone()[0])


def _hash(purpose: str, text: str) -> str:
    return salted_hmac(f"idempotency {purpose}", text, algorithm="sha256").hexdigest()
