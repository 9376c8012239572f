"""What is done before the web server starts, and what is said when it cannot be done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from memoryhub.management.commands.prepare import Command, check_database, static_files_state
from memoryhub.management.database import psycopg_settings


@pytest.mark.django_db
def test_a_database_that_can_be_used_is_fine(capsys: pytest.CaptureFixture[str]) -> None:
    check_database()  # does not raise
    assert capsys.readouterr() == ("", "")


def test_a_database_that_is_away_is_said_with_the_settings_name(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EMBEDDED_DATABASE = False
    away = {"NAME": "hub", "HOST": "127.0.0.1", "PORT": "1"}
    monkeypatch.setitem(settings.DATABASES, "default", away)
    with pytest.raises(CommandError, match="Cannot reach the database that DATABASE_URL names"):
        check_database()


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
