"""A replica that shares the test's connection, and so sees what its transaction wrote."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections
from django.test import override_settings

ALIAS = "replica 1"


@contextmanager
def shared_replica() -> Iterator[Any]:
    usual = connections["default"]
    usual.ensure_connection()
    found = usual.copy(ALIAS)
    found.connection, found.in_atomic_block, found.autocommit = usual.connection, True, False
    connections[ALIAS] = found
    try:
        with override_settings(REPLICAS=[ALIAS], DATABASE_ROUTERS=["memoryhub.database.replicas.Router"]):
            yield found
    finally:
        del connections[ALIAS]
