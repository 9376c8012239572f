"""HTTP clients of model servers: what they share, and what stays separate."""

import ssl

import pytest

from memoryhub.llm.addresses import AddressRange
from memoryhub.llm.http_clients import Endpoint, async_client


def context_of(base_url: str) -> ssl.SSLContext:
    made = async_client(Endpoint(base_url, "", "", AddressRange.PUBLIC))
    context: ssl.SSLContext = made._transport._inner._pool._ssl_context  # type: ignore[attr-defined]
    return context


def test_authorities_are_loaded_once_and_each_connection_is_held_to_its_own_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = context_of("https://one.example/hooks")
    monkeypatch.setattr(
        "memoryhub.llm.http_clients.httpx2.create_ssl_context", lambda: pytest.fail("loaded once more")
    )
    assert context_of("https://two.example/hooks") is one
    assert (one.check_hostname, one.verify_mode) == (True, ssl.CERT_REQUIRED) and one.get_ca_certs()
    plain = context_of("http://one.example/hooks")
    assert plain is not one and not plain.get_ca_certs(), (
        "nor is anything trusted where nothing is asked by TLS"
    )
