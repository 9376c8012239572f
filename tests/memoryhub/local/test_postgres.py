"""The embedded database in all states that may occur on a user's machine."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from memoryhub.local import postgres as postgres_module
from memoryhub.local.data_folder import DataFolderError
from memoryhub.local.postgres import EmbeddedPostgres, PostgresError, connection_settings, socket_folder
from tests.memoryhub.local.processes import is_running, named_in_command, wait_until

START_AND_WAIT = """
import sys, time
from pathlib import Path
from memoryhub.local.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]), durable=False)
server.initialise()
server.start()
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty cluster, which most tests copy."""
    folder = tmp_path_factory.mktemp("made")
    EmbeddedPostgres(folder, durable=False).initialise()
    return folder / "postgres"


@pytest.fixture
def copied(made: Path, data_dir: Path) -> None:
    """A copy of the cluster in the data folder of the test."""
    data_dir.mkdir()
    subprocess.run(["cp", "-a", str(made), str(data_dir / "postgres")], check=True)


@pytest.fixture(scope="module")
def running(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """A running server for tests that only query it."""
    found = EmbeddedPostgres(tmp_path_factory.mktemp("running"), durable=False)
    subprocess.run(["cp", "-a", str(made), str(found.cluster)], check=True)
    found.initialise()
    found.start()
    yield found
    found.stop()


@pytest.fixture
def server(copied: None, data_dir: Path) -> Iterator[EmbeddedPostgres]:
    found = EmbeddedPostgres(data_dir, durable=False)
    found.initialise()
    yield found
    found.stop()


def ask(data_dir: Path, query: str) -> object:
    with psycopg.connect(**connection_settings(data_dir), autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    return row[0] if row else None


def process_of(server: EmbeddedPostgres) -> psutil.Process:
    pid = int((server.cluster / "postmaster.pid").read_text().splitlines()[0])
    return psutil.Process(pid)


@pytest.fixture
def killed_parent(copied: None, data_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that started a server on `data_dir`."""
    parent = subprocess.Popen(
        [sys.executable, "-c", START_AND_WAIT, str(data_dir)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "up\n"
    yield parent
    parent.kill()
    parent.wait()


def test_it_is_postgres_18_with_vectors_and_words_of_every_script(running: EmbeddedPostgres) -> None:
    assert str(ask(running.data_dir, "SHOW server_version")).startswith("18.")
    with psycopg.connect(**connection_settings(running.data_dir)) as connection:
        connection.execute("CREATE EXTENSION vector")
        assert connection.execute("SELECT '[1,0]'::vector <=> '[0,1]'").fetchone() == (1.0,)
        assert connection.execute("SELECT lower('ÄÖЖ'), 'Ä' ILIKE 'ä'").fetchone() == ("äöж", True)


def test_it_listens_on_a_private_socket_only(running: EmbeddedPostgres) -> None:
    assert ask(running.data_dir, "SHOW listen_addresses") == ""
    assert stat.S_IMODE(socket_folder(running.data_dir).stat().st_mode) == 0o700
    assert not [c for c in process_of(running).net_connections(kind="inet") if c.status == "LISTEN"]


def test_its_log_says_what_failed_and_not_what_was_stored(running: EmbeddedPostgres) -> None:
    with psycopg.connect(**connection_settings(running.data_dir), autocommit=True) as connection:
        connection.execute("CREATE TABLE said (words text UNIQUE)")
        for _ in range(2):
            try:
                connection.execute("INSERT INTO said VALUES ('kumquat')")
            except psycopg.errors.UniqueViolation as error:
                assert "kumquat" in str(error)
    log = running.log_file.read_text()
    assert "duplicate key value" in log
    assert "kumquat" not in log


def test_initialising_again_keeps_the_data(server: EmbeddedPostgres) -> None:
    server.start()
    with psycopg.connect(**connection_settings(server.data_dir)) as connection:
        connection.execute("CREATE TABLE kept (one int)")
    server.stop()
    server.initialise()
    server.start()
    assert ask(server.data_dir, "SELECT count(*) FROM kept") == 0


def test_a_crash_while_initialising_leaves_nothing_half_made(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = EmbeddedPostgres(data_dir, durable=False)

    def crash(*args: object, **options: object) -> None:
        """Interrupt initdb halfway."""
        (data_dir / "postgres.unfinished" / "PG_VERSION").write_text("18\n")
        raise KeyboardInterrupt

    monkeypatch.setattr(postgres_module.subprocess, "run", crash)
    with pytest.raises(KeyboardInterrupt):
        server.initialise()
    assert not server.cluster.exists()
    monkeypatch.undo()
    server.initialise()
    assert (server.cluster / "PG_VERSION").exists()


def test_a_stale_pid_file_does_not_stop_the_start(server: EmbeddedPostgres) -> None:
    server.start()
    process = process_of(server)
    process.kill()
    wait_until(lambda: not is_running(process), "the server is gone")
    assert (server.cluster / "postmaster.pid").exists()
    again = EmbeddedPostgres(server.data_dir, durable=False)
    again.start()
    assert ask(server.data_dir, "SELECT 1") == 1
    again.stop()


def test_a_pid_file_that_names_a_stranger_does_not_stop_the_start(server: EmbeddedPostgres) -> None:
    """After a reboot its process id belongs to another process, even one of the same user."""
    account = server.account.pw_uid if server.account else None
    stranger = subprocess.Popen(["sleep", "600"], user=account)
    lines = [str(stranger.pid), str(server.cluster), "0", "5432", "", "", "", "ready"]
    (server.cluster / "postmaster.pid").write_text("\n".join(lines))
    server.start()
    assert ask(server.data_dir, "SELECT 1") == 1
    stranger.kill()
    stranger.wait()


def test_a_killed_parent_takes_the_server_with_it(
    killed_parent: subprocess.Popen[str], data_dir: Path
) -> None:
    processes = named_in_command(data_dir / "postgres")
    assert processes
    killed_parent.kill()
    wait_until(lambda: not any(map(is_running, processes)), "the server ended with its parent")


def test_a_server_left_alive_is_replaced(killed_parent: subprocess.Popen[str], data_dir: Path) -> None:
    """If death signals are unsupported, the parent ends and the server lives on."""
    left_alive = process_of(EmbeddedPostgres(data_dir))
    server = EmbeddedPostgres(data_dir, durable=False)
    server.start()
    assert not is_running(left_alive)
    assert ask(data_dir, "SELECT 1") == 1
    server.stop()


def test_orphans_in_a_long_query_do_not_stop_the_next_start(server: EmbeddedPostgres) -> None:
    server.start()
    connection = psycopg.connect(**connection_settings(server.data_dir), autocommit=True)
    busy = psutil.Process(connection.info.backend_pid)
    connection.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 20000000000)")
    process_of(server).kill()
    again = EmbeddedPostgres(server.data_dir, durable=False)
    again.start()
    connection.close()
    assert not is_running(busy)
    again.stop()


def test_a_folder_that_is_no_cluster_is_refused_in_words(data_dir: Path) -> None:
    (data_dir / "postgres").mkdir(parents=True)
    with pytest.raises(PostgresError, match="is no PostgreSQL cluster"):
        EmbeddedPostgres(data_dir).initialise()


def test_a_folder_with_a_long_path_gets_its_socket_elsewhere(copied: None, data_dir: Path) -> None:
    deep = data_dir / ("a long name " * 10) / "data"
    deep.mkdir(parents=True)
    (data_dir / "postgres").rename(deep / "postgres")
    server = EmbeddedPostgres(deep, durable=False)
    server.initialise()
    server.start()
    assert ask(deep, "SELECT 1") == 1
    assert connection_settings(deep)["host"] == connection_settings(deep)["host"]
    assert stat.S_IMODE(socket_folder(deep).stat().st_mode) == 0o700
    server.stop()
    assert not socket_folder(deep).exists(), "nothing is left in the temporary folder"


def test_a_socket_folder_of_somebody_else_is_refused(data_dir: Path) -> None:
    deep = data_dir / ("b" * 120)
    place = socket_folder(deep)
    place.symlink_to("/tmp")
    try:
        with pytest.raises(PostgresError, match="is not a folder of this user"):
            EmbeddedPostgres(deep).initialise()
    finally:
        place.unlink()


def test_a_place_that_cannot_be_written_is_refused_with_the_settings_name(data_dir: Path) -> None:
    data_dir.parent.joinpath("file").write_text("in the way")
    with pytest.raises(DataFolderError, match="MEMORYHUB_DATA_DIR"):
        EmbeddedPostgres(data_dir.parent / "file" / "data").initialise()


def test_the_server_gets_none_of_our_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYHUB_LLM_API_KEY", "sesame")
    monkeypatch.setenv("PGDATA", "/elsewhere")
    assert not {"MEMORYHUB_LLM_API_KEY", "PGDATA"} & EmbeddedPostgres.environment().keys()


@pytest.mark.skipif(os.getuid() != 0, reason="only root changes to another account")
class TestAsRoot:
    def test_it_runs_as_an_ordinary_user(self, running: EmbeddedPostgres) -> None:
        assert process_of(running).uids().effective != 0
        assert running.cluster.stat().st_uid == process_of(running).uids().real

    def test_a_folder_that_only_root_may_enter_works_and_stays_closed(self, data_dir: Path) -> None:
        closed = data_dir.parent
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700
        server = EmbeddedPostgres(data_dir, durable=False)
        server.initialise()
        server.start()
        assert ask(data_dir, "SELECT 1") == 1
        server.stop()
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700

    def test_the_owner_of_the_data_runs_it(self, server: EmbeddedPostgres) -> None:
        for path in [server.cluster, *server.cluster.rglob("*")]:
            os.chown(path, 65534, -1)
        again = EmbeddedPostgres(server.data_dir, durable=False)
        again.initialise()
        again.start()
        assert process_of(again).uids().effective == 65534
        again.stop()


def test_stopping_ends_the_server(server: EmbeddedPostgres) -> None:
    server.start()
    process = process_of(server)
    server.stop()
    assert not is_running(process)


def test_a_cluster_of_another_version_is_refused_in_words(data_dir: Path) -> None:
    for version, why in (
        ("19", r"made by PostgreSQL 19.*brings PostgreSQL 18.*Start the newer MemoryHub"),
        ("16", r"made by PostgreSQL 16.*brings PostgreSQL 18.*version of MemoryHub that wrote it.*restore"),
        ("9.6", r"made by PostgreSQL 9\.6.*backup"),
    ):
        server = EmbeddedPostgres(data_dir)
        server.cluster.mkdir(parents=True, exist_ok=True)
        (server.cluster / "PG_VERSION").write_text(f"{version}\n")
        with pytest.raises(PostgresError, match=why):
            server.initialise()
        assert [path.name for path in server.cluster.iterdir()] == ["PG_VERSION"], version
