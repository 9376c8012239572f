"""Scrubbing in difficult cases: a table that became empty, and WAL files renamed for recycling."""

import random
from pathlib import Path

import psycopg
import pytest

from memoryhub.local.postgres import EmbeddedPostgres, connection_settings
from memoryhub.management.commands.scrub import scrub
from tests.verification.test_scrub import files_with


def test_statistics_of_an_empty_table_and_recycled_log_are_scrubbed_too(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder: Path = tmp_path_factory.mktemp("scrubbed")
    folder.chmod(0o755)
    server = EmbeddedPostgres(folder)
    server.initialise()
    server.start()
    word = "".join(random.Random().sample("bcdfghjklmnprstvwz", 12))
    settings = dict(connection_settings(folder))
    try:
        with psycopg.connect(**settings, autocommit=True) as connection:  # type: ignore[arg-type]
            connection.execute("CREATE TABLE said (text text)")
            connection.execute("INSERT INTO said SELECT %s || n FROM generate_series(1, 3) n", [word])
            connection.execute("ANALYZE said")
            for _ in range(8):
                connection.execute("SELECT pg_logical_emit_message(false, 'test', %s)", [word * 1000])
                connection.execute("SELECT pg_switch_wal()")
            connection.execute("DELETE FROM said")
            connection.execute("CHECKPOINT")
        before = files_with(folder, [word])
        assert sum("/pg_wal/" in name for name in before) > 2, before
        assert any("/base/" in name and name.endswith("/2619") for name in before), "in pg_statistic"
        scrub(settings, lambda said: None)
        assert files_with(folder, [word]) == {}
    finally:
        server.stop()
