"""A test with row security on, as it is with MEMORYHUB_ROW_SECURITY: role, policies, backend, who asks in requests."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from unittest.mock import patch

from django.conf import settings
from django.db import connections
from django.test import override_settings

from chat.answers import threads
from memoryhub.database import acting
from workspaces.isolation import policies

ENGINE = "memoryhub.database.guarded"


@contextmanager
def row_security() -> Iterator[None]:
    """For tests that commit. What they do themselves is the system's."""
    before = connections.settings["default"]["ENGINE"]
    policies.enable()
    use_engine(ENGINE)
    try:
        with (
            override_settings(ROW_SECURITY=True, MIDDLEWARE=settings.GUARDED_MIDDLEWARE),
            _new_threads(),
            acting.as_system(),
        ):
            yield
    finally:
        use_engine(before)
        if before != ENGINE:  # else it is on for the whole run (make test-isolated)
            policies.disable()


@contextmanager
def _new_threads() -> Iterator[None]:
    """Those of turns that are there already keep their connections, which tell nobody who asks."""
    with (
        patch.object(threads, "_threads", ThreadPoolExecutor(4)),
        patch.object(threads, "_tool_threads", ThreadPoolExecutor(4)),
    ):
        yield


def use_engine(engine: str) -> None:
    """From the next statement on, in this thread and in those that begin."""
    connections.settings["default"]["ENGINE"] = engine
    connections["default"].close()
    del connections["default"]
