"""Quotas and rate limits of a person. The operator's settings hold the limits. ``accounts.keys`` limits API keys.

A stored item counts against its creator, even after deletion as long as it can be restored. An imported item counts
against the importer. Superusers have no quota, because they restore whole installations. Apps register the rows that
they count (``register_quota``).

Counting a hundred thousand rows takes tens of milliseconds. So after a count, a process allows a sixteenth of the
remaining items without counting again. Concurrent requests may exceed the limit by a single item.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Q, QuerySet, Sum, Value
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as later

from memoryhub.errors import Conflict, TooManyRequests
from memoryhub.localization import file_size, grouped
from memoryhub.monitoring import metrics
from workspaces.models import Spent, User, Workspace

Rows = Callable[[User], QuerySet[Any]]


class QuotaReached(Conflict):
    """Raised when a person's quota is used up."""

    code = "quota"


@dataclass(frozen=True)
class Quota:
    """A person's use of a quota. ``most``: the limit, or 0 for none. Above the limit ``used`` may be incomplete."""

    what: str
    used: int
    most: int

    @property
    def room(self) -> int:
        return max(0, self.most - self.used)

    def in_words(self) -> str:
        """Return a text for staff, such as "3 of 100 workspaces"."""
        formatter, what = (file_size, "in files") if self.what == "bytes" else (grouped, self.what)
        if not self.most:
            return f"{formatter(self.used)} {what}, no limit"
        return f"{formatter(self.used)} of {formatter(self.most)} {what}"


# Messages about a full quota and its remedy. Imports store them, so they are only marked for translation.
SENTENCES: dict[str, tuple[str | Promise, str | Promise]] = {
    "workspaces": (
        later("You have made %s of the %s workspaces allowed here."),
        later("Delete one you no longer need, or ask your administrator for more."),
    ),
    "chats": (
        later("You have %s of the %s chats allowed here."),
        later("Delete some for good, or ask your administrator for more."),
    ),
    "memories": (
        later("You have %s of the %s memories allowed here."),
        later("Forget some for good, or ask your administrator for more."),
    ),
    "bytes": (
        later("Your files take up %s of the %s allowed here."),
        later("Remove some, or an unfinished import, or ask your administrator for more."),
    ),
}
SHARE = 16
# By person and quota: room that this process may use without counting.
_spare: dict[tuple[int, str], int] = {}
_rows: dict[str, list[Rows]] = {"workspaces": [lambda user: Workspace.objects.filter(made_by=user)]}


def register_quota(what: str, rows: Rows) -> None:
    """Register rows that count against the quota ``what``. ``rows``: returns the queryset of a person's rows.

    Each row counts as one; for the quota "bytes", its ``size`` counts.
    """
    _rows.setdefault(what, []).append(rows)


def quota_of(user: User, what: str) -> Quota:
    """Return this person's use of a quota. One query per kind of row, which counts up to the limit."""
    most = settings.QUOTAS[what]
    return Quota(what, sum(_count(rows(user).order_by(), what, most) for rows in _rows[what]), most)


def importer_key(by: User | None, name: User | None) -> int | None:
    """Return the primary key of the person whose quota a new row counts against, if that is not its author.

    ``name``: the author. ``by``: the person who imports the row, or None. Returns None if the row counts against the
    author's quota: it is not imported, is imported by its author, or by a superuser.
    """
    return None if by is None or by == name or by.is_superuser else by.pk


def charged_rows(user: User, name: str) -> Q:
    """Return a condition for rows that count against this person's quota. ``name``: the field of the row's author."""
    return Q(**{name: user, "brought_by": None}) | Q(brought_by=user.pk)


def charge(what: str, by: User | None, name: User | None) -> int | None:
    """Raise QuotaReached if the quota ``what`` has no room for a new row. Return the value for the row's
    ``brought_by``.

    ``name``: the row's author. ``by``: the person who imports it, whose quota it then counts against, or None.
    """
    require_room(what, by or name)
    return importer_key(by, name)


def require_room(what: str, user: User | None, more: int = 1) -> None:
    """Raise QuotaReached, with the limit and a remedy, if ``more`` items do not fit into the person's quota."""
    if user is None or user.is_superuser or not settings.QUOTAS[what]:
        return
    key = (user.pk, what)
    if more <= _spare.get(key, 0):
        _spare[key] -= more
        return
    quota = quota_of(user, what)
    _spare[key] = max(0, quota.room - more) // SHARE
    if more > quota.room:
        full, remedy = SENTENCES[what]
        formatter = file_size if what == "bytes" else grouped
        raise QuotaReached(f"{full % (formatter(quota.used), formatter(quota.most))} {remedy}")


def _count(rows: QuerySet[Any], what: str, most: int) -> int:
    if what == "bytes":
        return rows.aggregate(total=Sum("size"))["total"] or 0
    limited = rows.annotate(one=Value(1)).values("one")
    return (limited[:most] if most else limited).count()


MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
# A leaky bucket: each request moves ``paid_until`` by a share of the minute (or day), and it may be at most one minute
# (or day) ahead. One statement, so that two concurrent requests cannot both take the last place.
_PAY = """
INSERT INTO workspaces_spent AS mine (user_id, "limit", paid_until) VALUES (%(user)s, %(limit)s, %(first)s)
ON CONFLICT (user_id, "limit") DO UPDATE SET paid_until = greatest(mine.paid_until, %(now)s) + %(share)s
WHERE greatest(mine.paid_until, %(now)s) + %(share)s <= %(most)s
"""


def spend(limit: str, by: User, *, now: datetime, per: timedelta = MINUTE) -> None:
    """Count a request against the rate limit ``settings.THROTTLES[limit]``, a number of requests in the period ``per``.

    Raises TooManyRequests with the time to wait.
    """
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
