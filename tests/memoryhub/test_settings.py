"""Settings: typed and bounded reading of the environment, and sentences about wrong values."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

import manage
import memoryhub
from memoryhub.environment import Environment, database_from_url

ROOT = Path(__file__).resolve().parents[2]


def start_with(
    tmp_path: Path, *options: str, command: str = "check", **wrong: str
) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("MEMORYHUB_")}
    return subprocess.run(
        [sys.executable, "manage.py", command, *options],
        cwd=ROOT,
        env=env | {"MEMORYHUB_DATA_DIR": str(tmp_path)} | wrong,
        capture_output=True,
        text=True,
    )


def test_a_wrong_setting_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    done = start_with(tmp_path, MEMORYHUB_PORT="eighty")
    assert done.returncode != 0
    assert "MEMORYHUB_PORT" in done.stderr and "whole number from 1 to 65535" in done.stderr
    assert "Traceback" not in done.stderr


WRONG = [
    ("MEMORYHUB_MEMORY_ENABLED", "maybe", "one of 1, true, yes, on"),
    ("MEMORYHUB_LLM_BASE_URL", "localhost:11434", "http://localhost:11434/v1"),
    ("MEMORYHUB_SECRET_KEY", "short", "shorter than 32"),
    ("MEMORYHUB_ENCRYPTION_KEYS", "x" * 32 + ",short", "shorter than 32"),
    ("MEMORYHUB_ALLOWED_HOSTS", ",", "a list such as one,two"),
    ("MEMORYHUB_ALLOWED_HOSTS", "https://hub.example.org", "without https://"),
    ("MEMORYHUB_METRICS_TOKEN", "short", "shorter than 16"),
    ("MEMORYHUB_LLM_PRICE", "cheap", "such as 0.15,0.60"),
    ("MEMORYHUB_CURRENCY", "dollars", "three letters"),
    ("MEMORYHUB_LOG_FORMAT", "xml", "plain or json"),
    ("MEMORYHUB_TRUSTED_PROXIES", "all", "whole number from 0 to 10"),
    ("MEMORYHUB_SESSION_DAYS", "0", "whole number from 1 to 365"),
    ("MEMORYHUB_PROT", "8001", "Is MEMORYHUB_PORT meant?"),
    ("MEMORYHUB_LLM_API_KEY", "sesame", "needs MEMORYHUB_LLM_BASE_URL"),
    ("MEMORYHUB_REPLICA_URLS", "postgres://b/hub", "needs DATABASE_URL"),
    ("DATABASE_URL", "postgres://a:x,b/hub", "postgres://user:password@host:5432/name"),
    ("DATABASE_URL", "mysql://somewhere/x", "postgres://user:password@host:5432/name"),
]


def test_a_wrong_setting_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import the settings again, in this process: another process for each would take half a second."""
    monkeypatch.setattr(memoryhub, "settings", memoryhub.settings)
    for name in [each for each in os.environ if each.startswith("MEMORYHUB_") or each == "DATABASE_URL"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MEMORYHUB_DATA_DIR", str(tmp_path))
    for name, value, allowed in WRONG:
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            for module in [each for each in sys.modules if each.startswith("memoryhub.settings")]:
                patch.delitem(sys.modules, module)
            with pytest.raises(ImproperlyConfigured) as refused:
                importlib.import_module("memoryhub.settings")
        assert name in str(refused.value) and allowed in str(refused.value), (name, value)


def test_typed_reading_refuses_and_names() -> None:
    for value, read in (
        ("0", lambda env: env.integer("N", 1, low=1, high=2)),
        ("1.5", lambda env: env.integer("N", 1, low=1, high=2)),
        ("nan", lambda env: env.number("N", 1, low=0, high=2)),
        ("inf", lambda env: env.number("N", 1, low=0, high=2)),
        ("2", lambda env: env.boolean("N", None)),
        ("ftp://x", lambda env: env.url("N")),
    ):
        with pytest.raises(ImproperlyConfigured, match="P_N"):
            read(Environment("P_", {"P_N": value}))


def test_unset_and_blank_give_the_default() -> None:
    env = Environment("P_", {"P_A": " "})
    assert (env.text("A", "x"), env.integer("B", 3, low=1, high=9), env.boolean("A", None)) == ("x", 3, None)
    assert env.words("C", "a, b,,") == ["a", "b"]


def test_a_secret_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(" of the container\n")
    (tmp_path / "picture").write_bytes(b"\xff\xfe\xff")
    assert Environment("P_", {"P_A_FILE": str(tmp_path / "key")}).text("A") == "of the container"
    for wrong, why in (
        ({"P_A_FILE": str(tmp_path / "gone")}, "P_A_FILE.*No such file"),
        ({"P_A_FILE": str(tmp_path / "picture")}, "it is no text"),
        ({"P_A_FILE": str(tmp_path / "key"), "P_A": "x"}, "P_A and P_A_FILE are both set"),
    ):
        with pytest.raises(ImproperlyConfigured, match=why):
            Environment("P_", wrong).text("A")


def test_a_database_url_keeps_every_part() -> None:
    read = database_from_url("postgres://me:p%40ss@db.example:6543/hub?sslmode=require")
    assert read == {
        "NAME": "hub",
        "USER": "me",
        "PASSWORD": "p@ss",
        "HOST": "db.example",
        "PORT": "6543",
        "OPTIONS": {"sslmode": "require"},
    }
    assert database_from_url("postgres://me@/hub?host=/run/pg")["HOST"] == "/run/pg"
    several = database_from_url("postgres://me:p@a.example:6543,b.example/hub?connect_timeout=9")
    assert (several["HOST"], several["PORT"]) == ("a.example,b.example", "6543,")
    wanted = {"target_session_attrs": "read-write", "connect_timeout": "9", "tcp_user_timeout": "5000"}
    assert several["OPTIONS"].items() >= wanted.items()
    for wrong in ("postgres://host", "sqlite:///x", "postgres://h:port/x", ""):
        with pytest.raises(ImproperlyConfigured):
            database_from_url(wrong)


def test_every_setting_is_on_the_options_page() -> None:
    source = "".join(part.read_text() for part in (ROOT / "memoryhub/settings").glob("*.py"))
    read = set(re.findall(r'\benv\.\w+\(\s*"([A-Z_]+)"', source))
    page = (ROOT / "docs/options.md").read_text()
    listed = set(re.findall(r"^\| `MEMORYHUB_([A-Z_]+)` \|", page, re.MULTILINE))
    assert len(read) > 25
    assert listed - {"ADMIN_USERNAME", "ADMIN_PASSWORD", "ADMIN_EMAIL"} == read
    assert "| `DATABASE_URL` |" in page


def test_a_command_without_its_database_says_so_in_a_sentence(tmp_path: Path) -> None:
    done = start_with(tmp_path, command="migrate")
    assert done.returncode != 0
    assert "The database cannot be reached. Is MemoryHub running" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_that_is_stopped_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(arguments: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("django.core.management.execute_from_command_line", stopped)
    with pytest.raises(SystemExit) as ended:
        manage.main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "Stopped.\n")
