"""Debian's HAProxy with deploy/haproxy/haproxy.cfg before two hosts that fail, or are overloaded."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2 as http
import pytest

from tests.haproxy import Proxy, proxy_before
from tests.memoryhub.local.processes import wait_until
from tests.test_deploy import needs

pytestmark = needs("haproxy")
AT_WORK, WAITING = 2 * 32, 2 * 100  # the configuration's limits, for two hosts
PLACE = "/chat/api/workspaces/ws_x"
KEY = {"Idempotency-Key": "one"}


class Host(ThreadingHTTPServer):
    """A web host behind the proxy. With ``dies`` the first request of each connection is its last."""

    daemon_threads, request_queue_size = True, 512

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.may_answer, self.dies = threading.Event(), False
        self.may_answer.set()
        self.asked: list[str] = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()


class Answer(BaseHTTPRequestHandler):
    server: Host

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        if self.path not in {"/healthz", "/readyz"}:
            self.server.asked.append(f"{self.command} {self.path}")
            if self.server.dies:
                self.close_connection = True
                return
            if "text/event-stream" not in self.headers.get("Accept", ""):
                self.server.may_answer.wait(60)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@dataclass
class Proxied:
    proxy: Proxy
    hosts: list[Host]

    def ask(self, method: str, path: str, headers: dict[str, str] | None = None) -> int:
        content = None if method == "GET" else b"{}"
        url = f"http://127.0.0.1:{self.proxy.port}{path}"
        return http.request(method, url, headers=headers, content=content, timeout=60).status_code

    def times(self, asked: str) -> int:
        return sum(Counter(host.asked)[asked] for host in self.hosts)

    async def many(self, number: int) -> list[tuple[int, str]]:
        """Send this many requests at once. Return each one's status and Retry-After."""

        async def one() -> tuple[int, str]:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy.port)
            writer.write(b"GET /workspaces/ HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n")
            said = (await reader.read()).decode().lower()
            writer.close()
            return int(said.split()[1]), said.partition("retry-after: ")[2].split("\r")[0]

        return await asyncio.gather(*(one() for _ in range(number)))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    hosts = [Host(), Host()]
    try:
        ports = [host.server_port for host in hosts]
        with proxy_before(ports, tmp_path_factory.mktemp("proxy")) as proxy:
            yield Proxied(proxy, hosts)
    finally:
        for host in hosts:
            host.may_answer.set()
            host.shutdown()
            host.server_close()


@pytest.fixture
def proxied(both: Proxied) -> Proxied:
    """The proxy and its hosts, reset."""
    for host in both.hosts:
        host.dies = False
        host.may_answer.set()
        host.asked.clear()
    return both


@pytest.mark.parametrize(
    ("method", "path", "headers", "may"),
    [
        ("GET", "/workspaces/", {}, True),
        ("POST", f"{PLACE}/recall", {}, True),
        ("POST", f"{PLACE}/memories", KEY, True),
        ("PATCH", f"{PLACE}/memories/mem_x", KEY, True),
        ("POST", "/chat/api/chat_x/messages", KEY, True),
        ("POST", f"{PLACE}/memories", {}, False),
        ("DELETE", f"{PLACE}/memories/mem_x", KEY, False),
        ("POST", "/chat/api/keys", KEY, False),
        ("POST", f"{PLACE}/webhooks", KEY, False),
        ("POST", "/chat/api/chat_x/messages/msg_x/retry", KEY, False),
        ("POST", "/v1/chat/completions", KEY, False),
    ],
)
def test_what_a_dead_host_did_not_answer_is_asked_of_the_other_where_it_may_be(
    proxied: Proxied, method: str, path: str, headers: dict[str, str], may: bool
) -> None:
    for dead, other in (proxied.hosts, reversed(proxied.hosts)):
        before = proxied.times(f"{method} {path}")
        dead.dies, other.dies = True, False
        stays = {"Cookie": f"HOST=web{1 + proxied.hosts.index(dead)}"}
        assert proxied.ask(method, path, headers | stays) == (200 if may else 502)
        assert proxied.times(f"{method} {path}") - before == 1 + may


def test_a_host_that_is_to_be_stopped_is_asked_nothing_more(proxied: Proxied) -> None:
    assert [*filter(str.strip, proxied.proxy.tell("set server web/web1 state maint"))] == []
    for path in ("/workspaces/", "/workspaces/ws_x/events/", "/v1/models"):
        assert proxied.ask("GET", path, {"Cookie": "HOST=web1"}) == 200
    assert [len(host.asked) for host in proxied.hosts] == [0, 3]
    proxied.proxy.tell("set server web/web1 state ready")
    wait_until(
        lambda: proxied.ask("GET", "/back/", {"Cookie": "HOST=web1"}) == 200 and proxied.hosts[0].asked,
        "it is",
    )


def test_of_a_crowd_some_wait_and_the_rest_is_told_when_to_come_back(proxied: Proxied) -> None:
    """The requests at work and waiting are limited, and one that waits too long is refused as well."""
    for host in proxied.hosts:
        host.may_answer.clear()

    def watch() -> None:
        wait_until(lambda: sum(len(host.asked) for host in proxied.hosts) >= AT_WORK, "hosts are at work")
        stream = {"Accept": "text/event-stream"}
        assert proxied.ask("GET", "/workspaces/ws_x/events/", stream) == 200, "it takes nobody's room"
        wait_until(lambda: proxied.proxy.counted("dreq") >= 50, "some are refused at once")
        wait_until(lambda: proxied.proxy.counted("qcur") == 0, "nobody waits any more")
        for host in proxied.hosts:
            host.may_answer.set()

    async def scene() -> list[tuple[int, str]]:
        told, _ = await asyncio.gather(proxied.many(AT_WORK + WAITING + 50), asyncio.to_thread(watch))
        return told

    assert Counter(asyncio.run(scene())) == {(200, ""): AT_WORK, (503, "2"): WAITING + 50}
    assert proxied.ask("GET", "/workspaces/") == 200
