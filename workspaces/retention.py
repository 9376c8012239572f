"""Retention rules of a workspace, by which an hourly job soft-deletes, and deletions repeated after a restore.

Owners set the rules within the operator's limits. ``workspaces.actions.purging`` deletes permanently.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import psycopg
from django.conf import settings
from django.db import transaction
from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, Q, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Greatest
from django.utils.translation import gettext as _
from psycopg.rows import dict_row

from memoryhub.errors import Invalid
from workspaces import artifacts
from workspaces.access import lock_to_count, require, role_in
from workspaces.audit import KEPT_ANYWAY, RULES_HOLD_AFTER, Verb, record
from workspaces.documents import documents
from workspaces.models import Artifact, AuditEvent, Document, Retention, Role, User, Workspace

NAMES = ("chats", "memories", "documents", "artifacts", "activity")
MOST_DAYS = 36_500

Rules = Mapping[str, int | None]


@dataclass(frozen=True)
class Bounds:
    """Allowed range of a rule in days. ``most`` 0: unlimited."""

    least: int
    most: int


def bounds(name: str) -> Bounds:
    most = settings.RETENTION_MOST[name]
    least = settings.MIN_ACTIVITY_DAYS if name == "activity" else 1
    return Bounds(min(least, most) if most else least, most)


def rules_of(workspace: Workspace) -> Rules:
    """Return the owners' rules: days by name, None without a rule. One query."""
    rules = Retention.objects.filter(workspace=workspace).values(*NAMES).first()
    return rules or dict.fromkeys(NAMES)


def in_force(rules: Rules) -> Rules:
    """Return the rules that apply: the shorter of the owners' rule and the operator's maximum."""
    return {
        name: min((days for days in (rules[name], bounds(name).most) if days), default=None) for name in NAMES
    }


def set_rules(workspace: Workspace, *, by: User, now: datetime, **days: int | None) -> Rules:
    """Set the named rules in days; None removes a rule. Owners only. Raises Invalid for a wrong value.

    New rules apply after a day (``RULES_HOLD_AFTER``), so that a mistake can be corrected.
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
        changed = {name: after[name] or "for_good" for name in NAMES if after[name] != before[name]}
        record(Verb.RETENTION_SET, by=by, workspace=workspace, details=changed)
    return after


def check(days: Rules) -> None:
    """Raise Invalid for an unknown rule or a number of days that is out of bounds."""
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
    """Return the numbers of items, by kind, that these rules would delete today, among those that ``by`` may see."""
    wanted = in_force({**dict.fromkeys(NAMES), **rules})
    counts = {}
    for kind in kinds():
        if days := wanted[kind.name]:
            theirs = kind.rows().filter(kind.shared | kind.of(by), workspace=workspace)
            counts[kind.name] = older(theirs, kind, now - timedelta(days=days)).count()
    if days := rules.get("activity"):
        events = AuditEvent.objects.of_workspace(workspace).exclude(verb__in=KEPT_ANYWAY)
        counts["activity"] = events.filter(at__lt=now - timedelta(days=days)).count()
    return counts


def older(rows: QuerySet[Any], kind: Kept, before: datetime | Combinable) -> QuerySet[Any]:
    return rows.annotate(counted_from=kind.since).filter(counted_from__lt=before)


def is_overdue(kind_name: str, workspace: Workspace, since: datetime, *, now: datetime) -> bool:
    """Return whether the rule of this workspace would delete an item whose retention period began at ``since``.

    If so, the period must begin again when the item is restored. Otherwise it would be deleted again at once.
    """
    days = in_force(rules_of(workspace))[kind_name]
    return days is not None and since < now - timedelta(days=days)


# Kinds of items with a retention rule. Apps register theirs (``register_kept``), as with quotas.

EVERY = Q()
SHARED = Q(owner=None)
# Personal rows are in their owner's own workspace, and follow its rule only if the owner set it.
BY_RULE = SHARED | Q(owner=F("workspace__retention__set_by"))


class Delete(Protocol):
    def __call__(self, row: Any, /, *, now: datetime) -> object: ...


@dataclass(frozen=True)
class Kept:
    """A kind of item with a retention rule, such as chats.

    ``rows``: returns the items that may be deleted, live and not pinned. ``since``: the start of an item's period.
    ``shared``: the condition for items that all members see. ``of``: a function from a person to the condition for
    their own items. ``delete``: soft-deletes a locked item.
    """

    name: str
    rows: Callable[[], QuerySet[Any]]
    since: Combinable
    shared: Q
    of: Callable[[User], Q]
    delete: Delete
    by_rule: Q = EVERY  # the rows under an owner's rule; the operator's applies to all


_kinds: dict[str, Kept] = {}


def register_kept(kind: Kept) -> None:
    _kinds[kind.name] = kind


def kinds() -> list[Kept]:
    return list(_kinds.values())


register_kept(
    Kept(
        name="documents",
        rows=lambda: Document.objects.live(),
        since=Greatest("created_at", "updated_at"),
        shared=SHARED,
        of=lambda user: Q(owner=user),
        delete=documents.soft_delete,
        by_rule=BY_RULE,
    )
)
register_kept(
    Kept(
        name="artifacts",
        rows=lambda: Artifact.objects.live(),
        since=F("updated_at"),
        shared=SHARED,
        of=lambda user: Q(owner=user),
        delete=artifacts.soft_delete,
        by_rule=BY_RULE,
    )
)


# Soft deletion by the rules, a few rows at a time. Until the purge the rows can be restored.

BATCH = 50  # rows locked at a time, so that others wait only for a few deletes


def sweep(*, now: datetime, seconds: float) -> tuple[int, bool]:
    """Delete overdue items for about ``seconds``. Return their number, and whether all were deleted.

    One query per kind if no rule is set.
    """
    deadline, number = time.monotonic() + seconds, 0
    for kind in kinds():
        for rows in _overdue(kind, now):
            for removed in _batches(kind, rows, now):
                number += removed
                if time.monotonic() > deadline:
                    return number, False
    return number, True


def _overdue(kind: Kept, now: datetime) -> Iterator[QuerySet[Any]]:
    """Yield the overdue rows by the owners' rules, then by the operator's."""
    held = Retention.objects.filter(**{f"{kind.name}__isnull": False}, updated_at__lt=now - RULES_HOLD_AFTER)
    if held.exists():
        days = F(f"workspace__retention__{kind.name}")
        period = ExpressionWrapper(days * Value(timedelta(days=1)), output_field=DurationField())
        before = ExpressionWrapper(Value(now) - period, output_field=DateTimeField())
        yield older(kind.rows().filter(kind.by_rule, workspace__retention__in=held), kind, before)
    if most := settings.RETENTION_MOST[kind.name]:
        yield older(kind.rows(), kind, now - timedelta(days=most))


def _batches(kind: Kept, rows: QuerySet[Any], now: datetime) -> Iterator[int]:
    """Delete overdue rows in batches, and yield the size of each. Rows that others have locked are skipped."""
    last = 0
    while True:
        with transaction.atomic():
            due = rows.filter(pk__gt=last).order_by("pk").select_related("workspace")
            batch = list(due.select_for_update(of=("self",), skip_locked=True)[:BATCH])
            for row in batch:
                kind.delete(row, now=now)
            _record_deletions(kind, batch)
        if batch:
            yield len(batch)
            last = batch[-1].pk
        if len(batch) < BATCH:
            return


def _record_deletions(kind: Kept, gone: list[Any]) -> None:
    """Record the number of deleted items in each workspace's audit log.

    Personal items are not counted, because the workspace's owners may not know of them.
    """
    shared = kind.rows().model._base_manager.filter(kind.shared, pk__in=[row.pk for row in gone])
    counts = Counter(shared.order_by().values_list("workspace", flat=True))
    for workspace in Workspace.objects.filter(pk__in=counts).order_by("pk"):
        details = {kind.name: counts[workspace.pk]}
        record(Verb.RETENTION_APPLIED, by=None, workspace=workspace, details=details)


FORGOTTEN_AT_ONCE = 1_000
_EVENTS = """
SELECT at, verb, by_id, by_name, workspace_id, target, details, network, request_id
FROM workspaces_auditevent WHERE verb = %s ORDER BY id
"""


def forget_again(newer: psycopg.Connection[Any], say: Callable[[str], None]) -> None:
    """Repeat the permanent deletions of documents and artifacts that happened after the restored backup was made.

    They are read from the audit log of ``newer``, the database before the restore; entries older than
    MEMORYHUB_AUDIT_DAYS are missing there. Django's connection is to the restored database, into which the entries are
    copied for a later restore. ``say`` prints a message.
    """
    for verb in (Verb.DOCUMENT_FORGOTTEN, Verb.ARTIFACT_FORGOTTEN):
        events = newer.cursor(row_factory=dict_row).execute(_EVENTS, [verb]).fetchall()
        known = set(AuditEvent.objects.filter(verb=verb).values_list("target", flat=True))
        missed = [AuditEvent(**event) for event in events if event["target"] not in known]
        AuditEvent.objects.bulk_create(missed, batch_size=FORGOTTEN_AT_ONCE)
        ids = [event.target for event in missed]
        if verb == Verb.DOCUMENT_FORGOTTEN:
            number = _remove_documents(ids)
        else:
            pks = list(Artifact.objects.filter(public_id__in=ids).values_list("pk", flat=True))
            artifacts.remove(pks)
            number = len(pks)
        what = verb.removesuffix("_forgotten")
        say(f"Forgotten since, {what}s: {len(missed)}; removed again: {number}")


def _remove_documents(ids: list[str]) -> int:
    rows = Document.objects.filter(public_id__in=ids)
    for document in rows:
        with transaction.atomic():
            documents.remove(document)
    return len(rows)
