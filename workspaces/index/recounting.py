"""What a migration does that changes how words are counted: takes each passage's words out and puts the new ones in.

In batches of their own, each committed with how far it came: a killed run goes on from there. Until the last is done
the earlier function stands beside the new one under ``…_before``, as only it knows which words a passage has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

BATCH = 1000
# As index.words has it, BM25 with k1 1.2, b 0.3 and a typical length of 60: of a migration, so it stays as it is.
_SWITCH = """
WITH batch AS MATERIALIZED (
    SELECT m.id FROM {table} m WHERE m.id > %(after)s ORDER BY m.id LIMIT %(batch)s
), gone AS (
    DELETE FROM workspaces_passageword w USING (
        SELECT m.id, {place} AS place, c.lexeme
        FROM {table} m JOIN batch USING (id), LATERAL {words}_before(m) c
    ) said
    WHERE w.place = said.place AND w.lexeme = said.lexeme AND w.kind = {kind} AND w.ref = said.id
      AND NOT EXISTS (SELECT 1 FROM {table} m, LATERAL {words}(m) c WHERE m.id = said.id AND c.lexeme = said.lexeme)
), put AS (
    INSERT INTO workspaces_passageword (place, lexeme, kind, ref, weight)
    SELECT {place}, c.lexeme, {kind}, m.id, c.count * 2.2 / (c.count + 1.2 * (0.7 + 0.3 * c.length / 60.0))
    FROM {table} m JOIN batch USING (id),
         LATERAL (SELECT lexeme, count, sum(count) OVER () AS length FROM {words}(m)) c
    WHERE {live}
    ON CONFLICT (place, lexeme, kind, ref) DO UPDATE SET weight = excluded.weight
)
UPDATE workspaces_recount SET reached = (SELECT max(id) FROM batch)
WHERE kind = {kind} AND EXISTS (SELECT 1 FROM batch) RETURNING reached
"""
_PROGRESS = (
    "CREATE TABLE IF NOT EXISTS workspaces_recount (kind smallint PRIMARY KEY, reached bigint NOT NULL)"
)
_BEGIN = """
ALTER FUNCTION {words}({table}) RENAME TO {words}_before; {function}
INSERT INTO workspaces_recount VALUES ({kind}, 0);
"""
# Counts of common words are of the words before: without them recall counts by itself until the job does it anew.
_DONE = """
DROP FUNCTION {words}_before({table});
DROP TABLE workspaces_recount;
DELETE FROM workspaces_commonword WHERE kind = {kind};
DELETE FROM workspaces_placestatistics WHERE kind = {kind};
"""


@dataclass(frozen=True)
class Recount:
    """One kind's. ``place`` and ``live`` are SQL over its row ``m``; ``before`` and ``after`` make the function
    ``words`` as it was and as it is to be."""

    kind: int
    table: str
    words: str
    place: str
    live: str
    before: str
    after: str

    def forwards(self, apps: Any, schema_editor: Any) -> None:
        self._become(self.after)

    def backwards(self, apps: Any, schema_editor: Any) -> None:
        self._become(self.before)

    def _become(self, function: str) -> None:
        with connection.cursor() as cursor:
            with transaction.atomic():
                cursor.execute(_PROGRESS)
                cursor.execute("SELECT to_regproc(%s)", [f"{self.words}_before"])
                if cursor.fetchone()[0] is None:
                    cursor.execute(_BEGIN.format(**vars(self), function=function))
            self._switch(cursor)
            with transaction.atomic():
                cursor.execute(_DONE.format(**vars(self)))

    def _switch(self, cursor: Any) -> None:
        statement = _SWITCH.format(**vars(self))
        cursor.execute("SELECT reached FROM workspaces_recount WHERE kind = %s", [self.kind])
        reached = cursor.fetchone()
        while reached:
            cursor.execute(statement, {"after": reached[0], "batch": BATCH})
            reached = cursor.fetchone()
