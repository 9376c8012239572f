"""A webhook receiver on its own port, which verifies signatures by the specification's own library."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook


@dataclass
class Told:
    id: str
    body: bytes
    headers: dict[str, str]

    def verified(self, secret: str) -> dict[str, Any]:
        """Return the body. Raises if it is not signed with this secret."""
        said: dict[str, Any] = Webhook(secret).verify(self.body, self.headers)
        assert said == json.loads(self.body)
        return said


@dataclass
class Receiver:
    """Records requests. ``answers``: statuses for the next requests, with headers; 204 when they are used up."""

    url: str
    told: list[Told] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.told.append(Told(headers["webhook-id"], body, headers))
            code, more = receiver.answers.pop(0) if receiver.answers else (204, {})
            self.send_response(code)
            for name, value in {"content-length": "0", **more}.items():
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_port}/hook?of=us")
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
