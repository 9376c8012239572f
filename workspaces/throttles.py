"""Limits on what one person may ask for, held by the database over every process.

Sign-in and sign-up are limited by allauth through the shared cache, API keys by ``workspaces.accounts.keys``;
this is for what costs something and is done by people: turns and uploads.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from memoryhub.errors import TooManyRequests
from memoryhub.monitoring import metrics
from workspaces.models import Spent, User

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
# Each request is paid with a share of a minute, in advance, and at most a minute may be owed: as many as the rate says
# at once, and from then on as many as time pays for. Of a day it is the same. One statement, so that two requests at
# once cannot both be last.
_PAY = """
INSERT INTO workspaces_spent AS mine (user_id, "limit", paid_until) VALUES (%(user)s, %(limit)s, %(first)s)
ON CONFLICT (user_id, "limit") DO UPDATE SET paid_until = greatest(mine.paid_until, %(now)s) + %(share)s
WHERE greatest(mine.paid_until, %(now)s) + %(share)s <= %(most)s
"""


def spend(limit: str, by: User, *, now: datetime, per: timedelta = MINUTE) -> None:
    """Count one of ``settings.THROTTLES[limit]`` a minute. Raises TooManyRequests, which says when to come again."""
    share = per / settings.THROTTLES[limit]
    values: dict[str, Any] = {
        "user": by.pk,
        "limit": limit,
        "now": now,
        "share": share,
        "first": now + share,
        "most": now + per,
    }
    with connection.cursor() as cursor:
        cursor.execute(_PAY, values)
        if cursor.rowcount:
            return
    metrics.THROTTLED.labels(limit).inc()
    until = Spent.objects.filter(user=by, limit=limit).values_list("paid_until", flat=True).first() or now
    raise TooManyRequests(retry_after=max(1, math.ceil((until + share - per - now).total_seconds())))
