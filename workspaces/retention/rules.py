"""The rules themselves: what an owner sets, within what the operator allows, and what would go by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.expressions import Combinable
from django.utils.translation import gettext as _

from memoryhub.errors import Invalid
from workspaces.access import lock_to_count, require, role_in
from workspaces.audit import KEPT_ANYWAY, Verb, Word, record
from workspaces.models import AuditEvent, Retention, Role, User, Workspace
from workspaces.retention.kept import Kept, kinds

NAMES = ("chats", "memories", "documents", "artifacts", "activity")
MOST_DAYS = 36_500

Rules = Mapping[str, int | None]


@dataclass(frozen=True)
class Bounds:
    """Range of an owner's choice, in days; ``most`` 0: for good as well."""

    least: int
    most: int


def bounds(name: str) -> Bounds:
    most = settings.RETENTION_MOST[name]
    least = settings.MIN_ACTIVITY_DAYS if name == "activity" else 1
    return Bounds(min(least, most) if most else least, most)


def rules_of(workspace: Workspace) -> Rules:
    """The owners' own, by name; None: none. One query."""
    found = Retention.objects.filter(workspace=workspace).values(*NAMES).first()
    return found or dict.fromkeys(NAMES)


def in_force(rules: Rules) -> Rules:
    """With what the operator allows at most: the shorter one holds."""
    return {
        name: min((days for days in (rules[name], bounds(name).most) if days), default=None) for name in NAMES
    }


def set_rules(workspace: Workspace, *, by: User, now: datetime, **days: int | None) -> Rules:
    """Set the rules that are named; None takes one away. Owners only. Raises Invalid, by name.

    Nothing goes by them for a day (``RULES_HOLD_AFTER``), so that a slip of the hand can be taken back.
    """
    check(days)
    with transaction.atomic():
        lock_to_count(workspace)
        require(role_in(by, workspace) or Role.VIEWER, Role.OWNER)
        before = rules_of(workspace)
        after = {**before, **days}
        if after == before:
            return after
        values = {**after, "set_by": by, "updated_at": now}
        Retention.objects.update_or_create(workspace=workspace, defaults=values)
        changed: dict[str, Word | list[Word]] = {
            name: after[name] or "for_good" for name in NAMES if after[name] != before[name]
        }
        record(Verb.RETENTION_SET, by=by, workspace=workspace, details=changed)
    return after


def check(days: Rules) -> None:
    """Raise Invalid for what is no number of days, or none that may be chosen."""
    wrong: dict[str, str] = {}
    for name, number in days.items():
        if name not in NAMES:
            raise Invalid(fields={name[:60]: _("There is no such rule.")})
        allowed = bounds(name)
        most = allowed.most or MOST_DAYS
        if number is not None and not allowed.least <= number <= most:
            wrong[name] = _("Must be %(least)s to %(most)s days.") % {"least": allowed.least, "most": most}
    if wrong:
        raise Invalid(fields=wrong)


def would_go(workspace: Workspace, rules: Rules, *, by: User, now: datetime) -> dict[str, int]:
    """Count what these rules would delete today, by name: of what ``by`` may know to be there."""
    wanted = in_force({**dict.fromkeys(NAMES), **rules})
    found = {}
    for kind in kinds():
        if days := wanted[kind.name]:
            theirs = kind.rows().filter(kind.shared | kind.of(by), workspace=workspace)
            found[kind.name] = older(theirs, kind, now - timedelta(days=days)).count()
    if days := rules.get("activity"):
        events = AuditEvent.objects.of_workspace(workspace).exclude(verb__in=KEPT_ANYWAY)
        found["activity"] = events.filter(at__lt=now - timedelta(days=days)).count()
    return found


def older(rows: QuerySet[Any], kind: Kept, before: datetime | Combinable) -> QuerySet[Any]:
    return rows.annotate(counted_from=kind.since).filter(counted_from__lt=before)


def is_overdue(kind_name: str, workspace: Workspace, since: datetime, *, now: datetime) -> bool:
    """Return whether a thing kept ``since`` would go at once: the time of one that a person restores starts again."""
    days = in_force(rules_of(workspace))[kind_name]
    return days is not None and since < now - timedelta(days=days)
