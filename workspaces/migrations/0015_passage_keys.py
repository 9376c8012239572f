"""Keys and indexes of passages have their kind in them: built beside readers and writers, some minutes for ten million
words. May be stopped or killed at any time and run again: what is built stays, what is half-built is built anew.
"""

import sys
import threading
import time
from contextlib import contextmanager

import psycopg
from django.contrib.postgres.indexes import GinIndex
from django.db import migrations

from memoryhub.management.database import psycopg_settings

# Of each index: its table, its name, what it is, what it takes the place of, and how.
BUILT = (
    (
        "workspaces_passagevector",
        "one_vector_a_passage",
        "CREATE UNIQUE INDEX CONCURRENTLY one_vector_a_passage ON workspaces_passagevector (kind, ref, model)",
        "one_vector_a_model",
        "ALTER TABLE workspaces_passagevector DROP CONSTRAINT one_vector_a_model, "
        "ADD CONSTRAINT one_vector_a_passage UNIQUE USING INDEX one_vector_a_passage",
    ),
    (
        "workspaces_passagevector",
        "passage_of_place",
        "CREATE INDEX CONCURRENTLY passage_of_place ON workspaces_passagevector (place, kind, model) WHERE live",
        "vector_of_place",
        "DROP INDEX vector_of_place",
    ),
    (
        "workspaces_passageword",
        "workspaces_passageword_pkey",
        "CREATE UNIQUE INDEX CONCURRENTLY workspaces_passageword_pkey "
        "ON workspaces_passageword (place, lexeme, kind, ref) INCLUDE (weight)",
        "memories_memoryword_pkey",
        "ALTER TABLE workspaces_passageword DROP CONSTRAINT memories_memoryword_pkey, "
        "ADD CONSTRAINT workspaces_passageword_pkey PRIMARY KEY USING INDEX workspaces_passageword_pkey",
    ),
)
# Of names that look alike. 0012 made it once, while writers waited: where it stands from then, it is built anew.
NO_LOOKS = "DROP INDEX CONCURRENTLY IF EXISTS user_looks"
LOOKS = "CREATE INDEX CONCURRENTLY user_looks ON workspaces_user USING gin (looks)"
BACK = """
DELETE FROM workspaces_passagevector WHERE kind <> 1;
DELETE FROM workspaces_passageword WHERE kind <> 1;
ALTER TABLE workspaces_passagevector DROP CONSTRAINT one_vector_a_passage,
    ADD CONSTRAINT one_vector_a_model UNIQUE (ref, model);
DROP INDEX passage_of_place;
CREATE INDEX vector_of_place ON workspaces_passagevector (place, model) WHERE live;
ALTER TABLE workspaces_passageword DROP CONSTRAINT workspaces_passageword_pkey,
    ADD CONSTRAINT memories_memoryword_pkey PRIMARY KEY (place, lexeme, ref) INCLUDE (weight);
"""
VALID = "SELECT indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname = %s"
UNDER_WAY = """
SELECT blocks_done::float8 / nullif(blocks_total, 0), tuples_done::float8 / nullif(tuples_total, 0), phase
FROM pg_stat_progress_create_index WHERE relid = %s::regclass AND datname = current_database()
"""


def build(apps, schema_editor):
    for table, name, definition, before, replace in BUILT:
        with schema_editor.connection.cursor() as cursor, said(table, name):
            cursor.execute(VALID, [name])
            found = cursor.fetchone()
            if found and not found[0]:
                cursor.execute(f"DROP INDEX CONCURRENTLY {name}")
            if not found or not found[0]:
                cursor.execute(definition)
            cursor.execute(VALID, [before])
            if cursor.fetchone():
                cursor.execute(replace)
    schema_editor.execute("ANALYZE workspaces_passagevector, workspaces_passageword")  # of kind nothing is known yet


@contextmanager
def said(table, name):
    """On a terminal how far the building is, once a second."""
    done = threading.Event()
    with psycopg.connect(**psycopg_settings(), autocommit=True) as own:

        def look():
            row = own.execute(UNDER_WAY, [table]).fetchone()
            if row and sys.stderr.isatty():
                share = next((each for each in row[1::-1] if each is not None), 0)
                print(f"\r\033[K{name}: {row[2]}, {100 * share:.0f} %", end="", file=sys.stderr, flush=True)
            return row

        def watch():
            while not done.wait(1):
                look()

        while look():  # what a killed run began, and the server goes on with
            time.sleep(1)
        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            if sys.stderr.isatty():
                print("\r\033[K", end="", file=sys.stderr, flush=True)


def back(apps, schema_editor):
    schema_editor.execute(BACK)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("workspaces", "0014_passages")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL([NO_LOOKS, LOOKS], [NO_LOOKS])],
            state_operations=[
                migrations.AddIndex(model_name="user", index=GinIndex(fields=["looks"], name="user_looks")),
            ],
        ),
        migrations.RunPython(build, back),
    ]
