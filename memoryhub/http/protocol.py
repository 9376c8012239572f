"""HTTP as uvicorn speaks it, but for heads of requests that trickle in or do not end: uvicorn itself waits for ever."""

from __future__ import annotations

import asyncio

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD = 65_536  # bytes of a request's line and headers, beside what one reading of the socket brings


class ImpatientProtocol(HttpToolsProtocol):
    """Hangs up on who has not sent a whole head in ``BODY_SECONDS``, be it the first of a connection or a later one.

    A head longer than ``MOST_HEAD`` is refused: the parser would collect it.
    """

    _waiting: asyncio.TimerHandle | None = None
    _in_head, _head = True, 0  # whether a head is coming, and its bytes so far

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        began_in_head = self._in_head
        super().data_received(data)
        if began_in_head and self._in_head:
            self._head += len(data)
            if self._head > MOST_HEAD:
                self.send_400_response(f"The request's head is longer than {MOST_HEAD} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head = True, 0
        if self._waiting is None:  # a later one of this connection
            self._wait()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(settings.BODY_SECONDS, self._hang_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _hang_up(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self.transport.close()
