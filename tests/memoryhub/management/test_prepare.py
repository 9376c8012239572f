"""Preparation before the web server starts, and its errors."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.core.management import CommandError
from django.db import connection, models
from django.db.migrations import (
    AddField,
    AddIndex,
    CreateModel,
    Migration,
    RemoveField,
    RunSQL,
    SeparateDatabaseAndState,
)
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import NOT_PROVIDED

from memoryhub.database.startup import psycopg_settings, refuse_to_serve_other_version
from memoryhub.local.worker_health import oldest_waiting_seconds
from memoryhub.management.commands.migrate import OneTransactionExecutor
from memoryhub.management.commands.prepare import Command, check_database, static_files_state

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.django_db
def test_a_database_that_can_be_used_is_fine(capsys: pytest.CaptureFixture[str]) -> None:
    check_database()  # does not raise
    assert capsys.readouterr() == ("", "")


@pytest.mark.django_db
def test_several_servers_which_have_their_own_time_to_connect_are_fine(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.DATABASES["default"]["OPTIONS"], "connect_timeout", "3")
    check_database()
    assert oldest_waiting_seconds(psycopg_settings()) == 0, "the worker's supervisor asks them, too"


def test_a_database_that_is_away_is_said_with_the_settings_name(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EMBEDDED_DATABASE = False
    away = {"NAME": "hub", "HOST": "127.0.0.1", "PORT": "1"}
    monkeypatch.setitem(settings.DATABASES, "default", away)
    with pytest.raises(CommandError, match="Cannot reach the database that DATABASE_URL names"):
        check_database()


@pytest.mark.django_db(transaction=True)
def test_a_database_that_keeps_bytes_and_no_letters_is_refused(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian creates such databases without a locale. All text read from one is bytes."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE of_bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")
    try:
        monkeypatch.setitem(settings.DATABASES["default"], "NAME", "of_bytes")
        with pytest.raises(CommandError, match="is SQL_ASCII, and MemoryHub needs UTF8"):
            check_database()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP DATABASE of_bytes")


def test_psycopg_gets_all_but_djangos_pool(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"pool": {"min_size": 1}, "sslmode": "require"}
    monkeypatch.setitem(settings.DATABASES, "default", {"NAME": "hub", "USER": "", "OPTIONS": options})
    assert psycopg_settings() == {"dbname": "hub", "sslmode": "require"}


def test_static_files_are_collected_again_only_after_a_change(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "page.css").write_text("a {}")
    settings.STATICFILES_DIRS, settings.STATIC_ROOT = [source], tmp_path / "collected"
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    calls: list[str] = []
    monkeypatch.setattr(
        "memoryhub.management.commands.prepare.call_command", lambda name, **_: calls.append(name)
    )
    Command()._collect_static_files()
    Command()._collect_static_files()
    assert calls == ["collectstatic"]
    before = static_files_state()
    (source / "page.css").write_text("a { color: red }")
    assert static_files_state() != before
    Command()._collect_static_files()
    assert calls == ["collectstatic"] * 2


@pytest.fixture
def applied() -> Iterator[Callable[[str, str], None]]:
    """Record a migration as applied; undone afterwards."""
    made: list[int] = []

    def apply(app: str, name: str) -> None:
        made.append(MigrationRecorder.Migration.objects.create(app=app, name=name).pk)

    yield apply
    MigrationRecorder.Migration.objects.filter(pk__in=made).delete()


@pytest.mark.django_db(transaction=True)
def test_a_database_of_a_newer_version_is_refused_with_a_sentence(
    applied: Callable[[str, str], None],
) -> None:
    applied("memories", "9999_of_next_year")
    sentence = "newer MemoryHub than this one: it has memories 9999_of_next_year"
    with pytest.raises(CommandError, match=sentence):
        check_database()
    with pytest.raises(SystemExit, match=sentence):
        refuse_to_serve_other_version()


@pytest.mark.django_db(transaction=True)
def test_a_database_of_before_the_initial_migrations_is_told_to_export_and_import(
    applied: Callable[[str, str], None],
) -> None:
    """The command before the web server, the web server, and Django's own command all refuse."""
    applied("workspaces", "0002_api_keys")
    before = set(MigrationRecorder.Migration.objects.values_list("app", "name"))
    sentence = r"export what it holds with the version you have .* import that into this version"
    with pytest.raises(CommandError, match=sentence):
        check_database()
    with pytest.raises(SystemExit, match=sentence):
        refuse_to_serve_other_version()
    assert set(MigrationRecorder.Migration.objects.values_list("app", "name")) == before


@pytest.mark.django_db(transaction=True)
def test_what_is_only_gone_from_the_code_is_no_newer_version(applied: Callable[[str, str], None]) -> None:
    for app, name in (
        ("memories", "0100_a_name_taken_out_of_the_code"),
        ("an_app_of_before", "9999_last"),
        ("django_q", "9999_squashed_since"),
    ):
        applied(app, name)
        check_database()
        refuse_to_serve_other_version()


def test_the_web_server_starts_before_its_database(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.DATABASES, "default", {"NAME": "hub", "HOST": "127.0.0.1", "PORT": "1"})
    refuse_to_serve_other_version()  # does not raise


@pytest.mark.django_db(transaction=True)
def test_the_processes_of_another_version_end_at_once(applied: Callable[[str, str], None]) -> None:
    """The server, the worker, and the migration run as separate processes on this database."""
    applied("chat", "9999_of_next_year")
    place = psycopg_settings()
    url = f"postgres://{place['user']}@/{place['dbname']}?host={place['host']}&port={place['port']}"
    run = partial(subprocess.run, env={**os.environ, "DATABASE_URL": url}, capture_output=True, text=True)
    commands = ("qcluster", "migrate")
    for command in (["-c", "import memoryhub.asgi"], *(["manage.py", each] for each in commands)):
        done = run([sys.executable, *command], cwd=ROOT, timeout=60)
        assert done.returncode != 0
        assert "newer MemoryHub than this one" in done.stderr and "Traceback" not in done.stderr


def unknown_to_older(migration: Migration) -> list[str]:
    """Return the operations that break older code: all but additions with a default."""

    def is_added(operation: Operation) -> bool:
        if isinstance(operation, AddField):
            return operation.field.null or operation.field.db_default is not NOT_PROVIDED
        if isinstance(operation, SeparateDatabaseAndState):
            return not operation.database_operations
        return isinstance(operation, (CreateModel, AddIndex, AddIndexConcurrently))

    return [str(each) for each in migration.operations if not is_added(each)]


def test_a_migration_that_older_code_may_run_with_only_adds() -> None:
    for migration in MigrationLoader(None).disk_migrations.values():
        assert not getattr(migration, "older_may_run", False) or not unknown_to_older(migration), migration


def test_what_only_adds() -> None:
    for operation, stumbles in (
        (AddField("memory", "of_next", models.TextField(null=True)), False),
        (AddField("memory", "of_next", models.TextField(db_default="")), False),
        (AddField("memory", "of_next", models.TextField(default="")), True),
        (RemoveField("memory", "content"), True),
        (RunSQL("DROP TABLE memories_memory"), True),
        (SeparateDatabaseAndState(state_operations=[RemoveField("memory", "content")]), False),
        (SeparateDatabaseAndState([RemoveField("memory", "content")]), True),
    ):
        migration = Migration("9999_next", "memories")
        migration.operations = [operation]
        assert bool(unknown_to_older(migration)) is stumbles, operation


@pytest.mark.django_db(transaction=True)
def test_a_migration_that_is_killed_before_its_record_leaves_no_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Killed(Exception):
        pass

    def killed(_: object) -> None:
        raise Killed

    migration = Migration("9999_killed", "workspaces")
    owner = models.ForeignKey(
        "workspaces.User", models.CASCADE
    )  # its constraint is created last, and so is the record
    migration.operations = [
        CreateModel("Killed", [("id", models.AutoField(primary_key=True)), ("owner", owner)])
    ]
    executor = OneTransactionExecutor(connection)
    monkeypatch.setattr(executor, "record_migration", killed)
    with pytest.raises(Killed):
        executor.apply_migration(executor.loader.project_state(), migration)
    assert "workspaces_killed" not in connection.introspection.table_names()
