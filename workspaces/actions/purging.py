"""Permanent removal: counts, purging, and functions that other apps register for it.

Rows with a foreign key to a workspace or person are deleted by cascade. An app registers a function here for files and
for rows without such a key. This app cannot import those apps.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from django.apps import apps
from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later

from workspaces.audit import Verb, record
from workspaces.models import User

Counts = Counter[str]  # removed rows by plural name: "memories", "receipt items"


class Remover(Protocol):
    def __call__(self, *, workspace_ids: list[int], user_id: int | None, by: User) -> Counts: ...


_removers: list[Remover] = []


def register_remover(remover: Remover) -> None:
    """Register a function that is called before workspaces or a person are deleted, in the same transaction."""
    if remover not in _removers:
        _removers.append(remover)


def remove_in_other_apps(*, workspace_ids: Iterable[int], by: User, user_id: int | None = None) -> Counts:
    """Remove the rows of these workspaces and this person in other apps, by calling the registered functions.

    The function registered last is called first. Other people's rows are not counted, because their number is private.
    """
    gone: Counts = Counter()
    ids = sorted(workspace_ids)
    for remover in reversed(_removers):
        gone += remover(workspace_ids=ids, user_id=user_id, by=by)
    return gone


def counted(by_label: Mapping[str, int]) -> Counts:
    """Convert the result of a queryset's ``delete()`` to counts by plural name. Many-to-many rows are left out."""
    gone: Counts = Counter()
    for label, number in by_label.items():
        model = apps.get_model(label)
        if not model._meta.auto_created:
            gone[words_for(model)] += number
    return +gone


# Names for the rows that people know. All other rows are counted together.
KNOWN: Mapping[str, Promise] = {
    "memories": later("Memories"),
    "revisions": later("Entries in the history of memories"),
    "memory nodes": later("Topics"),
    "assets": later("Files"),
    "recall questions": later("Questions of the recall test"),
    "chats": later("Chats"),
    "messages": later("Messages"),
    "short-term memories": later("Summaries of chats"),
    "receipts": later("Notes under answers of what was used"),
    "tool calls": later("Tool calls"),
    "artifacts": later("Artifacts"),
    "artifact versions": later("Versions of artifacts"),
    "imports": later("Imports"),
    "saved prompts": later("Prompts"),
    "workspaces": later("Workspaces"),
    "agents": later("Assistants"),
    "invitations": later("Invitations"),
    "pictures": later("Pictures"),
    "connections": later("Model connections"),
    "API keys": later("API keys"),
    "memory words": later("Entries in the search index"),
    "memory embeddings": later("Entries in the search index"),
    "message wordss": later("Entries in the search index"),
}


def lines_of(removed: Counts) -> list[tuple[str, int]]:
    """Return removed rows as (name, count) pairs to display, the largest first.

    Rows of tables without a displayed name are added up in the last pair.
    """
    lines: Counter[str] = Counter()
    for name, number in removed.items():
        if name in KNOWN:
            lines[str(KNOWN[name])] += number
    others = sum(removed.values()) - sum(lines.values())
    return [*lines.most_common(), *([(_("Other records about them"), others)] if others else [])]


def purge_deleted(
    rows: QuerySet[Any],
    remove: Callable[[list[int]], object],
    what: str,
    *,
    now: datetime,
    seconds: float,
    most: int,
) -> int:
    """Remove rows permanently that were soft-deleted more than MEMORYHUB_PURGE_AFTER_DAYS ago. Return the number
    removed.

    Stops after about ``seconds``. ``remove`` is called with the primary keys of at most ``most`` rows in each
    transaction. ``what``: the rows' name in the audit log.
    """
    if not settings.PURGE_AFTER_DAYS:
        return 0
    before, deadline, number = now - timedelta(days=settings.PURGE_AFTER_DAYS), time.monotonic() + seconds, 0
    due = rows.filter(deleted_at__lt=before).order_by("deleted_at")
    while time.monotonic() < deadline:
        with transaction.atomic():
            keys = list(
                due.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)[:most]
            )
            remove(keys)
        number += len(keys)
        if len(keys) < most:
            break
    if number:
        record(Verb.PURGED, by=None, details={what: number})
    return number


def words_for(model: type[models.Model]) -> str:
    return str(model._meta.verbose_name_plural)


def delete_rows(table: type[models.Model], where: str, params: Mapping[str, Any]) -> Counts:
    """Delete from a table without incoming foreign keys. ``where`` must be trusted SQL."""
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table._meta.db_table} WHERE {where}", params)  # noqa: S608  ours
        return Counter({words_for(table): cursor.rowcount}) if cursor.rowcount else Counter()
