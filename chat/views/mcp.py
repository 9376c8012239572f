"""View of ``/mcp`` with the transport “streamable HTTP”, stateless, so that any process can answer a request.

The SDK is imported at the first request, because the import takes a second.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from memoryhub.http.asgi_requests import receiver_of, scope_of
from workspaces.accounts.keys import is_still_valid
from workspaces.api.base import KeyAuthentication, KeyedView
from workspaces.models import ApiKey
from workspaces.views.event_streams import ANSWERS, EventStream, StreamSlot

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PASSED = ("content-type", "accept", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id")
RECHECK_SECONDS = 2.0  # interval of the check for a revoked key
EVENTS = "text/event-stream"


class Mcp(KeyedView):
    """The MCP endpoint. There is no stream to open (GET) or session to end (DELETE), so both return 405."""

    authentication_classes = [KeyAuthentication]
    any_scope = True  # the tools themselves refuse writes with a read-only key
    schema = None

    def post(self, request: Request) -> HttpResponseBase:
        from chat.programs.mcp_tools import asking

        key, django_request = request.auth, request._request
        assert isinstance(key, ApiKey), "nobody comes in without one"
        if _wants_progress(django_request):
            return EventStream(_events(django_request, key), slot=StreamSlot(self.person, of=ANSWERS))
        token = asking.set(key)
        try:
            return async_to_sync(_answer)(django_request)
        finally:
            asking.reset(token)


def _wants_progress(request: HttpRequest) -> bool:
    if EVENTS not in request.headers.get("Accept", ""):
        return False
    try:
        params = json.loads(request.body)["params"]
        return params["_meta"].get("progressToken") is not None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False


def _manager(*, json_response: bool) -> StreamableHTTPSessionManager:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from chat.programs.mcp_server import make_server

    return StreamableHTTPSessionManager(make_server(), json_response=json_response, stateless=True)


async def _answer(request: HttpRequest) -> HttpResponse:
    """Return the response of the MCP SDK, which receives the request's body and its MCP headers."""
    manager = _manager(json_response=True)
    sent = list[Any]()

    async def send(message: Any) -> None:
        sent.append(message)

    async with manager.run():
        await manager.handle_request(scope_of(request, PASSED), receiver_of(request), send)
    status = next(each["status"] for each in sent if each["type"] == "http.response.start")
    body = b"".join(each.get("body", b"") for each in sent if each["type"] == "http.response.body")
    return HttpResponse(body, status=status, content_type="application/json")


async def _events(request: HttpRequest, key: ApiKey) -> AsyncGenerator[str, None]:
    """Yield the response as events. A disconnect or a revoked key cancels the call."""
    queue: asyncio.Queue[str | None] = asyncio.Queue()
    running = asyncio.create_task(_run(request, key, queue))
    recheck_at = monotonic() + RECHECK_SECONDS
    try:
        while True:
            try:
                event = await asyncio.wait_for(queue.get(), max(0, recheck_at - monotonic()))
            except TimeoutError:
                event = ""
            if event is None:
                return
            if monotonic() >= recheck_at:  # checked even if events never stop
                if not await sync_to_async(is_still_valid)(key, now=timezone.now()):
                    return
                recheck_at = monotonic() + RECHECK_SECONDS
            if event:
                yield event
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await sync_to_async(lambda: connection.close())()


async def _run(request: HttpRequest, key: ApiKey, queue: asyncio.Queue[str | None]) -> None:
    from chat.programs.mcp_tools import asking

    asking.set(key)
    manager = _manager(json_response=False)
    is_stream = True

    async def send(message: Any) -> None:
        nonlocal is_stream
        if message["type"] == "http.response.start":
            is_stream = dict(message["headers"]).get(b"content-type", b"").startswith(EVENTS.encode())
        elif text := message.get("body", b"").decode():
            queue.put_nowait(text if is_stream else f"event: message\ndata: {text}\n\n")

    try:
        async with manager.run():
            await manager.handle_request(scope_of(request, PASSED), receiver_of(request), send)
    finally:
        queue.put_nowait(None)
