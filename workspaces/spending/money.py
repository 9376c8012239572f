"""Amounts as people read them."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from django.conf import settings
from django.utils import formats

SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "CN¥", "INR": "₹", "BRL": "R$"}


def amount(money: Decimal) -> str:
    """$12.30; of less than a few cents two figures that count: $0.0041. Other currencies by their letters: CHF 3.20."""
    is_plain = money == 0 or abs(money) >= Decimal("0.1")
    places = 2 if is_plain else min(8, 1 - money.adjusted())
    rounded = money.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    number = formats.number_format(rounded, decimal_pos=places, use_l10n=True, force_grouping=True)
    sign = SIGNS.get(settings.CURRENCY)
    return f"{sign}{number}" if sign else f"{settings.CURRENCY}\N{NO-BREAK SPACE}{number}"
