"""The ASGI handler that the web process runs: one thread for a request, streams in the event loop."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.signals import request_finished, request_started
from django.db import connection
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import override_settings
from django.urls import path

from memoryhub.http.handler import OneThreadHandler

pytestmark = pytest.mark.django_db(transaction=True)
seen: list[str] = []
ended = threading.Event()


def note_thread(get_response: Any) -> Any:
    def middleware(request: HttpRequest) -> Any:
        seen.append(threading.current_thread().name)
        return get_response(request)

    return middleware


def plain(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    seen.append(threading.current_thread().name)
    return HttpResponse(request.body)


def fails(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("nobody foresaw it")


def cut(request: HttpRequest) -> HttpResponse:
    """The server hangs up on the first who asks."""
    seen.append(request.method or "")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())" if len(seen) == 2 else "SELECT 1")
    return HttpResponse("told")


async def stream(request: HttpRequest) -> StreamingHttpResponse:
    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                await sync_to_async(connection.ensure_connection)()
                seen.append(await sync_to_async(lambda: threading.current_thread().name)())
                yield "more"
                await asyncio.sleep(0.01)
        finally:
            ended.set()

    return StreamingHttpResponse(endless())


async def breaks(request: HttpRequest) -> StreamingHttpResponse:
    async def pieces() -> AsyncIterator[str]:
        yield "a"
        raise RuntimeError("in the middle")

    return StreamingHttpResponse(pieces())


urlpatterns = [path(view.__name__, view) for view in (plain, fails, cut, stream, breaks)]


class Conversation:
    """One POST as a server would hand it on, and all that is sent back."""

    def __init__(self, name: str, method: str = "POST") -> None:
        self.scope = {
            "type": "http",
            "method": method,
            "path": f"/{name}",
            "query_string": b"",
            "headers": [],
        }
        self.scope |= {"http_version": "1.1", "server": ("localhost", 80), "asgi": {"version": "3.0"}}
        self.sent: list[dict[str, Any]] = []
        self.gone = asyncio.Event()
        self._read = False

    async def receive(self) -> dict[str, Any]:
        if self._read:
            await self.gone.wait()
            return {"type": "http.disconnect"}
        self._read = True
        return {"type": "http.request", "body": b"hello", "more_body": False}

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        if len(self.sent) > 5:
            self.gone.set()

    async def run(self) -> None:
        await asyncio.wait_for(OneThreadHandler()(self.scope, self.receive, self.send), 20)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


@pytest.fixture
def signals() -> Iterator[list[tuple[str, str]]]:
    """Which signals were sent, and in which thread."""
    heard: list[tuple[str, str]] = []

    def started(**_: Any) -> None:
        heard.append(("started", threading.current_thread().name))

    def finished(**_: Any) -> None:
        heard.append(("finished", threading.current_thread().name))

    request_started.connect(started)
    request_finished.connect(finished)
    seen.clear()
    ended.clear()
    with override_settings(
        ROOT_URLCONF=__name__, MIDDLEWARE=[f"{__name__}.note_thread"], ALLOWED_HOSTS=["*"]
    ):
        yield heard
    request_started.disconnect(started)
    request_finished.disconnect(finished)


def ask(name: str, method: str = "POST") -> Conversation:
    async def whole() -> Conversation:
        asked = Conversation(name, method)
        await asked.run()
        return asked

    return asyncio.run(whole())


def test_a_request_stays_in_one_thread_from_the_first_signal_to_the_last(
    signals: list[tuple[str, str]],
) -> None:
    asked = ask("plain")
    assert (asked.sent[0]["status"], asked.body) == (200, b"hello")
    (thread,) = {*seen, *(thread for _, thread in signals)}
    assert thread.startswith("request")
    assert [name for name, _ in signals] == ["started", "finished"]


def test_what_nobody_foresaw_is_an_answer(signals: list[tuple[str, str]]) -> None:
    assert ask("fails").sent[0]["status"] == 500
    assert [name for name, _ in signals] == ["started", "finished"]


def test_a_stream_ends_with_its_client_and_keeps_to_one_thread_of_its_own(
    signals: list[tuple[str, str]],
) -> None:
    asked = ask("stream")
    assert asked.body.startswith(b"moremore")
    assert ended.is_set()
    middleware, *streaming = seen
    assert middleware.startswith("request")
    assert len(set(streaming)) == 1
    assert middleware not in streaming
    assert [name for name, _ in signals] == ["started", "finished"]
    assert signals[-1][1] == streaming[0]  # where the connection is that has to be closed


def test_a_stream_that_breaks_is_told_to_the_server_and_finished(signals: list[tuple[str, str]]) -> None:
    with pytest.raises(RuntimeError, match="in the middle"):
        ask("breaks")
    assert [name for name, _ in signals] == ["started", "finished"]


def test_a_client_that_leaves_before_its_body_is_read_gets_nothing() -> None:
    async def leave() -> list[Any]:
        asked = Conversation("plain")
        asked._read = True
        asked.gone.set()
        await asked.run()
        return asked.sent

    assert asyncio.run(leave()) == []


def test_it_speaks_http_only() -> None:
    with pytest.raises(ValueError, match="websocket"):
        asyncio.run(OneThreadHandler()({"type": "websocket"}, None, None))


@pytest.mark.parametrize(("method", "tries", "status"), [("GET", 2, 200), ("HEAD", 2, 200), ("POST", 1, 500)])
def test_who_only_reads_does_not_notice_that_the_connection_was_cut(
    signals: list[tuple[str, str]], method: str, tries: int, status: int
) -> None:
    asked = ask("cut", method)
    assert [word for word in seen if word == method] == [method] * tries
    assert asked.sent[0]["status"] == status
    assert [name for name, _ in signals] == ["started", "finished"]


def test_an_error_of_the_view_is_not_tried_again(signals: list[tuple[str, str]]) -> None:
    assert ask("fails", "GET").sent[0]["status"] == 500
    assert len(seen) == 1


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_body_that_finds_no_room_is_read_to_its_end_and_answered(
    signals: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, pieces: int
) -> None:
    """Django writes long bodies to a temporary file before anything else is done."""

    def full(*args: Any, **kwargs: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.SpooledTemporaryFile.write", full)

    async def whole() -> tuple[Conversation, int]:
        asked, received = Conversation("chat/api/plain"), 0

        async def receive() -> dict[str, Any]:
            nonlocal received
            received += 1
            assert received <= pieces, "nothing more comes"
            return {"type": "http.request", "body": b"hello", "more_body": received < pieces}

        await asyncio.wait_for(OneThreadHandler()(asked.scope, receive, asked.send), 20)
        return asked, received

    asked, received = asyncio.run(whole())
    assert received == pieces
    assert asked.sent[0]["status"] == 503
    assert (b"Retry-After", b"60") in asked.sent[0]["headers"]
    assert b"run out of disk space" in asked.body
