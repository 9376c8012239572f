"""What is larger than any upload is not read to its end, whether it says how long it is or not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from memoryhub.asgi import django_application
from memoryhub.body_limit import BodyLimit

pytestmark = pytest.mark.django_db(transaction=True)
MOST, PIECE = 100_000, 20_000


def asked(*headers: tuple[bytes, bytes]) -> tuple[list[int], int]:
    """The statuses that an endless POST gets, and how many of its bytes were read."""
    sent: list[int] = []
    read = 0
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/accounts/login/",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), *headers],
        "server": ("localhost", 80),
    }

    async def receive() -> dict[str, Any]:
        nonlocal read
        read += PIECE
        return {"type": "http.request", "body": b"a" * PIECE, "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        if "status" in message:
            sent.append(message["status"])

    asyncio.run(asyncio.wait_for(BodyLimit(django_application, most=MOST)(scope, receive, send), 20))
    return sent, read


@pytest.mark.parametrize("length", [b"100001", b"9" * 5000])
def test_what_says_that_it_is_too_long_is_not_read(length: bytes) -> None:
    assert asked((b"content-length", length)) == ([413], 0)


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"10")], [(b"content-length", b"x")]])
def test_what_lies_about_its_length_is_hung_up_on(headers: list[tuple[bytes, bytes]]) -> None:
    statuses, read = asked(*headers)
    assert statuses in ([], [400])
    assert read <= MOST + PIECE
