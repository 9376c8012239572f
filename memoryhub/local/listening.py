"""The socket that a host listens on, and whether somebody answers there."""

from __future__ import annotations

import errno
import http.client
import socket

LONGEST_PROBE_SECONDS = 1.0


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
