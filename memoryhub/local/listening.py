"""The socket that a host listens on, and whether somebody answers there."""

from __future__ import annotations

import errno
import http.client
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LONGEST_PROBE_SECONDS = 1.0
STARTING_PAGE = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="2"><meta name="color-scheme" content="light dark">
<title>Starting &hellip;</title></head>
<body style="display:grid;place-content:center;min-height:90vh;font:1rem/1.6 system-ui,sans-serif">
<main><h1 style="font-size:1.5rem">MemoryHub is starting &hellip;</h1>
<p>The first start takes up to a minute. This page opens it by itself.</p></main></body></html>
"""
_STARTING = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html; charset=utf-8\r\nRetry-After: 2\r\n"
    b"Cache-Control: no-store\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(STARTING_PAGE)
) + STARTING_PAGE


class AddressInUse(Exception):
    """The web server's address cannot be had; the text names the setting."""


def listen(host: str, port: int) -> socket.socket:
    """The web server's socket, opened here so that a restart of the web server refuses nobody meanwhile."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, where = min(found, key=lambda entry: entry[0] != socket.AF_INET)
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it: uvicorn takes a given socket for a local one and would not set it, and a
        # streamed token would wait for the browser's acknowledgement of the one before.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind(where)
        listener.listen(2048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressInUse(
                f"Port {port} of {host} is in use by another program: set MEMORYHUB_PORT to a free one."
            ) from error
        raise AddressInUse(
            f"Cannot listen on {host}:{port} ({error.strerror}): set MEMORYHUB_HOST and MEMORYHUB_PORT."
        ) from error
    return listener


def answers(host: str, port: int, path: str) -> bool:
    """Whether a page comes from the server; a second at the most. What the page says does not matter."""
    local = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    connection = http.client.HTTPConnection(local, port, timeout=LONGEST_PROBE_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextmanager
def starting_page(listener: socket.socket) -> Iterator[None]:
    """Answer requests during the start with a page that says so and reloads itself."""
    over = threading.Event()
    listener.setblocking(False)  # the web server may take what select saw here
    thread = threading.Thread(target=_answer_all, args=(listener, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _answer_all(listener: socket.socket, over: threading.Event) -> None:
    while not over.is_set():
        if not select.select([listener], [], [], 0.2)[0]:
            continue
        with suppress(OSError):  # somebody left, or the web server was quicker
            connection = listener.accept()[0]
            with connection:
                connection.settimeout(0.5)
                connection.recv(65536)
                connection.sendall(_STARTING)
                connection.shutdown(socket.SHUT_WR)
