"""``/mcp`` over streamable HTTP: each request by itself, so that any process answers it, in whole JSON."""

from __future__ import annotations

import asyncio
from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from rest_framework.request import Request

from chat.doors.mcp.server import make_server
from chat.doors.mcp.session import asking
from workspaces.models import ApiKey
from workspaces.rest.keys import KeyAuthentication, KeyedView

PASSED = ("content-type", "accept", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id")


class Mcp(KeyedView):
    """Nothing is kept between requests, so there is no stream to open (GET) and no session to end (DELETE): 405."""

    authentication_classes = [KeyAuthentication]
    only_reads = True  # what a key that only reads must not do, its tools refuse
    schema = None

    def post(self, request: Request) -> HttpResponse:
        assert isinstance(request.auth, ApiKey), "nobody comes in without one"
        token = asking.set(request.auth)
        try:
            return async_to_sync(_answer)(request._request)
        finally:
            asking.reset(token)


async def _answer(request: HttpRequest) -> HttpResponse:
    """What the SDK says to this request, of which it sees the body and the headers of the protocol."""
    manager = StreamableHTTPSessionManager(make_server(), json_response=True, stateless=True)
    came, sent = iter([{"type": "http.request", "body": request.body, "more_body": False}]), list[Any]()

    async def receive() -> Any:
        message = next(came, None)
        return await asyncio.Future() if message is None else message  # its client stays until it is answered

    async def send(message: Any) -> None:
        sent.append(message)

    async with manager.run():
        await manager.handle_request(_scope(request), receive, send)
    status = next(each["status"] for each in sent if each["type"] == "http.response.start")
    body = b"".join(each.get("body", b"") for each in sent if each["type"] == "http.response.body")
    return HttpResponse(body, status=status, content_type="application/json")


def _scope(request: HttpRequest) -> dict[str, Any]:
    given = {name.lower(): value for name, value in request.headers.items()}
    headers = [(name.encode(), given[name].encode("latin-1", "replace")) for name in PASSED if name in given]
    return {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": headers,
        "http_version": "1.1",
        "scheme": "http",
    }
