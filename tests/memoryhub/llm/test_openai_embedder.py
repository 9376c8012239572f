import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import httpx2
import numpy as np
import pytest

from memoryhub.llm import errors, openai_compatible
from memoryhub.llm.http_clients import Endpoint, ask_for_models
from memoryhub.llm.openai_compatible import OpenAIEmbedder
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.openai_server import Drop, Failure, Raw, ScriptedOpenAI

TEXTS = ["tea", "coffee", "the deadline is March 15"]


@pytest.fixture
def embedder(scripted_openai: ScriptedOpenAI) -> OpenAIEmbedder:
    return OpenAIEmbedder(Endpoint(scripted_openai.base_url, scripted_openai.api_key, "big-embedder"))


def vectors(rows: list[Any], indexes: list[int] | None = None) -> Raw:
    numbers = indexes or range(len(rows))
    data = [{"index": index, "embedding": row} for index, row in zip(numbers, rows, strict=True)]
    return Raw(json.dumps({"object": "list", "data": data}).encode(), "application/json")


def test_takes_any_dimension(embedder: OpenAIEmbedder, scripted_openai: ScriptedOpenAI) -> None:
    for dimension in (8, 384, 768, 3072, 4096):
        scripted_openai.embedder = FakeEmbedder(dimension)
        found = embedder.embed(TEXTS)
        assert found.shape == (3, dimension)
        assert found.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
        np.testing.assert_allclose(found, FakeEmbedder(dimension).embed(TEXTS), atol=1e-5)


def test_many_texts_go_in_batches_and_keep_their_order(
    embedder: OpenAIEmbedder, scripted_openai: ScriptedOpenAI
) -> None:
    texts = [f"number {number}" for number in range(130)]
    found = embedder.embed(texts)
    assert [len(request.body["input"]) for request in scripted_openai.requests] == [64, 64, 2]
    np.testing.assert_allclose(found, FakeEmbedder(384).embed(texts), atol=1e-5)


def test_order_is_the_index_not_the_position(
    embedder: OpenAIEmbedder, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script_embeddings(vectors([[0, 2], [3, 0]], indexes=[1, 0]))
    assert embedder.embed(["a", "b"]).tolist() == [[1, 0], [0, 1]]


def test_replies_that_are_no_vectors(embedder: OpenAIEmbedder, scripted_openai: ScriptedOpenAI) -> None:
    for reply in (
        vectors([[1, 0]]),
        vectors([[1, 0], [0, 1], [1, 1]]),
        vectors([[1, 0], [0, 1]], indexes=[0, 0]),
        vectors([[1, 0], [0, 1]], indexes=[1, 2]),
        vectors([[1, 0], [0, 1, 0]]),
        vectors([[1, 0], [0, 0]]),
        vectors([[1, 0], [float("nan"), 0]]),
        vectors([[1, 0], [float("inf"), 0]]),
        vectors([[], []]),
        vectors([[1, 0], None]),
        vectors([["a", "b"], [1, 0]]),
        vectors([[[1]], [[2]]]),
        Raw(b"{}", "application/json"),
        Raw(b'{"data": []}', "application/json"),
        Raw(b'{"data": [1, 2]}', "application/json"),
        Raw(b"{not json", "application/json"),
        Raw(b"<html></html>", "text/html"),
    ):
        scripted_openai.script_embeddings(reply)
        try:
            vectors_of_reply = embedder.embed(["a", "b"])
        except errors.EmbedderBadReply:
            continue
        raise AssertionError(f"{reply} was read as {vectors_of_reply}")


def test_batches_of_different_sizes_are_refused(
    embedder: OpenAIEmbedder, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script_embeddings(vectors([[1, 0]] * 64), vectors([[1, 0, 0]]))
    with pytest.raises(errors.EmbedderBadReply):
        embedder.embed([f"number {number}" for number in range(65)])


def test_failures(embedder: OpenAIEmbedder, scripted_openai: ScriptedOpenAI) -> None:
    for reply, expected, attempts in (
        (Failure(401), errors.EmbedderRefused, 1),
        (Failure(403), errors.EmbedderRefused, 1),
        (Failure(404), errors.EmbedderRefused, 1),
        (Failure(400, "maximum context length is 512 tokens"), errors.EmbedderBadRequest, 1),
        (Failure(422, "input must be text"), errors.EmbedderBadRequest, 1),
        (Failure(429, headers={"retry-after": "60"}), errors.EmbedderUnavailable, 1),
        (Failure(500), errors.EmbedderUnavailable, 3),
        (Drop(), errors.EmbedderUnavailable, 3),
    ):
        scripted_openai.requests.clear()
        scripted_openai.script_embeddings(*[reply] * attempts)
        with pytest.raises(errors.EmbedderError) as caught:
            embedder.embed(["tea"])
        assert type(caught.value) is expected, reply
        assert len(scripted_openai.requests) == attempts, reply


@contextmanager
def dripping_server(before: bytes, drop: bytes) -> Iterator[str]:
    """Run a server that sends `before`, then `drop` repeatedly, well within the read timeout. Yield its address."""
    over = threading.Event()

    def serve(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=drip, args=[server.accept()[0]], daemon=True).start()

    def drip(client: socket.socket) -> None:
        with closing(client), suppress(OSError):
            client.recv(65_536)
            client.sendall(before)
            while not over.wait(0.02):
                client.sendall(drop)

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        threading.Thread(target=serve, args=[server], daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        over.set()
        server.shutdown(socket.SHUT_RDWR)


JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n"


@pytest.mark.parametrize(
    ("before", "drop"),
    [(JSON_HEAD, b" "), (b"HTTP/1.1 200 OK\r\n", b"x-more: y\r\n"), (b"HTTP/1.1 200 OK\r\nx-long: ", b"y")],
    ids=["body", "headers", "one header"],
)
def test_a_reply_that_trickles_ends_with_the_time_of_the_call(
    monkeypatch: pytest.MonkeyPatch, before: bytes, drop: bytes
) -> None:
    monkeypatch.setattr(openai_compatible, "EMBEDDING_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(openai_compatible, "EMBEDDING_TIMEOUT_PER_TEXT_SECONDS", 0.1)
    with dripping_server(before, drop) as address:
        began = time.monotonic()
        with pytest.raises(errors.EmbedderUnavailable):
            OpenAIEmbedder(Endpoint(address, "key", "m")).embed(["a text"])
        assert 0.25 < time.monotonic() - began < 5  # without the limit it would be far more
        with pytest.raises(httpx2.TimeoutException):
            ask_for_models(Endpoint(address, "key", "m"), seconds=0.2)


def test_retries_are_within_the_time_of_the_call(
    embedder: OpenAIEmbedder, scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_compatible, "EMBEDDING_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr("memoryhub.llm.openai_errors.RETRY_DELAYS_SECONDS", (0.25, 1.0))
    scripted_openai.script_embeddings(*[Failure(500)] * 3)
    with pytest.raises(errors.EmbedderUnavailable):
        embedder.embed(["a text"])
    assert (
        len(scripted_openai.requests) == 2
    )  # a third would begin after a quarter of a second and a whole one


def test_a_forked_process_asks_by_a_loop_of_its_own(
    embedder: OpenAIEmbedder, scripted_openai: ScriptedOpenAI
) -> None:
    embedder.embed(["before"])
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            ok = OpenAIEmbedder(embedder._endpoint).embed(["after"]).shape == (1, 384)
            os._exit(0 if ok else 1)
        os._exit(2)
    deadline, status = time.monotonic() + 20, (0, 0)
    while status[0] == 0 and time.monotonic() < deadline:
        status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.05)
    if status[0] == 0:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert status == (child, 0)


def test_nobody_there() -> None:
    with pytest.raises(errors.EmbedderUnavailable) as caught:
        OpenAIEmbedder(Endpoint("http://127.0.0.1:9/v1", "", "model")).embed(["tea"])
    assert caught.value.retryable
