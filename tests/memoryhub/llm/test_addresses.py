"""Addresses that a connection may reach: checked before connecting, and connected to without another lookup."""

import ipaddress
import socket
from typing import Any

import pytest

from memoryhub.llm import errors
from memoryhub.llm.addresses import AddressRange, is_public, literal, may_reach
from memoryhub.llm.base import Capabilities, Message
from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.openai_compatible import OpenAIChatModel
from tests.fakes.openai_server import Failure, ScriptedOpenAI

QUESTION = [Message("user", "Hello?")]
CAPABILITIES = Capabilities(has_tools=False, can_extract=True, context_tokens=4096, local=False)

INTERNAL = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1",
    "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a00:1::", "2001:db8::1",
    "192.0.2.1", "198.18.0.1", "240.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1", "fec0::1", "64:ff9b:1::7f00:1",
    "1000::1", "4000::1",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]


def test_what_lies_inside_a_network_is_not_public() -> None:
    for text in INTERNAL:
        address = ipaddress.ip_address(text)
        assert not is_public(address), text
        assert not may_reach(address, AddressRange.PUBLIC), text
        assert may_reach(address, AddressRange.ANYWHERE) and may_reach(address, AddressRange.INTERNAL), text


def test_what_is_on_the_internet_is() -> None:
    for text in PUBLIC:
        address = ipaddress.ip_address(text)
        assert may_reach(address, AddressRange.PUBLIC) and may_reach(address, AddressRange.ANYWHERE), text
        assert not may_reach(address, AddressRange.INTERNAL), text


def test_an_address_in_any_dress_is_seen() -> None:
    for text in ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "::1"]:
        found = literal(text)
        assert found is not None and not is_public(found), text


def test_a_name_is_no_address() -> None:
    for text in ["api.example.org", "localhost", "", "a b", "ünïcode.example"]:
        assert literal(text) is None, text


def model_at(server: ScriptedOpenAI, address_range: AddressRange, host: str = "127.0.0.1") -> OpenAIChatModel:
    endpoint = Endpoint(f"http://{host}:{server.port}/v1", server.api_key, server.model, address_range)
    return OpenAIChatModel(lambda: endpoint, CAPABILITIES, timeout=5.0)


async def streamed(model: OpenAIChatModel) -> str:
    return "".join([delta.text async for delta in model.stream(QUESTION)])


async def test_who_may_reach_an_internal_address_does(scripted_openai: ScriptedOpenAI) -> None:
    for address_range in (AddressRange.CONFIGURED, AddressRange.ANYWHERE, AddressRange.INTERNAL):
        for host in ("127.0.0.1", "localhost"):
            scripted_openai.requests.clear()
            model = model_at(scripted_openai, address_range, host)
            assert await streamed(model) == "Hello from the script.", (address_range, host)
            assert model.complete(QUESTION) == "Hello from the script."
            hosts = {request.headers["host"] for request in scripted_openai.requests}
            assert hosts == {f"{host}:{scripted_openai.port}"}, address_range


async def test_who_may_not_never_connects(scripted_openai: ScriptedOpenAI) -> None:
    for host in ("127.0.0.1", "localhost", "2130706433", "127.1"):
        model = model_at(scripted_openai, AddressRange.PUBLIC, host)
        with pytest.raises(errors.ModelAddressRefused):
            await streamed(model)
        with pytest.raises(errors.ModelAddressRefused):
            model.complete(QUESTION)
        assert scripted_openai.connections == 0, host


async def test_a_name_that_changes_its_mind_leads_nowhere_else(
    scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the checked address is the one connected to, and each connection checks again."""
    real, asked = socket.getaddrinfo, []

    def rebinding(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host in ("rebinding.example", b"rebinding.example"):
            asked.append(host)
            return real("192.0.2.1" if len(asked) % 2 else "127.0.0.1", *args, **kwargs)
        return real(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    model = model_at(scripted_openai, AddressRange.PUBLIC, "rebinding.example")
    for _ in range(3):
        with pytest.raises(errors.ModelAddressRefused):
            await streamed(model)
    assert len(asked) == 3, "one look, and no second one by whoever connects"
    assert scripted_openai.connections == 0


async def test_of_several_addresses_the_allowed_ones_are_tried_in_turn(
    scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the first allowed one does not answer (IPv6 without a route), the next one is tried."""
    real = socket.getaddrinfo

    def several(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host in ("several.example", b"several.example"):
            return [(*each[:4], (address, port)) for address in ("8.8.8.8", "127.9.9.9", "127.0.0.1")
                    for each in real("127.0.0.1", port, *args, **kwargs)]  # fmt: skip
        return real(host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", several)
    model = model_at(scripted_openai, AddressRange.INTERNAL, "several.example")
    assert await streamed(model) == "Hello from the script."
    assert model.complete(QUESTION) == "Hello from the script."


async def test_a_redirect_is_not_followed(scripted_openai: ScriptedOpenAI) -> None:
    cases = [(AddressRange.ANYWHERE, status) for status in (301, 302, 303, 307, 308)]
    for address_range, status in [*cases, (AddressRange.INTERNAL, 302)]:
        scripted_openai.requests.clear()
        moved = Failure(status, headers={"location": f"{scripted_openai.base_url}/elsewhere"})
        scripted_openai.script(moved, moved)
        model = model_at(scripted_openai, address_range)
        with pytest.raises(errors.ModelMoved):
            await streamed(model)
        with pytest.raises(errors.ModelMoved):
            model.complete(QUESTION)
        assert len(scripted_openai.requests) == 2, (address_range, status)


async def test_a_name_that_nobody_knows_is_out_of_reach(scripted_openai: ScriptedOpenAI) -> None:
    model = model_at(scripted_openai, AddressRange.PUBLIC, "nobody.invalid")
    with pytest.raises(errors.ModelUnavailable):
        await streamed(model)
    with pytest.raises(errors.ModelUnavailable):
        model.complete(QUESTION)
