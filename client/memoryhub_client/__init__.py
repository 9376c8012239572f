"""A typed client for MemoryHub: ``MemoryHub`` for programs that wait, ``AsyncMemoryHub`` for asynchronous ones."""

from memoryhub_client.calls import Calls
from memoryhub_client.errors import ApiError, ConnectionLost, MemoryHubError
from memoryhub_client.running import Asynchronous, Blocking

__all__ = ["ApiError", "AsyncMemoryHub", "ConnectionLost", "MemoryHub", "MemoryHubError"]


class MemoryHub(Calls, Blocking):
    """``MemoryHub("http://127.0.0.1:8000", key="mh_…")``: every call waits for its answer."""


class AsyncMemoryHub(Calls, Asynchronous):
    """The same calls, awaited; lists and streams are ``async for``."""
