"""Grow a large table from a small one: Postgres copies the rows of some workspaces into others."""

from collections.abc import Sequence

from django.db import connection
from psycopg import sql

from memories.models.memory import MEMORY
from workspaces.models.documents import DOCUMENT

APART = 10_000_000  # distance between the keys of two copies of a row: more than a measurement fills
_ID, _WORKSPACE, _PUBLIC = "r.id + {rows}", "r.workspace_id + {places}", "left(md5(r.id || '-{rows}'), 24)"
_ROW = {"id": _ID, "workspace_id": _WORKSPACE}
# For each kind and table, the columns that differ in a copy, as SQL over its row r.
_COPIED = {
    MEMORY: {"memories_memory": _ROW | {"public_id": f"'mem_' || {_PUBLIC}"}},
    DOCUMENT: {
        "workspaces_document": _ROW | {"public_id": f"'doc_' || {_PUBLIC}", "file_name": _PUBLIC},
        "workspaces_documentpassage": _ROW | {"document_id": "r.document_id + {rows}"},
    },
}
_INDEXED = {"ref": "r.ref + {rows}", "place": "r.place + {places}"}
_INDEX = {"workspaces_passagevector": _INDEXED, "workspaces_passageword": _INDEXED}
_COLUMNS = """
SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
"""


def copy_places(kind: int, places: Sequence[int], copy: int) -> None:
    """Copy the rows of a kind from these workspaces, whose keys are consecutive, into as many with the next keys.

    The second ``copy`` goes into as many after those.
    """
    given = {"rows": APART * copy, "places": len(places) * copy}
    with connection.cursor() as cursor:
        for table, differ in (_COPIED[kind] | _INDEX).items():
            cursor.execute(_COLUMNS, [table])
            names = [name for (name,) in cursor.fetchall() if name != "id" or "id" in differ]
            said = ", ".join(differ.get(name, f'r."{name}"') for name in names).format(**given)
            of = f"r.kind = {kind} AND r.place" if table in _INDEX else "r.workspace_id"
            cursor.execute(
                sql.SQL(
                    "INSERT INTO {table} ({names}) SELECT {said} FROM {table} r WHERE {of} BETWEEN %s AND %s"
                ).format(
                    table=sql.Identifier(table),
                    names=sql.SQL(", ").join(map(sql.Identifier, names)),
                    said=sql.SQL(said),
                    of=sql.SQL(of),
                ),
                [min(places), max(places)],
            )
