"""Requests with an ``Idempotency-Key``: a client that got no response may repeat one, and it is executed once."""

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, TypeVar

from django.core.files.uploadedfile import UploadedFile
from django.db import connection, transaction
from django.utils.crypto import salted_hmac
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from memoryhub.errors import Conflict, Invalid, Malformed
from workspaces.models import ApiKey, DoneRequest, User

LENGTH = 255
KEY = r"[\x21\x23-\x5b\x5d-\x7e]"  # visible ASCII without quote and backslash
KEYS = re.compile(rf'{KEY}{{1,{LENGTH}}}|"{KEY}{{1,{LENGTH}}}"')

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "pattern": rf'^({KEY}{{1,{LENGTH}}}|"{KEY}{{1,{LENGTH}}}")$'},
    OpenApiParameter.HEADER,
    description="A name of your own for this request, such as a UUID. The same again within 24 hours is not done "
    "twice: you get its answer. With another body: 422 `idempotency_mismatch`. While the first is at work: 409 "
    "`idempotency_running`, with `Retry-After`.",
)
REPLAYED = OpenApiParameter(
    "Idempotent-Replayed",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="`true`: this was done before, under the same `Idempotency-Key`.",
    response=[200, 201],
)
ONCE = (IDEMPOTENCY_KEY, REPLAYED)  # the headers of a route that takes keys


def identity_of_request(request: Request, person: User) -> DoneRequest | None:
    """Return an unsaved ``DoneRequest`` for this request, or None without an Idempotency-Key.

    Its ``name`` is a keyed hash of the sender and key, its ``fingerprint`` one of the method, path and body. The same
    Idempotency-Key sent with a session and with an API key, or with two API keys, counts as two, because two API keys
    may see different data. Raises Malformed for a malformed Idempotency-Key.
    """
    header = request.headers.get("Idempotency-Key")
    if header is None:
        return None
    if not KEYS.fullmatch(header):
        raise Malformed(
            _(
                "Idempotency-Key must have 1 to %s visible ASCII characters, with no backslashes and no quotes inside."
            )
            % LENGTH
        )
    way = request.auth.public_id if isinstance(request.auth, ApiKey) else "session"
    key = header.strip('"')
    content = [request.method, request.get_full_path(), _body_as_json(request.data)]
    return DoneRequest(
        user=person,
        name=_hash("name", f"{person.public_id} {way} {key}"),
        fingerprint=_hash("fingerprint", json.dumps(content, sort_keys=True)),
    )


def _body_as_json(data: Any) -> Any:
    """Return a request body as JSON. A file is represented by its name, length and SHA-256."""
    if not isinstance(data, MultiValueDict):
        return data
    return {name: [_part(value) for value in values] for name, values in data.lists()}


def _part(value: Any) -> Any:
    if not isinstance(value, UploadedFile):
        return value
    whole = sha256()
    for chunk in value.chunks():
        whole.update(chunk)
    value.seek(0)
    return [value.name, value.size, whole.hexdigest()]


# The result and its note are committed together, so a crash leaves both or neither. The first request holds a database
# lock while it runs, which ends with its connection, so that no request waits for a dead process.

KEPT = timedelta(hours=24)
DELETED_AT_ONCE = 5000
Note = dict[str, Any]  # ids, numbers and flags to rebuild the response from; never a person's text
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


def do_once(
    request: DoneRequest, act: Callable[[], T], *, keep: Callable[[T], Note], now: datetime
) -> tuple[T | None, Note]:
    """Run ``act`` and store a note of its result in one transaction, unless the request was done within 24 hours.

    Return the result and its note; the result is None if the request was done before. ``keep`` converts the result to
    the note. If ``act`` raises, nothing is stored and the key can be used again. Raises StillRunning while the first
    request runs, OtherRequest if the key was used with another request.
    """
    with transaction.atomic():
        if not _only_one(request.name):
            raise StillRunning
        before = DoneRequest.objects.filter(name=request.name).first()
        if before is not None and before.done_at > now - KEPT:
            if before.fingerprint != request.fingerprint:
                raise OtherRequest
            return None, before.note
        if before is not None:
            before.delete()
        result = act()
        request.note, request.done_at = keep(result), now
        request.save()
    return result, request.note


def sweep(*, now: datetime) -> int:
    """Delete the notes that are older than 24 hours. Return the number deleted."""
    gone = 0
    while True:
        old = DoneRequest.objects.filter(done_at__lte=now - KEPT).order_by("done_at")
        number, _ = DoneRequest.objects.filter(pk__in=old.values("pk")[:DELETED_AT_ONCE]).delete()
        gone += number
        if number < DELETED_AT_ONCE:
            return gone


def _only_one(name: str) -> bool:
    """Try to lock this name until the transaction ends. Return False if another transaction holds the lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(('x' || left(%s, 16))::bit(64)::bigint)", [name])
        return bool(cursor.fetchone()[0])


def _hash(purpose: str, text: str) -> str:
    return salted_hmac(f"idempotency {purpose}", text, algorithm="sha256").hexdigest()
