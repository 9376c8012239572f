"""Cases that share a world: what one case writes is rolled back before the next."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from django.db import transaction

Case = TypeVar("Case")


def rolled_back(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield each case in a transaction that is rolled back after it, rate limits and cached values included."""
    for case in cases:
        with transaction.atomic():
            yield case
            transaction.set_rollback(True)
