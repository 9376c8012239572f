"""bench_scale measures what it says, and leaves no database behind."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import connection
from psycopg import sql
from pytest_django.fixtures import Settings

from memories.management.commands import bench_scale
from memoryhub.database.startup import psycopg_settings
from tests.fakes.embedder import FakeEmbedder


def _databases() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database")
        return {name for (name,) in cursor.fetchall()}


def _migrated(command: str, **options: Any) -> None:
    """As `migrate` leaves the scratch database, by a copy of one: ten seconds less."""
    assert command == "migrate"
    template = django_settings.DATABASES["default"].get("TEST", {}).get("TEMPLATE")
    if template is None:  # a server of one's own
        call_command(command, **options)
        return
    scratch = sql.Identifier(connection.settings_dict["NAME"])
    connection.close()
    with psycopg.connect(**psycopg_settings() | {"dbname": "postgres"}, autocommit=True) as outside:
        outside.execute(sql.SQL("DROP DATABASE {}").format(scratch))
        outside.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(scratch, sql.Identifier(template)))


@pytest.mark.django_db(transaction=True)
def test_every_figure_is_printed_and_the_databases_go(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(bench_scale, "get_embedder", FakeEmbedder)
    monkeypatch.setattr(bench_scale, "call_command", _migrated)
    settings.QUOTAS = settings.QUOTAS | {"memories": 100}  # fewer than are filled in
    before, name, said = _databases(), connection.settings_dict["NAME"], StringIO()
    sizes = {"memories": 400, "workspaces": 4, "questions": 3, "inserts": 20}
    call_command("bench_scale", **sizes, stdout=said, stderr=StringIO())
    figures = said.getvalue()
    assert re.search(r"^ +100( +\d+\.\d / \d+\.\d){3}( +\d+\.\d\d){2} +[01]\.\d{3}$", figures, re.M), figures
    assert re.search(r"among 200 memories, .* among 400, asked in turn: \d+\.\d\d times$", figures, re.M), (
        figures
    )
    assert len(re.findall(r"^import with .*: [\d,]+/s$", figures, re.M)) == 2
    assert (_databases(), connection.settings_dict["NAME"]) == (before, name)


@pytest.mark.django_db(transaction=True)
def test_a_failure_leaves_no_database_either(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> None:
        assert connection.settings_dict["NAME"] in _databases() - before
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(bench_scale, "get_embedder", FakeEmbedder)
    monkeypatch.setattr(bench_scale, "call_command", fail)  # once the scratch database is there
    before, name = _databases(), connection.settings_dict["NAME"]
    with pytest.raises(RuntimeError, match="disk is full"):
        call_command("bench_scale", memories=400, workspaces=4, questions=1, stderr=StringIO())
    assert (_databases(), connection.settings_dict["NAME"]) == (before, name)
