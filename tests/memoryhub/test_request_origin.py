"""The client's address: which headers are trusted, and how little of it is stored."""

from typing import Any

from django.test import RequestFactory

from memoryhub.monitoring.request_origin import client_address, network_of


def test_forwarded_addresses_count_as_far_as_proxies_are_trusted(settings: Any) -> None:
    for proxies, forwarded, address in (
        (0, "203.0.113.9", "198.51.100.7"),
        (1, "203.0.113.9", "203.0.113.9"),
        (1, "1.1.1.1, 203.0.113.9", "203.0.113.9"),  # the client wrote the left one
        (2, "1.1.1.1, 203.0.113.9, 10.0.0.1", "203.0.113.9"),
        (2, "203.0.113.9", "198.51.100.7"),  # it bypassed the outer proxy
        (1, "", "198.51.100.7"),
        (1, "nonsense", ""),
        (1, "203.0.113.9:4711", "203.0.113.9"),
        (1, "[2001:db8:1:2::9]:4711", "2001:db8:1:2::9"),
        (1, "::ffff:203.0.113.9", "203.0.113.9"),
        (1, "fe80::1%eth0", "fe80::1"),
    ):
        settings.TRUSTED_PROXIES = proxies
        headers = {"x-forwarded-for": forwarded} if forwarded else {}
        request = RequestFactory().get("/", REMOTE_ADDR="198.51.100.7", headers=headers)
        assert client_address(request) == address


def test_the_last_part_of_an_address_is_not_kept() -> None:
    for address, network in (
        ("203.0.113.9", "203.0.113.0/24"),
        ("2001:db8:1:2::9", "2001:db8:1::/48"),
        ("", ""),
    ):
        assert network_of(address) == network
