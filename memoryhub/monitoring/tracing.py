"""OpenTelemetry traces of what requests, turns and jobs are made of, by OpenTelemetry's own environment variables.

Off, at the price of a comparison, unless an endpoint for OTLP is set and requirements/tracing.txt is installed. Spans
hold counts, kinds, outcomes and names of models, never what anybody said: an error is its class alone. The provider is
no global one, by which libraries (mcp among them) would send spans of their own making.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from functools import wraps
from importlib.util import find_spec
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Attributes = Mapping[str, str | int | float | bool]
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PARENT = "traceparent"  # W3C's name for what continues a trace elsewhere
NOT_INSTALLED = (
    "OTEL_EXPORTER_OTLP_ENDPOINT is set, but what sends traces is not installed: run `make install-tracing`."
)


def is_wanted(environment: Mapping[str, str] = os.environ) -> bool:
    said = environment.get("OTEL_TRACES_EXPORTER", "otlp").lower()
    off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or said == "none"
    return not off and any(environment.get(name) for name in ENDPOINTS)


def is_installed() -> bool:
    try:
        return all(find_spec(f"opentelemetry.{part}") for part in ("sdk.trace", "exporter.otlp.proto.http"))
    except ModuleNotFoundError:  # of what these are a part of
        return False


class Span:
    """Span of a piece of work that is reported to no collector; ``span`` returns it where traces are off."""

    def __enter__(self) -> Span:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, way: TracebackType | None
    ) -> None:
        pass

    def note(self, attributes: Attributes, *, name: str = "", failed: bool = False) -> None:
        """Add attributes known by now: counts, kinds and ids of kind. ``name``: a better one for the span."""


class _Exported(Span):
    """Sent when it ends. What begins inside it, in this context, is a part of it, unless it is ``alone``."""

    def __init__(self, inner: Any, *, alone: bool) -> None:
        self._inner, self._alone, self._token = inner, alone, None

    def __enter__(self) -> Span:
        if not self._alone:
            self._token = _context().attach(_trace().set_span_in_context(self._inner))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, way: TracebackType | None
    ) -> None:
        if kind is not None and isinstance(error, Exception):  # not what was only cancelled
            self.note({"error.type": kind.__qualname__}, failed=True)
        if self._token is not None:
            _context().detach(self._token)
        self._inner.end()

    def note(self, attributes: Attributes, *, name: str = "", failed: bool = False) -> None:
        self._inner.set_attributes(dict(attributes))
        if name:
            self._inner.update_name(name)
        if failed:
            self._inner.set_status(_trace().StatusCode.ERROR)


NOTHING = Span()
_on = is_wanted() and is_installed()
_made: tuple[int, Any] | None = None  # for which process, since the queue's are forked; its provider
_making = threading.Lock()


def span(
    name: str,
    attributes: Attributes | None = None,
    *,
    kind: str = "INTERNAL",
    alone: bool = False,
    parent: str = "",
) -> Span:
    """``with span("memoryhub.recall") as traced: …``. ``alone``: for what is awaited piece by piece, such as a stream.

    ``parent``: the ``traceparent`` of another process that it goes on from, in place of what runs here.
    """
    if not _on:
        return NOTHING
    begun = (
        _provider()
        .get_tracer("memoryhub")
        .start_span(
            name,
            context=_going_on_from(parent) if parent else None,
            kind=_trace().SpanKind[kind],
            attributes=dict(attributes or {}),
        )
    )
    return _Exported(begun, alone=alone)


def spanned(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function, not awaited, each of whose calls is a span."""

    def around(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if not _on:
                return function(*args, **kwargs)
            with span(name):
                return function(*args, **kwargs)

        return call

    return around


def note(attributes: Attributes) -> None:
    """Add attributes to the span that runs in this context."""
    if _on:
        _trace().get_current_span().set_attributes(dict(attributes))


def carried(function: Callable[[], T]) -> Callable[[], T]:
    """For another thread: what it does there is a part of what runs here."""
    if not _on:
        return function
    here = _context().get_current()

    def call() -> T:
        token = _context().attach(here)
        try:
            return function()
        finally:
            _context().detach(token)

    return call


def parent_here() -> str:
    """By which another process goes on with what runs here; empty where nothing does."""
    carrier: dict[str, str] = {}
    if _on:
        _propagator().inject(carrier)
    return carrier.get(PARENT, "")


def go_on_from(parent: str) -> None:
    """Make this thread's further work a part of that span; of none, if it is empty."""
    if _on:
        _context().attach(_going_on_from(parent))


def trace_id() -> str:
    """Return the id of the current trace, as log lines name it; empty if there is none."""
    found = _trace().get_current_span().get_span_context() if _on else None
    return format(found.trace_id, "032x") if found is not None and found.is_valid else ""


def begin_anew() -> None:
    """Look at the environment again, and send what is waiting: for tests."""
    global _on, _made
    made, _made, _on = _made, None, is_wanted() and is_installed()
    if made is not None:
        made[1].shutdown()


def _provider() -> Any:
    """Return the provider of this process. The SDK reads what else OTEL_… says: sampler, headers, batches."""
    if _made is None or _made[0] != os.getpid():
        with _making:
            _make()
    assert _made is not None
    return _made[1]


def _make() -> None:
    global _made
    if _made is None or _made[0] != os.getpid():  # no other thread was first
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        resource = {
            "service.name": "memoryhub",
            "process.pid": os.getpid(),
            **OTELResourceDetector().detect().attributes,
        }
        provider = TracerProvider(resource=Resource.create(resource))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        _made = (os.getpid(), provider)


def _trace() -> Any:
    from opentelemetry import trace

    return trace


def _context() -> Any:
    from opentelemetry import context

    return context


def _propagator() -> Any:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator()


def _going_on_from(parent: str) -> Any:
    return _propagator().extract({PARENT: parent}, context=_context().Context())
