"""People who wrote lately, or were told of what others wrote: they read from the primary until every replica has it."""

from __future__ import annotations

import logging

from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, InterfaceError

logger = logging.getLogger(__name__)
MARGIN = 3.0  # seconds beside a replica's lag: the clocks of hosts differ, and its state is kept for some


def pin_to_primary(person: int) -> None:
    """Have this person read from the primary for as long as a replica may lack what there is now."""
    if not settings.REPLICAS:
        return
    try:
        cache.set(_key(person), True, settings.REPLICA_LAG + MARGIN)
    except (DatabaseError, InterfaceError) as error:  # the write itself was acknowledged
        logger.warning("A person was not pinned: %s", type(error.__cause__ or error).__name__)


def is_pinned(person: int) -> bool:
    """One query of the primary."""
    return cache.get(_key(person)) is not None


def _key(person: int) -> str:
    return f"pinned:{person}"
