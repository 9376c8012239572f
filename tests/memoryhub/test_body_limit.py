"""What is larger than any upload is not read to its end, whether it says how long it is or not; what trickles in is
given up, and one address has not many half sent.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from typing import Any

import pytest
import uvicorn
from django.test import override_settings

from memoryhub.asgi import django_application
from memoryhub.http.body_limit import BodyLimit
from tests.fakes.pseudo_language import CLOSED, OPEN

pytestmark = pytest.mark.django_db(transaction=True)
MOST, PIECE = 100_000, 20_000


def asked(*headers: tuple[bytes, bytes], path: str = "/accounts/login/") -> tuple[list[int], int, str]:
    """The statuses that an endless POST gets, how many of its bytes were read, and what is said."""
    sent: list[int] = []
    read, said = 0, ""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"localhost"), *headers],
        "server": ("localhost", 80),
    }

    async def receive() -> dict[str, Any]:
        nonlocal read
        read += PIECE
        return {"type": "http.request", "body": b"a" * PIECE, "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        nonlocal said
        if "status" in message:
            sent.append(message["status"])
        else:
            said = json.loads(message["body"])["error"]["message"]

    asyncio.run(asyncio.wait_for(BodyLimit(django_application, most=MOST)(scope, receive, send), 20))
    return sent, read, said


@pytest.mark.parametrize("length", [b"100001", b"9" * 5000])
def test_what_says_that_it_is_too_long_is_not_read(length: bytes) -> None:
    assert asked((b"content-length", length)) == ([413], 0, "The request is too large.")


def test_it_is_said_in_the_language_that_is_asked_for(pseudo_language: str) -> None:
    headers = (b"content-length", b"100001"), (b"accept-language", pseudo_language.encode())
    assert asked(*headers)[2] == f"{OPEN}The request is too large.{CLOSED}"
    assert asked(*headers, path="/v1/responses")[2] == "The request is too large.", "programs read English"


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"10")], [(b"content-length", b"x")]])
def test_what_lies_about_its_length_is_hung_up_on(headers: list[tuple[bytes, bytes]]) -> None:
    statuses, read, _said = asked(*headers)
    assert statuses == [413]
    assert read <= MOST + PIECE


PATIENCE, SLOWEST, HALF_SENT = 0.5, 20_000, 3


@pytest.fixture(scope="module")
def limit() -> BodyLimit:
    async def echo(scope: Any, receive: Any, send: Any) -> None:
        """As the handler does: reads the whole body, answers nothing to who is gone."""
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size, more = size + len(message["body"]), message.get("more_body", False)
        await asyncio.sleep(PATIENCE * 2 if scope["path"] == "/slow" else 0)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-size", b"%d" % size)]})
        await send({"type": "http.response.body", "body": b""})

    return BodyLimit(echo, most=10**6, patience=PATIENCE, slowest=SLOWEST, half_sent=HALF_SENT)


@pytest.fixture(scope="module")
def port(limit: BodyLimit) -> Iterator[int]:
    """The server that really runs us, on a real socket."""
    protocol = "memoryhub.http.protocol:ImpatientProtocol"
    config = uvicorn.Config(limit, lifespan="off", log_level="warning", proxy_headers=False, http=protocol)
    server = uvicorn.Server(config)
    with (
        override_settings(BODY_SECONDS=PATIENCE),
        closing(socket.create_server(("127.0.0.1", 0))) as listener,
    ):
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(5)


def begun(port: int, path: str = "/", head: str = "Content-Length: 100000") -> socket.socket:
    """A connection on which a POST has begun whose body is still to come."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=5)
    connection.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode())
    return connection


def answer(connection: socket.socket) -> bytes:
    """All that comes until the server hangs up."""
    found = b""
    while piece := connection.recv(65536):
        found += piece
    return found


@pytest.mark.parametrize("head", ["Content-Length: 100000", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("first", [b"", b"2\r\nab\r\n"])
def test_a_body_that_never_comes_is_given_up_and_hung_up_on(port: int, head: str, first: bytes) -> None:
    began = time.monotonic()
    with begun(port, head=head) as connection:
        connection.sendall(first)
        assert answer(connection).startswith(b"HTTP/1.1 408")
    assert PATIENCE * 0.9 <= time.monotonic() - began < PATIENCE + 2


def test_a_body_that_trickles_is_given_up_however_lively_it_looks(port: int) -> None:
    with begun(port) as connection:
        connection.settimeout(0.02)
        found = b""
        for _ in range(200):
            try:
                connection.sendall(b"a")
                found = connection.recv(100)
                break
            except TimeoutError:
                continue
    assert found.startswith(b"HTTP/1.1 408")


def test_a_slow_line_that_brings_enough_is_waited_for(port: int) -> None:
    head = "Content-Length: 40000\r\nConnection: close"
    began = time.monotonic()
    with begun(port, head=head) as connection:
        for _ in range(8):
            connection.sendall(b"a" * 5000)
            time.sleep(0.15)
        assert b"x-size: 40000" in answer(connection)
    assert time.monotonic() - began > PATIENCE * 2


def test_who_sent_all_is_waited_on_for_as_long_as_the_answer_takes(port: int) -> None:
    with begun(port, "/slow", "Content-Length: 1\r\nConnection: close") as connection:
        connection.sendall(b"a")
        assert b"x-size: 1" in answer(connection)


def test_one_address_has_only_so_many_half_sent(port: int, limit: BodyLimit) -> None:
    with ExitStack() as stack:
        for _ in range(HALF_SENT):
            stack.enter_context(begun(port)).sendall(b"a")
        time.sleep(0.1)
        with begun(port) as one_more:
            found = answer(one_more)
        assert found.startswith(b"HTTP/1.1 429") and b"retry-after: 5" in found
        with begun(port, head="Content-Length: 0\r\nConnection: close") as without:
            assert answer(without).startswith(b"HTTP/1.1 200")
    deadline = time.monotonic() + 5
    while limit.waiting and time.monotonic() < deadline:  # those who hang up are not waited for
        time.sleep(0.02)
    assert not limit.waiting
    with begun(port, head="Content-Length: 1\r\nConnection: close") as after:
        after.sendall(b"a")
        assert b"x-size: 1" in answer(after)


def test_behind_proxies_each_client_has_a_count_of_its_own(
    port: int, limit: BodyLimit, settings: Any
) -> None:
    settings.TRUSTED_PROXIES = 1
    with ExitStack() as stack:
        for number in range(HALF_SENT + 2):
            head = f"Content-Length: 9\r\nX-Forwarded-For: 203.0.113.{number}"
            stack.enter_context(begun(port, head=head)).sendall(b"a")
        time.sleep(0.1)
        assert set(limit.waiting.values()) == {1} and len(limit.waiting) == HALF_SENT + 2


def test_one_line_of_ipv6_counts_once(port: int, settings: Any) -> None:
    settings.TRUSTED_PROXIES = 1
    with ExitStack() as stack:
        for number in range(HALF_SENT + 1):
            head = f"Content-Length: 9\r\nX-Forwarded-For: 2001:db8:1:2:{number}::1"
            last = stack.enter_context(begun(port, head=head))
            time.sleep(0.05)
        assert answer(last).startswith(b"HTTP/1.1 429")


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: loc"])
def test_a_head_that_never_ends_is_hung_up_on(port: int, sent: bytes) -> None:
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(sent)
        assert answer(connection) == b""
    assert PATIENCE * 0.9 <= time.monotonic() - began < PATIENCE + 2


def test_neither_is_a_later_one_of_a_connection_waited_for(port: int) -> None:
    whole = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(whole)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        connection.sendall(whole[:20])
        answer(connection)  # until it hangs up
    assert PATIENCE * 0.9 <= time.monotonic() - began < PATIENCE + 2


@pytest.mark.parametrize("whole", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"])
@pytest.mark.parametrize(
    "sent", [b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000]
)
def test_a_head_without_end_is_refused_before_it_fills_the_memory(
    port: int, whole: bytes, sent: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        if whole:
            connection.sendall(whole)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(sent)
        with suppress(ConnectionError):
            for _ in range(100):
                connection.sendall(b"a" * 10_000)
                time.sleep(0.002)  # for the server to have read it
            raise AssertionError("a million bytes of a head were taken")


def test_a_long_head_that_ends_is_read(port: int) -> None:
    head = "Content-Length: 1\r\nConnection: close\r\nX-Long: " + "a" * 50_000
    with begun(port, head=head) as connection:
        connection.sendall(b"a")
        assert b"x-size: 1" in answer(connection)


def test_who_takes_long_to_be_answered_is_not_hung_up_on(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"GET /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert answer(connection).startswith(b"HTTP/1.1 200")
