"""Django's ASGI handler, with one change of threads for a request instead of five.

Every middleware and nearly every view here is synchronous. Django's own handler goes to a thread for the middleware,
back to the event loop for the view's turn, to the thread again for the view, and once more each for the signals at
start and end; and the thread is a new one for every request. This one runs a request in one of a few kept threads, from
the first signal to the last. Measured: docs/operations.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.core.signals import request_started
from django.db import close_old_connections, connection
from django.http import FileResponse, HttpResponseBase
from django.urls import set_script_prefix

from memoryhub.database.failures import DiskFull, trouble_of
from memoryhub.errors import Unavailable
from memoryhub.http.crowd import Crowd, Overloaded, counted, refused
from memoryhub.http.from_replicas import READING, Body, answered_from_replicas, is_worth_another

# Made as they are needed. Far more than can work at once: some only wait for a model (an answer that is not streamed).
THREADS = 200


class Incoming:
    """What a client sends. Called as ASGI's ``receive``."""

    def __init__(self, receive: Any) -> None:
        self._receive, self._has_more = receive, True

    async def __call__(self) -> Any:
        message = await self._receive()
        self._has_more = message["type"] == "http.request" and message.get("more_body", False)
        return message

    async def read_rest(self) -> None:
        """Of a body that cannot be kept: most clients read no answer before they have sent all of it."""
        while self._has_more:
            await self()


class OneThreadHandler(ASGIHandler):
    """A request's middleware and view run in one thread; what streams goes on in the event loop.

    What only reads is answered once more when its connection to the database was cut under it: a server that is
    restarted costs readers some time and no error. With replicas one answers what a primary that is away cannot.
    """

    def __init__(self) -> None:
        BaseHandler.__init__(self)  # not ASGIHandler's, which would load the middleware to be awaited
        self.load_middleware(is_async=False)
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="request")
        self.crowd = Crowd(settings.REQUESTS_AT_ONCE)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise ValueError(f"This application speaks HTTP, not {scope['type']}.")
        if self.crowd.is_full(scope["path"]):  # before a body is read: it may be long, and slow
            await self.send_response(self._refuse(scope), send)
            return
        incoming = Incoming(receive)
        try:
            body = await self.read_body(incoming)
        except RequestAborted:
            return
        except OSError as error:  # a long body is written to a temporary file
            if trouble_of(error) is None:
                raise
            await incoming.read_rest()
            await self.send_response(self._refuse(scope, DiskFull), send)
            return
        with body:
            if not self.crowd.enter(scope["path"]):
                await self.send_response(self._refuse(scope), send)
                return
            answer = sync_to_async(self._answer, thread_sensitive=False, executor=self.threads)
            with counted(self.crowd):
                response = await answer(scope, Body(body))
            if response.streaming:
                await self._stream(response, receive, send)
            else:
                await self.send_response(response, send)

    def _answer(self, scope: Any, body: Any) -> HttpResponseBase:
        """The whole of the request. A response that is complete gives back here what it held."""
        set_script_prefix(get_script_prefix(scope))
        request_started.send(sender=self.__class__, scope=scope)
        request, response = self._respond(scope, body)
        if (
            response.status_code >= 500
            and request is not None
            and (is_worth_another(request) or (request.method in READING and _was_cut()))
        ):
            connection.close()
            body.seek(0)
            request, response = self._respond(scope, body)
        response._handler_class = self.__class__
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        if response.streaming:
            close_old_connections()  # the stream works in threads of its own
        else:
            response.close()  # the signal that the request is finished among it
        return response

    def _refuse(self, scope: Any, why: Callable[[], Unavailable] = Overloaded) -> Any:
        request, malformed = self.create_request(scope, BytesIO())
        return malformed if request is None else refused(request, why)

    def _respond(self, scope: Any, body: Any) -> tuple[Any, Any]:
        request, refused = self.create_request(scope, body)
        if request is None:
            return None, refused
        with answered_from_replicas(request):
            return request, self.get_response(request)

    async def _stream(self, response: HttpResponseBase, receive: Any, send: Any) -> None:
        """Send until the response or the client ends. Threads that the response uses are one and the same for it."""
        async with ThreadSensitiveContext():
            sending = asyncio.create_task(self.send_response(response, send))
            leaving = asyncio.create_task(self.listen_for_disconnect(receive))
            try:
                await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (leaving, sending):
                    task.cancel()
                try:
                    with suppress(RequestAborted, asyncio.CancelledError):
                        await leaving
                    with suppress(asyncio.CancelledError):
                        await sending
                finally:
                    await sync_to_async(response.close)()


def _was_cut() -> bool:
    return connection.connection is not None and bool(connection.connection.closed)
