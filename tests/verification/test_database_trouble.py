"""Database trouble with real processes and a real pool: lost connections cost no request; a read-only database is
reported.
"""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2 as http
import psycopg
import pytest

from memoryhub.local.postgres import connection_settings
from tests.memoryhub.local.processes import wait_until
from tests.stack import Stack, Web, signed_up
from tests.verification.conftest import Hub

OPEN = "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'memoryhub web'"
GONE = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid = ANY (%s)"
READS = ("/profile/", "/chat/api/chats", "/chat/api/workspaces", "/workspaces/")


@pytest.fixture(scope="module")
def stack(installation: Hub) -> Stack:
    return installation.stack


@pytest.fixture(scope="module")
def web(installation: Hub) -> Web:
    return installation.web()


@pytest.fixture(scope="module")
def person(web: Web) -> http.Client:
    return signed_up(web, "olive")


def database(stack: Stack) -> psycopg.Connection[Any]:
    settings: Any = connection_settings(stack.folder)
    return psycopg.connect(**settings, autocommit=True, options="-c default_transaction_read_only=off")


def cut_all(stack: Stack) -> int:
    """Cut every connection of the web server. Return their number."""
    with database(stack) as own:
        cut = [pid for pid, _ in own.execute(OPEN)]
        # Wait until they are gone: the signal does not say when the server closes them.
        own.execute(GONE, [cut])
    return len(cut)


def all_at_once(person: http.Client, paths: list[str]) -> list[int]:
    with ThreadPoolExecutor(len(paths)) as threads:
        return [answer.status_code for answer in threads.map(person.get, paths)]


def test_after_every_connection_was_cut_nobody_notices(stack: Stack, person: http.Client) -> None:
    paths = list(READS) * 5  # the pool is full
    assert set(all_at_once(person, paths)) == {200}
    for _ in range(2):
        assert cut_all(stack) >= 2
        assert person.get("/chat/api/chats").status_code == 200
        assert cut_all(stack) >= 1
        assert set(all_at_once(person, paths)) == {200}
        cut_all(stack)
        assert person.post("/chat/api/workspaces", json={"name": "Launch"}).status_code == 201


def test_a_cut_in_the_middle_of_reads_is_503_at_worst_and_over_at_once(
    stack: Stack, person: http.Client
) -> None:
    """Each is repeated once; one that is cut again during the cutting answers 503."""
    seen: set[int] = set()
    for _ in range(3):
        with ThreadPoolExecutor(2) as threads:
            asked = threads.submit(all_at_once, person, list(READS) * 6)
            time.sleep(0.05)
            cut_all(stack)
            seen |= set(asked.result())
        assert person.get("/profile/").status_code == 200
    assert seen <= {200, 503}


def test_a_cut_in_the_middle_of_writes_is_503_and_over_at_once(stack: Stack, person: http.Client) -> None:
    def write(number: int) -> int:
        return person.post("/chat/api/workspaces", json={"name": f"Launch {number}"}).status_code

    with ThreadPoolExecutor(8) as threads:
        asked = threads.map(write, range(60))
        for _ in range(3):
            time.sleep(0.2)
            cut_all(stack)
        assert set(asked) <= {201, 503}
    assert write(81) == 201


def test_the_events_of_a_workspace_come_back(stack: Stack, person: http.Client) -> None:
    workspace = person.get("/chat/api/workspaces").json()["items"][0]["id"]
    with person.stream("GET", f"/workspaces/{workspace}/events/") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 3000"
        wait_until(lambda: listens(stack), "the web server hears notifications")
        cut_all(stack)
        assert next(line for line in soon(lines) if line.startswith("event:")) == "event: resync"
        body = {"content": "The launch is in May"}
        assert person.post(f"/chat/api/workspaces/{workspace}/memories", json=body).status_code == 201
        assert next(line for line in soon(lines) if line.startswith("event: memor"))


def listens(stack: Stack) -> bool:
    with database(stack) as own:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'memoryhub web' AND query ~ '^LISTEN'"
        return own.execute(asked).fetchone() == (1,)


def soon(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of the next minute; a stream's keep-alives would go on for ever."""
    end = time.monotonic() + 60
    for line in lines:
        assert time.monotonic() < end, "waited in vain for an event"
        yield line


@pytest.fixture
def read_only(stack: Stack) -> Iterator[None]:
    with database(stack) as own:
        own.execute("ALTER DATABASE memoryhub SET default_transaction_read_only = on")
        cut_all(stack)
        yield
        own.execute("ALTER DATABASE memoryhub RESET default_transaction_read_only")
        cut_all(stack)


def test_recall_and_save_are_refused_with_a_time_to_come_back(
    web: Web, person: http.Client, request: pytest.FixtureRequest
) -> None:
    workspace = person.get("/chat/api/workspaces").json()["items"][0]["id"]
    place = f"/chat/api/workspaces/{workspace}"
    assert person.post(f"{place}/memories", json={"content": "Cats purr"}).status_code in {200, 201}
    request.getfixturevalue("read_only")
    for path, body in (("recall", {"query": "cats"}), ("memories", {"content": "Dogs bark"})):
        answer = person.post(f"{place}/{path}", json=body)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "30"), answer.text
        assert "database is read-only" in json.loads(answer.text)["error"]["message"]
    wait_until(lambda: http.get(f"{web.url}/readyz").status_code == 503, "it is not ready", pause=0.3)
    assert [person.get(path).status_code for path in READS] == [200] * len(READS)


def test_and_afterwards_all_is_well(web: Web, person: http.Client) -> None:
    assert person.post("/chat/api/workspaces", json={"name": "After"}).status_code == 201
    # An answer is cached for five seconds.
    wait_until(lambda: http.get(f"{web.url}/readyz").status_code == 200, "it is ready", pause=0.3)
