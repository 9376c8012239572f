"""``ETag`` and ``If-Match``: a change is made only to what its sender has seen."""

from __future__ import annotations

import re

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from memoryhub.errors import Malformed

TAG = r'(?:W/)?"[\x21\x23-\x7e]*"'
TAGS = re.compile(rf"{TAG}(?:[ \t]*,[ \t]*{TAG})*")
LENGTH = 1000  # characters of the header, some twenty versions

ETAG = OpenApiParameter(
    "ETag",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The version of what is shown; another one after every change. Send it as `If-Match`.",
    response=[200, 201, 202],
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    {"type": "string", "pattern": rf"^(\*|{TAG}([ \t]*,[ \t]*{TAG})*)$", "maxLength": LENGTH},
    OpenApiParameter.HEADER,
    description="The `ETag` you have seen, or several. Changed since: 409 with code `stale`, and the `ETag` as it is "
    "now. `*` or nothing: whatever it is.",
)


def versions_seen(request: Request) -> frozenset[str] | None:
    """Return the versions in ``If-Match``, without quotes; None if any version will do. Raises Malformed.

    Proxies that compress call the tags they pass on weak (``W/``). Ours name what is stored, not the bytes of an
    answer, so such a tag counts as well.
    """
    header = request.headers.get("If-Match")
    if header is None or header.strip() == "*":
        return None
    header = header.strip()
    if len(header) > LENGTH or not TAGS.fullmatch(header):
        raise Malformed(_('If-Match must be * or the value of an ETag header, with its quotes: "mem_…".'))
    return frozenset(tag.removeprefix("W/").strip('"') for tag in re.findall(TAG, header))
