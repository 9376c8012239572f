"""``/mcp`` over streamable HTTP: each request by itself, so that any process answers it, in whole JSON."""

from __future__ import annotations

from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from rest_framework.request import Request

from chat.doors.mcp.server import make_server
from chat.doors.mcp.session import asking
from memoryhub.http.asgi_scope import receiver_of, scope_of
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
    sent = list[Any]()

    async def send(message: Any) -> None:
        sent.append(message)

    async with manager.run():
        await manager.handle_request(scope_of(request, PASSED), receiver_of(request), send)
    status = next(each["status"] for each in sent if each["type"] == "http.response.start")
    body = b"".join(each.get("body", b"") for each in sent if each["type"] == "http.response.body")
    return HttpResponse(body, status=status, content_type="application/json")
