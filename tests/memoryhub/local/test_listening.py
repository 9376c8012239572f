"""The page that a browser gets while MemoryHub starts."""

import socket
from concurrent.futures import ThreadPoolExecutor

import httpx2 as http
import pytest

from memoryhub.local.stack import answers, listen, starting_page
from tests.stack import free_port


def test_whoever_comes_during_a_start_is_told_so_and_asked_to_come_again() -> None:
    port = free_port()
    with listen("127.0.0.1", port) as listener:
        with starting_page(listener):
            with socket.create_connection(
                ("127.0.0.1", port)
            ):  # a silent connection blocks others only briefly
                got = http.get(f"http://127.0.0.1:{port}/any/page", timeout=10)
            assert got.status_code == 503 and got.headers["retry-after"] == "2"
            assert "MemoryHub is starting" in got.text and 'http-equiv="refresh"' in got.text
            assert not answers("127.0.0.1", port, "/accounts/login/"), "it is not taken for the server itself"
            with ThreadPoolExecutor(8) as many:
                codes = list(many.map(lambda _: http.get(f"http://127.0.0.1:{port}/").status_code, range(20)))
            assert set(codes) == {503}
        with pytest.raises(http.TransportError):
            http.get(f"http://127.0.0.1:{port}/", timeout=0.5)
