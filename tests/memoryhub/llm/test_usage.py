"""The usage of a call, as providers report it, and its cost."""

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from memoryhub.environment import Environment
from memoryhub.llm.metering import NOTHING, Price, Usage, cost_of
from memoryhub.llm.openai_replies import reported_usage

PRICE = Price(Decimal("0.15"), Decimal("0.60"), Decimal("0.075"))


def test_what_it_costs() -> None:
    for usage, price, cost in (
        (Usage(1_000_000, 400_000, 1000), PRICE, "0.1206"),
        (Usage(1_000_000, 400_000, 1000), Price(Decimal("0.15"), Decimal("0.60")), "0.1506"),
        (Usage(1, 0, 0), PRICE, "0.00000015"),
        (Usage(5, 9, 0), PRICE, "0.00000038"),  # more cached than total tokens: no negative price
        (Usage(10, 0, 10), NOTHING, "0"),
        (Usage(), PRICE, "0"),
    ):
        assert cost_of(usage, price) == Decimal(cost), usage


def test_an_unknown_price_is_not_nothing() -> None:
    assert cost_of(Usage(1000, 0, 1000), None) is None


def test_what_a_provider_says() -> None:
    cases: list[tuple[Any, Usage | None]] = [
        ({"prompt_tokens": 12, "completion_tokens": 3}, Usage(12, 0, 3, calls=1)),
        (
            {
                "prompt_tokens": 12,
                "completion_tokens": 8,
                "prompt_tokens_details": {"cached_tokens": 10},
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            Usage(12, 10, 8, 5, calls=1),
        ),
        ({"prompt_tokens": 12, "prompt_cache_hit_tokens": 4}, Usage(12, 4, calls=1)),
        ({"prompt_tokens": 12, "prompt_tokens_details": {"cached_tokens": 99}}, Usage(12, 12, calls=1)),
        ({"prompt_tokens": 10**30, "completion_tokens": -5}, Usage(10**9, calls=1)),
        ({"prompt_tokens": True, "completion_tokens": "9"}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
        ({"prompt_tokens": 3, "prompt_tokens_details": [7]}, Usage(3, calls=1)),
        (None, None),
        ("many", None),
    ]
    for said, usage in cases:
        assert reported_usage(said) == usage, said
        if isinstance(said, dict):
            assert reported_usage(SimpleNamespace(**said)) == usage, "the library's objects read alike"


def test_the_price_of_the_configured_model() -> None:
    for text, price in (
        ("", None),
        ("0.15,0.60", Price(Decimal("0.15"), Decimal("0.60"))),
        ("0.15, 0.075, 0.60", PRICE),
        ("0,0", NOTHING),
    ):
        assert Environment("X_", {"X_PRICE": text}).price("PRICE") == price, text


def test_a_wrong_price_is_refused() -> None:
    for text in ("1", "1,2,3,4", "-1,2", "NaN,1", "1,Infinity", "1,1e9", "a,b"):
        with pytest.raises(ImproperlyConfigured, match="prices of a million"):
            Environment("X_", {"X_PRICE": text}).price("PRICE")
