"""A cluster of PostgreSQL 16, which the wheel brings beside 18, goes on with 18: whole, or as it was."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import psycopg
import pytest
from psycopg import sql

from memoryhub.local import major_upgrade
from memoryhub.local.postgres import USER, EmbeddedPostgres, connection_settings
from memoryhub.local.postgres_programs import PostgresError, is_brought
from memoryhub.local.row_counts import rows_of
from tests.memoryhub.local.processes import named_in_command, wait_until
from tests.memoryhub.local.test_up import OLDER
from tests.migrated import environment, lend_to
from tests.typed import typed

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(not is_brought(OLDER), reason="the wheel brings one version")
# In parts, which sets how the database plans.
FILLED = """
from django.core.management import call_command
call_command("seed_demo")
call_command("partition", parts=2)
"""
RECALLED = """
from datetime import UTC, datetime
from memories.recalling.recall import recall
from workspaces.leaving_machine import Reach
from workspaces.models import User, Workspace
workspace, demo = Workspace.objects.get(name="Apollo relaunch"), User.objects.get(username="demo")
now, reach = datetime(2027, 1, 1, tzinfo=UTC), Reach.here(workspace)
found = recall("Who comes to the cinema?", workspace, demo, now=now, reach=reach, noted=False)
print(found.degraded, [(each.memory.content, round(each.score, 6)) for each in found.items])
"""
# As if it were killed when it says something, or as it renames a folder for so many times.
KILLED = """
import os, signal, sys
from pathlib import Path
from memoryhub.local import major_upgrade
folder, moment = Path(sys.argv[1]), sys.argv[2]
major_upgrade.EVERY = 0.01
renames, rename = [], Path.rename
def reached(what):
    if what in moment:
        os.kill(os.getpid(), signal.SIGKILL)
def renaming(path, to):
    renames.append(to)
    reached(f"rename {len(renames)}")
    return rename(path, to)
Path.rename = renaming
major_upgrade.upgrade(folder, lambda text: reached(text.split()[-1]))
"""


IN_PUBLIC = "= 'public'::regnamespace"
BESIDE: dict[str, LiteralString] = {
    "settings": "SELECT setconfig FROM pg_db_role_setting ORDER BY 1",
    "roles": "SELECT rolname, rolsuper, rolbypassrls FROM pg_roles WHERE rolname NOT LIKE 'pg_%' ORDER BY 1",
    "policies": "SELECT tablename, policyname, roles, qual FROM pg_policies ORDER BY 1, 2",
    "rights": "SELECT relname, privilege_type FROM pg_class, aclexplode(relacl) "
    "WHERE grantee = 'memoryhub_rows'::regrole ORDER BY 1, 2",
    "functions": f"SELECT proname, proacl::text, prosrc FROM pg_proc WHERE pronamespace {IN_PUBLIC} ORDER BY 1, 3",
    "indexes": "SELECT indexname, tablename FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
    "triggers": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1",
}


class Of16(NamedTuple):
    data_dir: Path
    digests: dict[str, Any]
    recalled: str


def older(data_dir: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(data_dir, major=OLDER, durable=False)


def managed(data_dir: Path, code: str, **env: str) -> str:
    """What a shell of Django's says, with the database that runs on this folder."""
    shell = [sys.executable, "manage.py", "shell", "--no-imports", "-c", code]
    done = subprocess.run(shell, cwd=ROOT, env=environment(data_dir, **env), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def digests(data_dir: Path) -> dict[str, Any]:
    """Of all rows of each table, and what is set beside the tables."""
    found: dict[str, Any] = {}
    with psycopg.connect(**connection_settings(data_dir)) as connection:  # type: ignore[arg-type]
        for table in rows_of(connection):
            name = sql.Identifier(table)
            rows = sql.SQL("SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {} t").format(name)
            found[table] = connection.execute(rows).fetchone()
        for what, query in BESIDE.items():
            found[what] = connection.execute(query).fetchall()
    return found


@pytest.fixture(scope="module")
def made() -> Iterator[Of16]:
    folder = Path(tempfile.mkdtemp(prefix="mh-"))
    folder.chmod(0o755)
    server = older(folder / "data")
    server.data_dir.mkdir(mode=0o755)
    lend_to(server.data_dir, OLDER)
    server.initialise()
    server.start()
    try:
        recalled = managed(server.data_dir, FILLED + RECALLED)
        found = Of16(server.data_dir, digests(server.data_dir), recalled.splitlines()[-1])
    finally:
        server.durable = True  # stopped in order
        server.stop()
    yield found
    shutil.rmtree(folder)


@pytest.fixture
def of16(made: Of16, data_dir: Path) -> Of16:
    """A copy for one test."""
    subprocess.run(["cp", "-a", str(made.data_dir), str(data_dir)], check=True)
    return made._replace(data_dir=data_dir)


@contextmanager
def serving(server: EmbeddedPostgres) -> Iterator[None]:
    server.initialise()
    server.start()
    try:
        yield
    finally:
        server.stop()


def goes_on(of16: Of16, server: EmbeddedPostgres) -> None:
    """All is there for this server that was in the database of before."""
    with serving(server):
        assert digests(of16.data_dir) == of16.digests


def clusters(data_dir: Path) -> set[str]:
    return {path.name for path in data_dir.glob("postgres*")}


def test_all_goes_on_with_18_and_the_way_back_is_kept(of16: Of16) -> None:
    assert major_upgrade.is_due(of16.data_dir)
    owner = 65534 if os.getuid() == 0 else os.getuid()
    for path in [of16.data_dir / "postgres", *(of16.data_dir / "postgres").rglob("*")]:
        os.chown(path, owner, -1)
    said: list[str] = []
    major_upgrade.upgrade(of16.data_dir, said.append)
    assert "rows in " in said[2] and "postgres.before-18" in said[3], said
    assert not major_upgrade.is_due(of16.data_dir)
    assert clusters(of16.data_dir) == {"postgres", "postgres.before-18"}
    assert (of16.data_dir / "postgres").stat().st_uid == owner
    with serving(EmbeddedPostgres(of16.data_dir, durable=False)):
        assert digests(of16.data_dir) == of16.digests
        said_now = managed(of16.data_dir, RECALLED).splitlines()
        assert said_now[0] == of16.recalled and "The Apollo cinema reopens" in of16.recalled
    shutil.rmtree(of16.data_dir / "postgres")
    (of16.data_dir / "postgres.before-18").rename(of16.data_dir / "postgres")
    goes_on(of16, older(of16.data_dir))


MOMENTS = [
    "there",  # a piece of it is, and both servers run; so it is until they have stopped
    "rename 3",  # all is, and on the disk: the old one moves away
    "rename 4",  # the new one comes in its place
]


def test_killed_at_any_moment_it_starts_and_has_everything(of16: Of16) -> None:
    """One attempt after the other, each with what the one before left: the next gets further, and the last to the end.

    Somebody went back before, and keeps a cluster under the name that this one would get.
    """
    before = of16.data_dir / "postgres"
    (of16.data_dir / major_upgrade.BEFORE).mkdir()
    for moment in MOMENTS:
        command = [sys.executable, "-c", KILLED, str(of16.data_dir), moment]
        assert subprocess.run(command, cwd=ROOT).returncode == -signal.SIGKILL
        wait_until(lambda: not named_in_command(of16.data_dir), "the servers ended with who started them")
        assert before.exists() == (moment != "rename 4")
        if before.exists():  # as the version before would find it
            goes_on(of16, older(of16.data_dir))
    goes_on(of16, EmbeddedPostgres(of16.data_dir, durable=False))
    assert clusters(of16.data_dir) == {"postgres", "postgres.before-18", "postgres.before-18-2"}


def test_what_keeps_it_from_being_copied_is_said_and_nothing_is_changed(
    of16: Of16, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = major_upgrade._command

    def refused(program: str, *arguments: Any) -> list[str]:
        return [*real(program, *arguments), *(["--table=none"] if program == "pg_dump" else [])]

    def counted(connection: psycopg.Connection[Any]) -> dict[str, int]:
        return {"memories_memory": connection.info.server_version}

    for name, what, why in (
        (
            "shutil.disk_usage",
            lambda path: shutil._ntuple_diskusage(10, 9, 1),
            r"needs 1\.\d GB, and 0\.0 GB",
        ),
        ("_command", refused, "could not be copied"),
        ("rows_of", counted, "not the same rows in memories_memory"),
    ):
        with monkeypatch.context() as patch, pytest.raises(PostgresError, match=why):
            patch.setattr(f"memoryhub.local.major_upgrade.{name}", what)
            major_upgrade.upgrade(of16.data_dir, str)
        assert clusters(of16.data_dir) == {"postgres"}
        assert not named_in_command(of16.data_dir)
    goes_on(of16, older(of16.data_dir))


def test_a_server_of_ones_own_of_that_version_is_backed_up_and_restored(of16: Of16, tmp_path: Path) -> None:
    server, file = older(of16.data_dir), str(tmp_path / "one.zip")
    url = f"postgres://{USER}@/{USER}?host={server.socket_folder}"
    commands = [["backup", file], ["restore", "--drill", file], ["restore", "--replace", file]]
    with serving(server):
        answers = typed(commands, environment(of16.data_dir, DATABASE_URL=url))
        assert [status for status, _ in answers] == [0] * 3, answers
        after = digests(of16.data_dir)
    assert after.keys() == of16.digests.keys()
    assert {
        name for name in after if after[name] != of16.digests[name]
    } <= BESIDE.keys()  # made at the next start


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("19", r"made by PostgreSQL 19.*brings PostgreSQL 18.*Start the newer MemoryHub"),
        (OLDER, r"made by PostgreSQL 16.*brings PostgreSQL 18.*make run"),
        ("14", r"made by PostgreSQL 14.*brings PostgreSQL 18.*DATABASE_URL"),
        ("9.6", r"made by PostgreSQL 9\.6.*DATABASE_URL"),
        ("", r"made by PostgreSQL .*DATABASE_URL"),
    ],
)
def test_a_cluster_of_another_version_is_refused_in_words(data_dir: Path, version: str, why: str) -> None:
    server = EmbeddedPostgres(data_dir)
    server.cluster.mkdir(parents=True)
    (server.cluster / "PG_VERSION").write_text(f"{version}\n")
    with pytest.raises(PostgresError, match=why):
        server.initialise()
    assert major_upgrade.is_due(data_dir) == (version == OLDER)
