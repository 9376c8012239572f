"""The database of a test with row security on, as it is with MEMORYHUB_ROW_SECURITY: role, policies, backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connections

from memoryhub.database import acting
from workspaces.isolation import policies

ENGINE = "memoryhub.database.guarded"


@contextmanager
def row_security() -> Iterator[None]:
    """For tests that commit. What they do themselves is the system's."""
    before, was_on = connections.settings["default"]["ENGINE"], settings.ROW_SECURITY
    policies.enable()
    use_engine(ENGINE)
    settings.ROW_SECURITY = True
    try:
        with acting.as_system():
            yield
    finally:
        settings.ROW_SECURITY = was_on
        use_engine(before)
        if before != ENGINE:  # else it is on for the whole run (make test-isolated)
            policies.disable()


def use_engine(engine: str) -> None:
    """From the next statement on, in this thread and in those that begin."""
    connections.settings["default"]["ENGINE"] = engine
    connections["default"].close()
    del connections["default"]
