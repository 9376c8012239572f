"""Cloud metadata services, which return the machine's credentials, are blocked for every connection."""

import ipaddress
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from threading import Thread
from typing import Any

import httpx2
import pytest

from memoryhub.llm import errors
from memoryhub.llm.addresses import (
    METADATA,
    METADATA_NAMES,
    AddressRange,
    is_metadata,
    is_metadata_host,
    may_reach,
)
from memoryhub.llm.base import Capabilities, Message
from memoryhub.llm.http_clients import Endpoint, async_client
from memoryhub.llm.openai_compatible import OpenAIChatModel, OpenAIEmbedder
from tests.fakes.openai_server import Failure, ScriptedOpenAI

QUESTION = [Message("user", "Hello?")]
CAPABILITIES = Capabilities(has_tools=False, can_extract=True, context_tokens=4096, local=False)
LARGE_CLOUDS = [
    "169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.0.23", "169.254.42.42", "168.63.129.16",
    "192.0.0.192", "100.100.100.200", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42",
    "fd00:c1::a9fe:a9fe", "fe80::a9fe:a9fe",
]  # fmt: skip
CARRIED = [
    "::ffff:169.254.169.254", "::ffff:168.63.129.16", "::169.254.169.254", "::ffff:0:169.254.169.254",
    "64:ff9b::a9fe:a9fe", "64:ff9b::192.0.0.192", "64:ff9b:1::100.100.100.200", "2002:a9fe:a9fe::", "2002:a83f:8110::1",
    "2001:0:4136:e378:8000:63bf:5601:5601",  # Teredo: the address's bits inverted
    "fe80::5efe:a9fe:a9fe", "fe80::a9fe:a9fe%eth0", "2001:db8:a9fe:a9fe::",
    "2001:db8:a8:3f81:10::", "2001:db8:122:a83f:81:1000::", "2001:db8:122:3a8:3f:8110::",
    "2001:db8:122:344:a8:3f81:1000::", "2001:db8:122:344::168.63.129.16",  # RFC 6052, prefixes of 32 to 96 bits
]  # fmt: skip
FULL_WIDTH = str.maketrans({chr(0x21 + n): chr(0xFF01 + n) for n in range(94)} | {".": "."})
DRESSED = [
    "169.254.169.254.", "169.254.169.254...", "169.254.43518", "169.16689662", "2852039166", "0xa9fea9fe",
    "0xA9.0xFE.0xA9.0xFE", "0251.0376.0251.0376", "0x00000000a9fea9fe", "169.254.169%2e254",
    "%31%36%39.254.169.254", "169。254。169。254",
    "169.254.169.254".translate(FULL_WIDTH), "①⑥⑨.254.169.254", "0xa8.63.129.16", "2822734096", "3221225664",
    "metadata.google.internal", "METADATA.Google.Internal.", "metadata", "metadata.goog", "instance-data.ec2.internal",
    "metadata.google.internal".translate(FULL_WIDTH), "metadata。google。internal", "metadata%2egoogle.internal",
]  # fmt: skip
OTHERS = [
    "8.8.8.8", "10.0.0.1", "127.0.0.1", "192.168.1.20", "100.64.0.1", "168.63.129.17", "192.0.0.193", "fd00:ec2::255",
    "fd12:3456::1", "2606:4700::1111", "64:ff9b::808:808", "::1", "169.253.169.254", "2001:db8:122:344::8.8.8.8",
]  # fmt: skip


def test_the_large_clouds_are_all_there() -> None:
    assert {ipaddress.ip_address(text) for text in LARGE_CLOUDS} == METADATA


def test_nobody_reaches_them_in_whatever_carries_them() -> None:
    for address_range in AddressRange:
        for text in LARGE_CLOUDS + CARRIED:
            assert is_metadata(ipaddress.ip_address(text)), (text, address_range)
            assert not may_reach(ipaddress.ip_address(text), address_range), (text, address_range)


def test_they_are_seen_in_any_dress() -> None:
    for host in DRESSED:
        assert is_metadata_host(host), host


def test_neighbours_of_theirs_are_none() -> None:
    for text in OTHERS:
        assert not is_metadata_host(text), text
        assert may_reach(ipaddress.ip_address(text), AddressRange.ANYWHERE), text


def test_a_name_like_theirs_is_none() -> None:
    for host in ["api.openai.com", "metadata.example.org", "my-metadata", "localhost", "", "."]:
        assert not is_metadata_host(host), host
        assert "" not in METADATA_NAMES, host


def model_at(base_url: str, address_range: AddressRange) -> OpenAIChatModel:
    endpoint = Endpoint(base_url, "test-key", "a-model", address_range)
    return OpenAIChatModel(lambda: endpoint, CAPABILITIES, timeout=5.0)


async def refused(base_url: str, address_range: AddressRange) -> None:
    model = model_at(base_url, address_range)
    with pytest.raises(errors.ModelAddressRefused):
        model.complete(QUESTION)
    with pytest.raises(errors.ModelAddressRefused):
        assert [delta async for delta in model.stream(QUESTION)]


async def test_every_kind_of_connection_refuses_before_it_connects() -> None:
    for address_range in AddressRange:
        for host in ("169.254.169.254", "2852039166", "[::ffff:a9fe:a9fe]", "metadata.google.internal"):
            await refused(f"http://{host}/v1", address_range)


def test_the_embedder_of_the_environment_refuses_too() -> None:
    with pytest.raises(errors.EmbedderError):
        OpenAIEmbedder(Endpoint("http://168.63.129.16/v1", "", "a-model")).embed(["tea"])


async def test_a_redirect_to_one_is_not_followed(scripted_openai: ScriptedOpenAI) -> None:
    """An address the operator configured, the only kind that may redirect."""
    locations = (
        "http://169.254.169.254/latest/meta-data/", "http://2852039166/", "//168.63.129.16/", "http://metadata.google.internal./",
    )  # fmt: skip
    for status, location in product((301, 302, 303, 307, 308), locations):
        scripted_openai.requests.clear()
        moved = Failure(status, headers={"location": location})
        scripted_openai.script(moved, moved)
        await refused(scripted_openai.base_url, AddressRange.CONFIGURED)
        assert len(scripted_openai.requests) == 2, (status, location)


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Run a proxy that redirects to a metadata service. Yield the list of its requests."""
    asked: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(302)
            self.send_header("Location", "http://metadata.google.internal/computeMetadata/v1/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{server.server_port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    yield asked
    server.shutdown()
    server.server_close()


async def test_no_proxy_is_asked_for_one(proxied: list[str]) -> None:
    """A proxy resolves names and connects itself, so the URL is checked before."""
    async with async_client(Endpoint("http://model.example/v1", "", "a-model")) as client:
        for host in ("169.254.169.254", "0xa9fea9fe", "metadata.google.internal"):
            with pytest.raises(httpx2.ConnectError, match="metadata"):
                await client.get(f"http://{host}/latest/")
        assert proxied == []
        with pytest.raises(httpx2.ConnectError, match="metadata"):
            await client.get("http://model.example/v1/models")
    assert proxied == ["http://model.example/v1/models"], "the redirect was refused, too"
