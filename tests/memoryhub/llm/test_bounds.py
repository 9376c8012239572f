"""An untrusted server can neither exhaust the memory nor block a thread."""

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from memoryhub.llm import errors, http_clients, openai_replies
from memoryhub.llm.addresses import AddressRange
from memoryhub.llm.base import Capabilities, Message
from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.openai_compatible import OpenAIChatModel
from tests.fakes.openai_server import Answer, Failure, Raw, ScriptedOpenAI

QUESTION = [Message("user", "Hello?")]
CAPABILITIES = Capabilities(has_tools=False, can_extract=True, context_tokens=4096, local=False)
OF_PEOPLE = [
    AddressRange.ANYWHERE,
    AddressRange.INTERNAL,
]  # PUBLIC uses the same code, and reaches no server of a test


def model_at(base_url: str, address_range: AddressRange, timeout: float = 5.0) -> OpenAIChatModel:
    endpoint = Endpoint(base_url, "test-key", "m", address_range)
    return OpenAIChatModel(lambda: endpoint, CAPABILITIES, timeout=timeout)


async def streamed(model: OpenAIChatModel) -> str:
    return "".join([delta.text async for delta in model.stream(QUESTION)])


async def test_a_reply_without_end_is_not_read_to_it(
    scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_clients, "MOST_BYTES", 100_000)
    endless = Raw(b"data: " + b"x" * 200_000)
    for address_range in OF_PEOPLE:
        scripted_openai.respond = lambda request: endless
        model = model_at(scripted_openai.base_url, address_range)
        with pytest.raises(errors.ModelError):
            await streamed(model)
        with pytest.raises(errors.ModelError):
            model.complete(QUESTION)
        scripted_openai.respond = lambda request: Answer("Fine.")
        assert await streamed(model) == model.complete(QUESTION) == "Fine.", address_range


async def test_an_answer_without_end_is_ended(
    scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_replies, "MOST_TEXT", 1000)
    scripted_openai.respond = lambda request: Answer(*["word " * 20] * 20)
    with pytest.raises(errors.ModelBadReply):
        await streamed(model_at(scripted_openai.base_url, AddressRange.CONFIGURED))


@pytest.fixture
def compressing_server() -> Iterator[tuple[str, list[bytes]]]:
    """Run a server that compresses every answer. Yield its address and the requests."""
    asked: list[bytes] = []
    body = gzip.compress(b" " * 10_000_000)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n"

    def serve(server: socket.socket) -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with closing(client):
                asked.append(client.recv(65_536))
                client.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1", asked
        server.shutdown(socket.SHUT_RDWR)


async def test_a_packed_reply_is_not_asked_for_and_not_unpacked(
    compressing_server: tuple[str, list[bytes]],
) -> None:
    base_url, asked = compressing_server
    model = model_at(base_url, AddressRange.ANYWHERE)
    with pytest.raises(errors.ModelError):
        await streamed(model)
    with pytest.raises(errors.ModelError):
        model.complete(QUESTION)
    assert asked and all(b"accept-encoding: identity" in request.lower() for request in asked)


def test_a_whole_reply_that_drips_ends_with_the_time_out() -> None:
    """Each byte arrives before the read timeout, but the reply never ends."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        over = threading.Event()

        def drip() -> None:
            client, _ = server.accept()
            with closing(client):
                client.recv(65_536)
                client.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
                while not over.wait(0.05):
                    try:
                        client.sendall(b" ")
                    except OSError:
                        return

        dripping = threading.Thread(target=drip, daemon=True)
        dripping.start()
        model = model_at(f"http://127.0.0.1:{server.getsockname()[1]}/v1", AddressRange.ANYWHERE, timeout=0.5)
        ended: list[object] = []

        def ask() -> None:
            try:
                model.complete(QUESTION)
            except errors.ModelError as error:
                ended.append(error)

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(10)
        over.set()
        dripping.join(5)
    assert isinstance(ended[0], errors.ModelTimeout)


async def test_what_a_server_says_of_a_key_is_logged_without_it_and_of_the_operators_alone(
    scripted_openai: ScriptedOpenAI,
) -> None:
    """An untrusted server may put anything into its error: the prompt, or the key."""
    scripted_openai.respond = lambda request: Failure(401, "no such key: test-key, asked Hello?")
    for address_range, logged in ((AddressRange.CONFIGURED, True), (AddressRange.ANYWHERE, False)):
        model = model_at(scripted_openai.base_url, address_range)
        with pytest.raises(errors.ModelRefused) as streaming:
            await streamed(model)
        with pytest.raises(errors.ModelRefused) as whole:
            model.complete(QUESTION)
        for error in (streaming.value, whole.value):
            assert "test-key" not in error.for_log
            assert ("no such key" in error.for_log) is logged, address_range


def test_a_wait_that_is_no_time_is_none(scripted_openai: ScriptedOpenAI) -> None:
    model = model_at(scripted_openai.base_url, AddressRange.ANYWHERE)
    for header in ("inf", "-inf", "nan", "1e999", "Mon, 01 Jan 99999999999 00:00:00 GMT", "soon"):
        scripted_openai.script(*[Failure(429, headers={"retry-after": header})] * 3)
        with pytest.raises(errors.ModelRateLimited) as limited:
            model.complete(QUESTION)
        assert limited.value.retry_after is None, header
