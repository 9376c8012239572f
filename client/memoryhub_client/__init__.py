"""Typed clients for MemoryHub: ``MemoryHub`` is blocking, ``AsyncMemoryHub`` asynchronous."""

from memoryhub_client.calls import Calls
from memoryhub_client.errors import ApiError, ConnectionLost, MemoryHubError
from memoryhub_client.running import Asynchronous, Blocking

__all__ = ["ApiError", "AsyncMemoryHub", "ConnectionLost", "MemoryHub", "MemoryHubError"]


class MemoryHub(Calls, Blocking):
    """Blocking client: ``MemoryHub("http://127.0.0.1:8000", key="mh_…")``."""


class AsyncMemoryHub(Calls, Asynchronous):
    """Asynchronous client with the same methods. Calls are awaited; lists and streams are read with ``async for``."""
