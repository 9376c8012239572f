"""Up to where in the primary's log a person's own writes go, and what they were told of others'.

A row a person, in a table that no replica and no crash keeps: it is asked of the primary, and after so long that every
replica in use has them it says nothing more.
"""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from memoryhub.database import prepared
from memoryhub.database.replicas.state import ANYTHING

logger = logging.getLogger(__name__)
_NEEDED = """
SELECT (lsn - '0/0')::bigint FROM workspaces_written
WHERE person = %(person)s::bigint AND at > clock_timestamp() - %(lag)s::float8 * interval '2 seconds'
"""
# A row of long ago may be of another server, before a restore: its place in the log means nothing.
_NOTE = """
INSERT INTO workspaces_written AS before (person, lsn, at)
VALUES (%(person)s::bigint, pg_current_wal_insert_lsn(), clock_timestamp())
ON CONFLICT (person) DO UPDATE SET at = excluded.at,
    lsn = CASE WHEN before.at > clock_timestamp() - interval '1 minute' THEN greatest(before.lsn, excluded.lsn)
               ELSE excluded.lsn END
"""


def note_written(person: int) -> None:
    """What this person wrote until now, or is about to be told of, they will read. One small write, if replicas are."""
    if not settings.REPLICAS:
        return
    try:
        prepared.rows(_NOTE, {"person": person})
    except (DatabaseError, InterfaceError) as error:  # the write itself was acknowledged
        logger.warning(
            "What a replica has to have was not noted: %s", type(error.__cause__ or error).__name__
        )


def sweep_written() -> None:
    """Delete what says nothing any more; people who have left are among it."""
    if settings.REPLICAS:
        prepared.rows("DELETE FROM workspaces_written WHERE at < clock_timestamp() - interval '1 day'", {})


def needed_by(person: int) -> int:
    """The place in the log (LSN, in bytes) that a replica must have reached for them. One query."""
    found = prepared.rows(_NEEDED, {"person": person, "lag": settings.REPLICA_LAG})
    return int(found[0][0]) if found else ANYTHING
