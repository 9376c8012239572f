"""Loading of recalled memories in one query, with a check for credentials, and marking of them as accessed."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.core.cache import caches
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection
from django.db.models import Model
from django_q.tasks import async_task

from memories.judging.secret_filter import RULES
from memories.models import Memory
from memories.models.memory import PLACE, WRITTEN_BY, live_sql
from memories.writing.drafts import kind_in
from memoryhub.database import queries
from memoryhub.database.queries import using
from memoryhub.database.replicas import stands_in
from workspaces.models import User

logger = logging.getLogger(__name__)
BUMPED_EVERY = timedelta(minutes=1)
RECHECKED_EVERY = 10  # seconds between two jobs, so that not every recall of an unchecked memory queues one
# The columns of a memory without the large ones. _LOAD adds whether its vector exists, the latest memory that may
# replace it, who wrote and imported it, and the older memory that it may replace.
_NAMES = [f.attname for f in Memory._meta.concrete_fields if f.name not in {"search", "source_excerpt"}]


def _in_order(model: type[Model], *names: str) -> list[str]:
    """Return field names in the order of the model's fields, which ``from_db`` requires."""
    return [field.attname for field in model._meta.concrete_fields if field.name in names]


_AUTHOR = _in_order(User, "id", "username", "first_name", "last_name", "public_id")
_OLDER = _in_order(Memory, "id", "public_id", "content", "expires_at", "replaced_by", "deleted_at")
_LOAD = f"""
SELECT {", ".join(f"m.{name}" for name in _NAMES)}, EXISTS (
           SELECT 1 FROM workspaces_passagevector e WHERE e.kind = 1 AND e.ref = m.id AND e.model = %(active)s::text
             AND e.place = ANY(%(places)s::bigint[])
       ), (SELECT max(n.id) FROM memories_memory n WHERE n.may_replace_id = m.id AND {live_sql("n")}
           AND n.workspace_id = ANY(%(workspaces)s::bigint[])),
       {", ".join(f"u.{name}" for name in _AUTHOR)}, {", ".join(f"i.{name}" for name in _AUTHOR)},
       {", ".join(f"o.{name}" for name in _OLDER)}
FROM memories_memory m LEFT JOIN workspaces_user u ON u.id = {WRITTEN_BY}
LEFT JOIN workspaces_user i ON i.id = m.imported_by_id
LEFT JOIN (
    SELECT {", ".join(_OLDER)} FROM memories_memory WHERE workspace_id = ANY(%(workspaces)s::bigint[])
) o ON o.id = m.may_replace_id
WHERE m.id = ANY(%(ids)s::bigint[]) AND {live_sql()}
  AND {PLACE} = ANY(%(places)s::bigint[]) AND m.workspace_id = ANY(%(workspaces)s::bigint[])
"""  # noqa: S608  column names only
# Skips locked rows and rows accessed within the last minute, because seconds do not matter. Outside a transaction the
# commit does not wait for the disk, because accesses lost in a crash do not matter either.
_BUMP = """
WITH quick AS MATERIALIZED (SELECT {quick})
UPDATE memories_memory SET last_accessed_at = %(now)s::timestamptz FROM quick WHERE id IN (
    SELECT id FROM memories_memory WHERE id = ANY(%(ids)s::bigint[]) AND deleted_at IS NULL
      AND workspace_id = ANY(%(workspaces)s::bigint[])
      AND (last_accessed_at IS NULL OR last_accessed_at < %(now)s::timestamptz - interval '1 minute')
    FOR UPDATE SKIP LOCKED) AND workspace_id = ANY(%(workspaces)s::bigint[])
"""
_QUICK = "set_config('synchronous_commit', 'off', true)"  # until the end of the statement's own transaction


def load_memories(ids: Iterable[int], params: Mapping[str, Any], *, model: str) -> dict[int, Memory]:
    """Return live memories by primary key. One query.

    Memories outside the scopes ``params["places"]`` are left out, and those in which the current rules find a
    credential. Each memory is loaded with its writer and the older memory that it may replace. It has ``searchable``
    (whether its vector of ``model`` exists) and ``newer`` (the primary key of the latest memory that may replace it).
    """
    people: dict[int, User] = {}
    rows = queries.rows(_LOAD, {**params, "ids": list(ids), "active": model})
    return {memory.pk: memory for memory in _clean([_memory(row, people) for row in rows])}


def mark_accessed(memories: list[Memory], now: datetime) -> None:
    """Mark memories as accessed now. Those accessed within the last minute are left as they are."""
    before = now - BUMPED_EVERY
    bumped = [each for each in memories if each.last_accessed_at is None or each.last_accessed_at < before]
    for memory in bumped:
        memory.last_accessed_at = now
    if bumped:
        statement = _BUMP.format(quick="1" if connection.in_atomic_block else _QUICK)
        params = {
            "now": now,
            "ids": [each.pk for each in bumped],
            "workspaces": {each.workspace_id for each in bumped},
        }
        _log_failure(lambda: queries.rows(statement, params))


def _log_failure(write: Callable[[], object]) -> None:
    """Run a write, and only log its failure, so that recall works with a full or read-only database.

    If the caller's transaction is aborted by the failure, DatabaseError is raised.
    """
    if stands_in():
        return
    try:
        with using(DEFAULT_DB_ALIAS):
            write()
    except DatabaseError as error:
        if connection.in_atomic_block:  # the caller's transaction is aborted
            raise
        logger.warning("A note about what was recalled was not written: %s", type(error.__cause__).__name__)


def _memory(row: tuple[Any, ...], people: dict[int, User]) -> Memory:
    """Build a memory from a row of ``_LOAD``. ``people`` caches the users of earlier rows."""
    at, writer = len(_NAMES), len(_NAMES) + 2
    importer, after = writer + len(_AUTHOR), writer + 2 * len(_AUTHOR)
    memory = Memory.from_db(DEFAULT_DB_ALIAS, _NAMES, row[:at])
    memory.searchable = row[at]  # type: ignore[attr-defined]  # as in workspaces.index.embedding.searchable
    memory.newer = row[at + 1]  # type: ignore[attr-defined]
    if isinstance(memory.source_details, str):  # as without a prepared statement
        memory.source_details = json.loads(memory.source_details)
    is_edited = memory.edited_at is not None
    key = memory.edited_by_id if is_edited else memory.author_id
    for person, begins in ((key, writer), (memory.imported_by_id, importer)):
        if person is not None and person not in people:
            people[person] = User.from_db(DEFAULT_DB_ALIAS, _AUTHOR, row[begins : begins + len(_AUTHOR)])
    memory.imported_by = people[memory.imported_by_id] if memory.imported_by_id is not None else None
    setattr(memory, "edited_by" if is_edited else "author", people[key] if key is not None else None)
    older = memory.may_replace_id is not None
    memory.may_replace = Memory.from_db(DEFAULT_DB_ALIAS, _OLDER, row[after:]) if older else None
    return memory


def _clean(memories: list[Memory]) -> list[Memory]:
    """Remove memories in which newer rules find a credential, and queue a job that hides them in the database. No
    query.

    Source excerpts are not checked here, because recall does not return them; ``scan_secrets`` checks them.
    """
    stale = [memory for memory in memories if memory.secret_rules != RULES]
    if not stale:
        return memories
    if caches["process"].add("memories.recheck", True, RECHECKED_EVERY):
        ids = [memory.pk for memory in stale]
        _log_failure(lambda: async_task("memories.tasks.recheck_memories", memory_ids=ids))
    refused = {memory.pk for memory in stale if kind_in(memory)}
    return [memory for memory in memories if memory.pk not in refused]
