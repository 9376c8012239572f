"""Bodies larger than any upload are not read to their end, with or without a Content-Length."""

import asyncio
import errno
import json
from typing import Any

import pytest

from memoryhub.asgi import django_application
from memoryhub.http.body_limit import BodyLimit
from tests.fakes.pseudo_language import CLOSED, OPEN

pytestmark = pytest.mark.django_db(transaction=True)
MOST, PIECE = 100_000, 20_000


def post_endlessly(
    *headers: tuple[bytes, bytes], path: str = "/accounts/login/"
) -> tuple[list[int], int, str]:
    """Send an endless POST. Return the statuses, the number of bytes read, and the answer."""
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


def test_what_says_that_it_is_too_long_is_not_read() -> None:
    for length in (b"100001", b"9" * 5000):
        assert post_endlessly((b"content-length", length)) == ([413], 0, "The request is too large.")


def test_it_is_said_in_the_language_that_is_asked_for(pseudo_language: str) -> None:
    headers = (b"content-length", b"100001"), (b"accept-language", pseudo_language.encode())
    assert post_endlessly(*headers)[2] == f"{OPEN}The request is too large.{CLOSED}"
    assert post_endlessly(*headers, path="/v1/responses")[2] == "The request is too large.", (
        "programs read English"
    )


def test_what_lies_about_its_length_is_hung_up_on() -> None:
    for headers in ([], [(b"content-length", b"10")], [(b"content-length", b"x")]):
        statuses, read, _said = post_endlessly(*headers)
        assert statuses == [413], headers
        assert read <= MOST + PIECE, headers


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_body_that_finds_no_room_is_read_to_its_end_and_answered(
    monkeypatch: pytest.MonkeyPatch, pieces: int
) -> None:
    """Django writes long bodies to a temporary file before anything else."""

    def full(*args: Any, **kwargs: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.SpooledTemporaryFile.write", full)
    received, sent = 0, list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        nonlocal received
        received += 1
        assert received <= pieces, "nothing more comes"
        return {"type": "http.request", "body": b"hello", "more_body": received < pieces}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/chat/api/chats", "query_string": b"", "headers": []}
    scope |= {"http_version": "1.1", "server": ("localhost", 80), "asgi": {"version": "3.0"}}
    asyncio.run(asyncio.wait_for(BodyLimit(django_application, most=MOST)(scope, receive, send), 20))
    assert received == pieces
    assert sent[0]["status"] == 503
    assert (b"retry-after", b"60") in sent[0]["headers"]
    assert b"run out of disk space" in sent[1]["body"]
