"""``Idempotency-Key``: a program that got no answer may send the same request again, and it is done once."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from memoryhub.errors import Malformed
from workspaces.models import ApiKey, User
from workspaces.rest.once import Asked

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


def asked_under_key(request: Request, person: User) -> Asked | None:
    """Return the identity of this request, None without a key. Raises Malformed.

    A key belongs to its person and to the way they signed in: what one API key may see another may not.
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
    said = [request.method, request.get_full_path(), _said(request.data)]
    return Asked.of(
        person,
        sender=f"{person.public_id} {way}",
        key=header.strip('"'),
        said=json.dumps(said, sort_keys=True),
    )


def _said(data: Any) -> Any:
    """A body as JSON can hold it: of a form's files the name, the length and the SHA-256."""
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
