"""A real primary and a replica: users read their own writes despite replication lag; and the primary fails."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2 as http
import psycopg
import pytest

from tests.memoryhub.local.processes import wait_until
from tests.replicated import Pair, Traffic, replicated_stack
from tests.stack import Stack, Web, key_of, signed_up

TOKEN = "of the monitoring alone"
SETTINGS = {
    "MEMORYHUB_METRICS_TOKEN": TOKEN,
    "MEMORYHUB_EMBEDDING_MODEL": "none",
    "MEMORYHUB_REPLICA_LAG": "20",  # a writer reads from the primary for this long plus three seconds
}
ALL = {"limit": 100}


@dataclass
class Hub:
    stack: Stack
    pair: Pair
    webs: list[Web]

    def reads(self, by: str) -> int:
        """Return the number of lists, recalls and searches that it answered, of both web processes."""
        texts = [self.metrics(web) for web in self.webs]
        found = re.findall(rf'memoryhub_reads_total{{by="{by}"}} (\d+)', "".join(texts))
        return sum(int(number) for number in found)

    def metrics(self, web: Web) -> str:
        answer = http.get(f"{web.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        return answer.raise_for_status().text

    def elsewhere(self, person: http.Client) -> http.Client:
        """Return a client with the same session at the other web process."""
        return http.Client(
            base_url=self.webs[1].url, cookies=person.cookies, headers=person.headers, timeout=60
        )


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with replicated_stack(tmp_path_factory.mktemp("replicas"), **SETTINGS) as (stack, pair):
        yield Hub(stack, pair, [stack.web(), stack.web()])


@pytest.fixture
def hub(started: Hub) -> Hub:
    """The installation with a replica that has caught up."""
    started.pair.follow_again()
    return started


def place_of(person: http.Client) -> str:
    return f"/chat/api/workspaces/{person.get('/chat/api/workspaces').json()['items'][0]['id']}"


def contents(person: http.Client, place: str) -> set[str]:
    return {each["content"] for each in person.get(f"{place}/memories", params=ALL).json()["items"]}


def test_who_wrote_reads_it_and_others_read_from_the_replica(hub: Hub) -> None:
    """Replay is paused, so that the replica lacks what is written."""
    olga, paul = (signed_up(hub.webs[0], name) for name in ("olga", "paul"))
    here, there = place_of(olga), place_of(paul)
    for person, place in ((olga, here), (paul, there)):
        wait_until(lambda: reads_of_replica(hub, person, place), "it follows")  # noqa: B023  (waited for at once)
    hub.pair.replica.ask("SELECT pg_wal_replay_pause()")
    assert olga.post(f"{here}/memories", json={"content": "The vault opens at nine."}).status_code == 201
    before = hub.reads("replica"), hub.reads("primary")
    recall = {"query": "when does the vault open?"}
    for client in (olga, hub.elsewhere(olga)):
        assert contents(client, here) == {"The vault opens at nine."}
        assert len(client.post(f"{here}/recall", json=recall).json()["memories"]) == 1
        assert len(client.post(f"{here}/search", json=recall).json()["results"]) == 1
        assert "opens at nine" in client.get(f"/workspaces/{here.split('/')[-1]}/memories/").text
    assert hub.reads("replica") == before[0]
    assert hub.reads("primary") >= before[1] + 8
    assert contents(paul, there) == set()
    assert paul.post(f"{there}/recall", json=recall).json()["memories"] == []
    assert hub.reads("replica") == before[0] + 2, "for whom it is new enough"
    hub.pair.replica.ask("SELECT pg_wal_replay_resume()")
    wait_until(lambda: reads_of_replica(hub, olga, here), "it has caught up")
    hub.pair.replica.kill()
    assert contents(olga, here) == contents(hub.elsewhere(olga), here) == {"The vault opens at nine."}
    said = http.get(f"{hub.webs[0].url}/readyz")
    whys = [said.json()["parts"][f"replica {number}"]["why"] for number in (1, 2)]
    assert (said.status_code, whys) == (200, ["", "cannot be reached"]), "the primary is named among them"
    here_web = hub.webs[0]
    wait_until(
        lambda: 'memoryhub_replica_up{replica="2"} 0.0' in hub.metrics(here_web), "it is counted as away"
    )
    assert 'memoryhub_replica_up{replica="1"} 1.0' in hub.metrics(here_web)
    _, doctor = hub.stack.typed("doctor")
    assert "replica 1: well" in doctor
    assert "replica 2: cannot be reached. See its log" in doctor


def test_what_a_program_saves_and_forgets_its_person_reads(hub: Hub) -> None:
    """The program uses MCP, and replay is paused."""
    person = signed_up(hub.webs[0], "petra")
    place = place_of(person)
    headers = {
        "authorization": f"Bearer {key_of(person, place.split('/')[-1])}",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
    }

    def call(tool: str, **arguments: str) -> str:
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return http.post(f"{hub.webs[0].url}/mcp", json=body, headers=headers, timeout=60).text

    wait_until(lambda: reads_of_replica(hub, person, place), "it has caught up")
    hub.pair.replica.ask("SELECT pg_wal_replay_pause()")
    assert reads_of_replica(hub, person, place), "it has what they wrote so far"
    saved = re.search(r"mem_\w+", call("save_memory", content="The vault opens at nine."))
    assert saved and contents(hub.elsewhere(person), place) == {"The vault opens at nine."}
    assert "at nine" in call("recall_memory", query="when does the vault open?")
    call("forget_memory", memory_id=saved[0])
    assert contents(hub.elsewhere(person), place) == set()


def reads_of_replica(hub: Hub, person: http.Client, place: str) -> bool:
    before = hub.reads("replica")
    person.get(f"{place}/memories")
    return hub.reads("replica") > before


def read(person: http.Client, place: str, when: str) -> None:
    """Upload a document and wait until the worker has read it."""
    file = (f"{when}.txt", f"What goes out on Monday, {when}.".encode())
    brought = person.post(f"{place}/documents", files={"file": file}).json()
    wait_until(
        lambda: person.get(f"{place}/documents/{brought['id']}").json()["status"] == "ready",
        f"the worker is at work {when}",
    )


def test_the_primary_dies_and_the_replica_takes_its_place(hub: Hub) -> None:
    """Nothing acknowledged is lost, reads go on throughout, and the old primary rejoins as a replica."""
    hub.pair.wait_for_replica()
    person = signed_up(hub.webs[0], "pia")
    place = place_of(person)
    hub.stack.worker()
    read(person, place, "before")  # nothing restarts a worker here that starts without a database
    traffic = Traffic([person, hub.elsewhere(person)], place, pause=0.1)
    try:
        wait_until(lambda: traffic.has_written(20), "writes are acknowledged")
        stood_in = hub.reads("stand-in")
        hub.pair.primary.kill()
        died = time.monotonic()
        wait_until(lambda: len(traffic.since(died + 1, traffic.reads)) > 20, "reads go on")
        ready = [http.get(f"{web.url}/readyz") for web in hub.webs]
        wait_until(lambda: "memoryhub_database_up 0.0" in hub.metrics(hub.webs[0]), "the metrics say it")
        assert hub.reads("stand-in") > stood_in + 10
        hub.pair.change_places()
        promoted = time.monotonic()
        wait_until(
            lambda: any(each.status_code == 201 for each in traffic.since(promoted, traffic.writes)),
            "writes go on",
        )
        goes_on = len(traffic.acknowledged) + 20
        wait_until(lambda: traffic.has_written(goes_on), "and on")
    finally:
        traffic.stop()
    assert {each.json()["status"] for each in ready} <= {"ok", "degraded"}
    assert {answer.status_code for _, answer in traffic.writes} <= {201, 503}
    assert {answer.status_code for _, answer in traffic.reads} == {200}
    refused = [answer for _, answer in traffic.writes if answer.status_code == 503]
    assert all(answer.headers["retry-after"] for answer in refused)
    with psycopg.connect(hub.pair.primary.url) as connection:
        kept = {
            content for (content,) in connection.execute("SELECT content FROM memories_memory").fetchall()
        }
    assert traffic.acknowledged <= kept, "what was acknowledged is there"

    read(person, place, "after")
    hub.pair.replica.come_back(hub.pair.primary, "one")
    wait_until(lambda: reads_of_replica(hub, person, place), "the old primary is read from")
    recalled = person.post(f"{place}/recall", json={"query": "which number has the locker?"}).json()
    assert {each["content"] for each in recalled["memories"]} <= kept and recalled["memories"]
