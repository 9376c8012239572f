"""Quotas of one person: workspaces, chats, memories, bytes of files. The limits are the operator's settings.

Who made something is charged for it as long as it is stored, also while it is deleted and can be restored; what a file
brings in the names of others is charged to its importer. The apps
above register what they count (``register_quota``). Superusers are charged for nothing: they bring back whole
installations.

Counting a hundred thousand takes tens of milliseconds, so a process that has counted lets a sixteenth of the room that
it found be used before it counts again. Sixteen processes keep to the limit so; two requests at once may go over it, at
its very end, by what one of them makes.
"""

from __future__ import annotations

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
from memoryhub.languages import file_size, grouped
from memoryhub.monitoring import metrics
from workspaces.models import Spent, User, Workspace

Rows = Callable[[User], QuerySet[Any]]


class QuotaReached(Conflict):
    """The person has as much of it as one person may."""

    code = "quota"


@dataclass(frozen=True)
class Quota:
    """A person's quota: ``used`` of ``most``. With ``most`` 0 there is no limit, and ``used`` may be incomplete."""

    what: str
    used: int
    most: int

    @property
    def room(self) -> int:
        return max(0, self.most - self.used)

    def in_words(self) -> str:
        """Return a text for staff, such as "3 of 100 workspaces"."""
        said, what = (file_size, "in files") if self.what == "bytes" else (grouped, self.what)
        return (
            f"{said(self.used)} of {said(self.most)} {what}"
            if self.most
            else f"{said(self.used)} {what}, no limit"
        )


# Sentences about a full quota and its remedy. Imports store them, so they are marked by ``kept``.
SENTENCES: dict[str, tuple[str | Promise, str | Promise]] = {
    "workspaces": (
        later("You have made %s of the %s workspaces allowed here."),
        later("Delete one you no longer need, or ask your administrator for more."),
    ),
    "chats": (
        later("You have %s of the %s chats allowed here."),
        later("Forget some for good, or ask your administrator for more."),
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
_spare: dict[tuple[int, str], int] = {}  # of a person, what this process may let pass without counting
_rows: dict[str, list[Rows]] = {"workspaces": [lambda user: Workspace.objects.filter(made_by=user)]}


def register_quota(what: str, rows: Rows) -> None:
    """Register rows that count against a person's quota ``what``; for "bytes" the sum of their ``size``."""
    _rows.setdefault(what, []).append(rows)


def quota_of(user: User, what: str) -> Quota:
    """Return this person's use of it. Counts index entries up to the limit, a query for each kind of row."""
    most = settings.QUOTAS[what]
    return Quota(what, sum(_count(rows(user).order_by(), what, most) for rows in _rows[what]), most)


def brought_by(by: User | None, name: User | None) -> int | None:
    """Return the key of the person whose quota a row counts against, if ``by`` writes in another person's ``name``.

    None: it takes that of the name, also where a superuser brings back what was there.
    """
    return None if by is None or by == name or by.is_superuser else by.pk


def charged_to(user: User, name: str) -> Q:
    """Return the condition for rows that count against a person's quota, by ``brought_by`` or by the ``name`` they
    stand in.
    """
    return Q(**{name: user, "brought_by": None}) | Q(brought_by=user.pk)


def take_room(what: str, by: User | None, name: User | None) -> int | None:
    """Check the quota of ``by``, or of the person whose job makes the row, and return the key for ``brought_by``."""
    require_room(what, by or name)
    return brought_by(by, name)


def require_room(what: str, user: User | None, more: int = 1) -> None:
    """Raise QuotaReached, saying how much there may be and what to do, where ``more`` do not fit any more."""
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
        said = file_size if what == "bytes" else grouped
        raise QuotaReached(f"{full % (said(quota.used), said(quota.most))} {remedy}")


def _count(rows: QuerySet[Any], what: str, most: int) -> int:
    if what == "bytes":
        return rows.aggregate(total=Sum("size"))["total"] or 0
    limited = rows.annotate(one=Value(1)).values("one")
    return (limited[:most] if most else limited).count()


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
