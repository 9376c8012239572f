"""A fake HTTP server with the OpenAI API, which answers as a test scripts it.

    server.script(Answer("The ", "deadline ", "is March 15."))   # the next chat request
    server.script(Failure(429, headers={"retry-after": "0"}), Answer("Fine."))
    server.respond = lambda request: Answer(request.last_user_text)   # all others

It runs in a thread of its own on one event loop, so hundreds of slow streams cost next to nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.embedder import FakeEmbedder

USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}  # of every answer


class Hold:
    """A place in a stream that waits for `server.release()`, among the pieces of text."""


HOLD = Hold()


@dataclass(frozen=True)
class Call:
    """A tool call of the model. Arguments given as text are sent unchanged, JSON or not."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(dict(self.arguments))


@dataclass(frozen=True)
class Answer:
    """A streamed or complete answer, as the request demands."""

    pieces: tuple[str | Hold, ...]
    delay: float = 0.0
    finish_reason: str | None = "stop"
    cut: bool = False
    calls: tuple[Call, ...] = ()

    def __init__(
        self,
        *pieces: str | Hold,
        delay: float = 0.0,
        finish_reason: str | None = "stop",
        cut: bool = False,
        calls: Sequence[Call] = (),
    ) -> None:
        """`delay` seconds before each piece; `cut` drops the connection after the last one.

        `calls` are sent after the text in fragments, as OpenAI does.
        """
        reason = "tool_calls" if calls and finish_reason == "stop" else finish_reason
        for name, value in (
            ("pieces", pieces), ("delay", delay), ("finish_reason", reason), ("cut", cut), ("calls", tuple(calls))
        ):  # fmt: skip
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Failure:
    status: int
    message: str = "scripted failure"
    code: str | None = None
    type: str | None = None
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """A reply with exactly these bytes as the body."""

    body: bytes
    content_type: str = "text/event-stream"
    status: int = 200


@dataclass(frozen=True)
class Hang:
    """Accepts the request and never answers."""


@dataclass(frozen=True)
class Trickle:
    """An embedding reply, sent at this many bytes a second."""

    bytes_per_second: int = 40


@dataclass(frozen=True)
class Drop:
    """Closes the connection without an answer."""


Reply = Answer | Failure | Raw | Hang | Trickle | Drop


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])

    @property
    def tool_names(self) -> list[str]:
        """Return the names of the tools offered to the model."""
        return [str(tool["function"]["name"]) for tool in self.body.get("tools", [])]

    @property
    def tool_results(self) -> list[str]:
        """Return the results of tool calls, in order."""
        return [str(m["content"]) for m in self.messages if m["role"] == "tool"]

    @property
    def asks_for_title(self) -> bool:
        """Return whether the request is for a new chat's title."""
        return "messages" in self.body and str(self.messages[:1]).find("Write a title for a chat") >= 0

    @property
    def last_user_text(self) -> str:
        return next(str(m["content"]) for m in reversed(self.messages) if m["role"] == "user")


class ScriptedOpenAI:
    api_key = "test-key"
    model = "scripted-model"

    def __init__(self) -> None:
        self.requests: list[Received] = []
        # Requests of jobs that name chats, which consume nothing of the script
        self.title_requests: list[Received] = []
        self.connections = 0
        self.respond: Callable[[Received], Reply]
        self._script: deque[Reply] = deque()
        self.embedder = FakeEmbedder(384)
        self._embedding_script: deque[Reply] = deque()
        self._loop = asyncio.new_event_loop()
        self._released = asyncio.Event()
        self._received = threading.Condition()
        self._hung_up = threading.Semaphore(0)
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scripted-openai", daemon=True)
        self.unscript()

    # --- for tests

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, *replies: Reply) -> None:
        """Set the replies to the next chat requests, in order; later ones get those of `respond`."""
        self._script.extend(replies)

    def unscript(self) -> None:
        """Reset: every chat request gets a greeting, and streams wait at a HOLD."""
        self._script.clear()
        self.hold()
        self.title: Reply = Answer("")
        self.respond = lambda request: Answer("Hello", " from", " the script.")

    def script_embeddings(self, *replies: Reply) -> None:
        """Set the replies to the next embedding requests; later ones get vectors of `embedder`."""
        self._embedding_script.extend(replies)

    def release(self) -> None:
        """Release all streams that wait at a HOLD; later ones pass too, until ``hold``."""
        self._loop.call_soon_threadsafe(self._released.set)

    def hold(self) -> None:
        """Make streams wait at a HOLD again."""
        self._loop.call_soon_threadsafe(self._released.clear)

    def wait_for_requests(self, count: int, seconds: float = 10.0) -> bool:
        """Return True once this many requests have arrived."""
        with self._received:
            return self._received.wait_for(lambda: len(self.requests) >= count, seconds)

    def wait_for_hang_up(self, seconds: float = 5.0) -> bool:
        """Return True once a client has disconnected during a reply (each is reported once)."""
        return self._hung_up.acquire(timeout=seconds)

    def drop_connections(self) -> None:
        """Close the connections that clients keep open, as a server's keep-alive timeout does."""

        async def drop() -> None:
            while open_now := set(self._tasks):  # one that is just finishing a reply may miss the first call
                for task in open_now:
                    task.cancel()
                await asyncio.wait(open_now, timeout=0.1)

        asyncio.run_coroutine_threadsafe(drop(), self._loop).result(5)

    @property
    def chat_requests(self) -> list[Received]:
        return [request for request in self.requests if request.path.endswith("/chat/completions")]

    def start(self, port: int = 0) -> ScriptedOpenAI:
        self._thread.start()
        self.listen(port)
        return self

    def listen(self, port: int) -> None:
        async def listen() -> asyncio.Server:
            return await asyncio.start_server(self._serve, "127.0.0.1", port, backlog=512)

        self._server = asyncio.run_coroutine_threadsafe(listen(), self._loop).result(5)
        self.port: int = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self.drop_connections()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    # --- HTTP

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while (request := await _read_request(reader)) is not None:
                with self._received:
                    (self.title_requests if request.asks_for_title else self.requests).append(request)
                    self._received.notify_all()
                if not await self._unless_hung_up(self._answer(request, writer), reader):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return  # the client disconnected, or the server is stopping
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _unless_hung_up(self, answering: Any, reader: asyncio.StreamReader) -> bool:
        """Run `answering` until it is done or the client disconnects. Return whether the connection can be reused."""
        answer = asyncio.ensure_future(answering)
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if answer.done() and not isinstance(answer.exception(), ConnectionError):
                return bool(answer.result())
            self._hung_up.release()
            return False
        finally:
            for task in (answer, gone):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                    await task

    async def _answer(self, request: Received, writer: asyncio.StreamWriter) -> bool:
        reply = self._choose(request)
        if isinstance(reply, dict):
            await _send_json(writer, 200, reply)
        elif isinstance(reply, Failure):
            error = {"message": reply.message, "code": reply.code, "type": reply.type, "param": reply.param}
            await _send_json(writer, reply.status, {"error": error}, reply.headers)
        elif isinstance(reply, Raw):
            await _send(writer, reply.status, reply.body, {"content-type": reply.content_type})
        elif isinstance(reply, Hang):
            await asyncio.Event().wait()
        elif isinstance(reply, Trickle):
            await _trickle(writer, self._vectors(request), reply.bytes_per_second)
        elif isinstance(reply, Drop):
            return False
        elif request.body.get("stream"):
            return await self._stream(reply, writer, (request.body.get("stream_options") or {}))
        else:
            text = "".join([piece async for piece in self._pieces(reply)])
            await _send_json(writer, 200, _completion(text, reply))
        return True

    def _choose(self, request: Received) -> Reply | dict[str, Any]:
        if request.headers.get("authorization") != f"Bearer {self.api_key}":
            return Failure(401, "Incorrect API key provided.", code="invalid_api_key")
        if request.path == "/v1/chat/completions":
            if request.asks_for_title:
                return self.title
            return self._script.popleft() if self._script else self.respond(request)
        if request.path == "/v1/embeddings":
            if self._embedding_script:
                return self._embedding_script.popleft()
            return self._vectors(request)
        if request.path == "/v1/models":
            return {"object": "list", "data": [{"id": self.model, "object": "model"}]}
        return Failure(404, f"no such route: {request.path}")

    def _vectors(self, request: Received) -> dict[str, Any]:
        texts = request.body["input"]
        texts = [texts] if isinstance(texts, str) else texts
        rows = self.embedder.embed(texts).tolist()
        data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
        return {"object": "list", "model": self.model, "data": data}

    async def _pieces(self, reply: Answer) -> AsyncIterator[str]:
        for piece in reply.pieces:
            if reply.delay:
                await asyncio.sleep(reply.delay)
            if isinstance(piece, Hold):
                await self._released.wait()
            else:
                yield piece

    async def _stream(self, reply: Answer, writer: asyncio.StreamWriter, options: Mapping[str, Any]) -> bool:
        writer.write(head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}))
        write_event(writer, _chunk({"role": "assistant", "content": None}))
        await writer.drain()
        async for piece in self._pieces(reply):
            write_event(writer, _chunk({"content": piece}))
            await writer.drain()
        for fragment in _fragments(reply.calls):
            write_event(writer, _chunk({"tool_calls": [fragment]}))
            await writer.drain()
        if reply.cut:
            return False  # without the last chunk of the transfer encoding: the connection just ends
        if reply.finish_reason is not None:
            write_event(writer, _chunk({}, reply.finish_reason))
            if options.get("include_usage"):
                write_event(writer, json.dumps({"id": "chatcmpl-1", "choices": [], "usage": USAGE}))
            write_event(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


async def _read_request(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(first.split(" ")[1], headers, json.loads(body) if body else {})


def head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _send(writer: asyncio.StreamWriter, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    writer.write(head(status, {**headers, "content-length": str(len(body))}) + body)
    await writer.drain()


async def _send_json(
    writer: asyncio.StreamWriter, status: int, body: dict[str, Any], headers: Mapping[str, str] | None = None
) -> None:
    headers = {"content-type": "application/json", **(headers or {})}
    await _send(writer, status, json.dumps(body).encode(), headers)


async def _trickle(writer: asyncio.StreamWriter, answer: dict[str, Any], bytes_per_second: int) -> None:
    body = json.dumps(answer).encode()
    writer.write(head(200, {"content-type": "application/json", "content-length": str(len(body))}))
    for byte in body:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(1 / bytes_per_second)


def write_event(writer: asyncio.StreamWriter, data: str) -> None:
    event = f"data: {data}\n\n".encode()
    writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")


def _chunk(delta: dict[str, Any], finish_reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]})


def _fragments(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """Return fragments as OpenAI streams them: id and name first, the arguments in parts, each with the
    call's index.
    """
    fragments: list[dict[str, Any]] = []
    for index, call in enumerate(calls):
        call_id, half = call.id or f"call_{index}", len(call.text) // 2
        function = {"name": call.name, "arguments": ""}
        fragments.append({"index": index, "id": call_id, "type": "function", "function": function})
        for part in (call.text[:half], call.text[half:]):
            fragments.append({"index": index, "function": {"arguments": part}})
    return fragments


def _completion(text: str, reply: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if reply.calls:
        message["tool_calls"] = [
            {"id": call.id or f"call_{index}", "type": "function",
             "function": {"name": call.name, "arguments": call.text}}
            for index, call in enumerate(reply.calls)
        ]  # fmt: skip
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": USAGE}
