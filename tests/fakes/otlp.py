"""A fake collector of OpenTelemetry traces: an HTTP server that parses the protocol."""

import gzip
import threading
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    name: str
    id: bytes
    parent: bytes
    trace: str
    kind: int
    failed: bool
    attributes: dict[str, Any]
    resource: dict[str, Any]
    events: int


class Receiver:
    """Collects what is sent to ``url``. ``raw``: each body as received, for checking what must not be in it."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self.spans: list[Span] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                assert self.path == "/v1/traces", self.path
                receiver.take(body)
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def take(self, body: bytes) -> None:
        self.raw.append(body)
        for part in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _read(part.resource.attributes)
            for scope in part.scope_spans:
                for each in scope.spans:
                    self.spans.append(
                        Span(
                            each.name, each.span_id, each.parent_span_id, each.trace_id.hex(), each.kind,
                            each.status.code == each.status.STATUS_CODE_ERROR,
                            _read(each.attributes), resource, len(each.events),
                        )
                    )  # fmt: skip

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def tree_of(self, name: str) -> list[Span]:
        """Return all spans of the newest trace with a span of this name, which must form one tree."""
        trace = self.named(name)[-1].trace
        spans = [span for span in self.spans if span.trace == trace]
        ids = Counter(span.id for span in spans)
        assert max(ids.values()) == 1
        outside = [span.name for span in spans if span.parent not in ids]
        assert len(outside) == 1, outside
        return spans

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _read(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
