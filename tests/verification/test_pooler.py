"""Operation behind a real PgBouncer in transaction mode, if installed (Debian's package `pgbouncer`)."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2 as http
import psycopg
import pytest

from memoryhub.local.postgres import EmbeddedPostgres, connection_settings
from memoryhub.local.run_with_parent import launch_command
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from tests.memoryhub.local.processes import wait_until
from tests.stack import free_port, running_stack, signed_up

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
SESSIONS = 3  # of the server, for the whole web process
AT_ONCE, REQUESTS = 12, 120
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is not installed here")
CONFIGURATION = """
[databases]
memoryhub = host={host} port={port} dbname=memoryhub user=memoryhub
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listens}
unix_socket_dir =
auth_type = any
admin_users = memoryhub
pool_mode = transaction
default_pool_size = {sessions}
"""


@pytest.fixture
def pooler(tmp_path: Path) -> Iterator[int]:
    """Run PgBouncer and yield its port. It starts before its database, to which it connects on demand."""
    port, place = free_port(), connection_settings(tmp_path)
    configuration = tmp_path / "pgbouncer.ini"
    configuration.write_text(
        CONFIGURATION.format(host=place["host"], port=place["port"], listens=port, sessions=SESSIONS)
    )
    tmp_path.chmod(0o755)
    account = EmbeddedPostgres(tmp_path).account
    assert PROGRAM is not None
    command = launch_command(
        [PROGRAM, str(configuration)],
        death_signal=signal.SIGKILL,
        run_as=account.pw_name if account else None,
        must_reach=[tmp_path],
    )
    with (tmp_path / "pgbouncer.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/")
    yield port
    process.kill()
    process.wait()


def _session(pooler: int, database: str = "memoryhub") -> psycopg.Connection[Any]:
    """Return a connection through the pooler, or to the pooler itself."""
    address: dict[str, Any] = {"host": "127.0.0.1", "port": pooler, "user": "memoryhub", "dbname": database}
    return psycopg.connect(**address, autocommit=True, prepare_threshold=None)


def test_streams_searches_and_saves_share_three_sessions(tmp_path: Path, pooler: int) -> None:
    place, server = connection_settings(tmp_path), ScriptedOpenAI().start()
    addresses = {
        "DATABASE_URL": f"postgres://memoryhub@/memoryhub?host={place['host']}&port={place['port']}",
        "MEMORYHUB_POOLER_URL": f"postgres://memoryhub@127.0.0.1:{pooler}/memoryhub",
        "MEMORYHUB_LLM_BASE_URL": server.base_url,
        "MEMORYHUB_LLM_API_KEY": server.api_key,
        "MEMORYHUB_LLM_MODEL": server.model,
    }
    try:
        with running_stack(tmp_path, **addresses) as stack:
            web, other = stack.web(), stack.web()
            stack.worker()
            person = signed_up(web, "petra")
            beside = http.Client(
                base_url=other.url, cookies=person.cookies, headers=person.headers, timeout=60
            )
            workspace = f"/chat/api/workspaces/{person.get('/chat/api/workspaces').json()['items'][0]['id']}"

            def ask(number: int) -> int:
                person = asking[number // 3 % 2]
                if number % 3 == 0:
                    saved = {"content": f"Locker {number} belongs to team {number * 7}."}
                    return person.post(f"{workspace}/memories", json=saved).status_code
                if number % 3 == 1:
                    return person.post(
                        f"{workspace}/recall", json={"query": "whose locker is it?"}
                    ).status_code
                return person.get(f"{workspace}/memories").status_code

            asking = (person, beside)
            with ThreadPoolExecutor(AT_ONCE) as pool:
                statuses = list(pool.map(ask, range(REQUESTS)))
            assert set(statuses) <= {200, 201}, statuses
            recalled = beside.post(f"{workspace}/recall", json={"query": "whose is locker 3?"}).json()
            assert "Locker 3 belongs to team 21." in {each["content"] for each in recalled["memories"]}
            with psycopg.connect(**place) as connection:  # type: ignore[arg-type]
                found = connection.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'memoryhub web'"
                ).fetchone()
            assert found is not None
            assert found[0] <= SESSIONS + 2, "those of the pooler, and the two that hear notifications"

            server.script(Answer("Locker three is team 21's."))
            chat = person.post("/chat/api/chats", json={}).json()["id"]
            sent = {"content": "Whose is locker 3?", "stream": True}
            with person.stream("POST", f"/chat/api/{chat}/messages", json=sent) as answer:
                assert "event: done" in answer.read().decode()
            wait_until(
                lambda: stack.jobs_in_queue() == 0, "the worker, which goes past the pooler, did its jobs"
            )
            assert all("prepared statement" not in log.read_text() for log in tmp_path.glob("*.log"))
    finally:
        server.stop()
