"""OpenTelemetry traces of requests, turns and jobs, configured by OpenTelemetry's own environment variables.

Off unless an OTLP endpoint is set and requirements/tracing.txt is installed. Spans contain counts, kinds, outcomes and
model names, never people's texts; an error is recorded only by its class. The tracer provider is not the global one, so
that libraries such as mcp do not send their own spans.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib.util import find_spec

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

Attributes = Mapping[str, str | int | float | bool]
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PARENT = "traceparent"  # W3C's header that continues a trace in another process
NOT_INSTALLED = (
    "OTEL_EXPORTER_OTLP_ENDPOINT is set, but what sends traces is not installed: run `make install-tracing`."
)


def is_wanted(environment: Mapping[str, str] = os.environ) -> bool:
    exporter = environment.get("OTEL_TRACES_EXPORTER", "otlp").lower()
    off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or exporter == "none"
    return not off and any(environment.get(name) for name in ENDPOINTS)


def is_installed() -> bool:
    try:
        return all(find_spec(f"opentelemetry.{part}") for part in ("sdk.trace", "exporter.otlp.proto.http"))
    except ModuleNotFoundError:  # the parent package is missing
        return False


_PROPAGATOR = TraceContextTextMapPropagator()


@cache
def tracer(process: int) -> trace.Tracer:
    """Return the tracer for the process with this id, or one that does nothing if tracing is off.

    The queue's workers are forked, and each needs its own. The SDK reads the OTEL_… variables for sampler, headers and
    batches.
    """
    if not (is_wanted() and is_installed()):
        return trace.NoOpTracer()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    own = {"service.name": "memoryhub", "process.pid": process, **OTELResourceDetector().detect().attributes}
    provider = TracerProvider(resource=Resource.create(own))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider.get_tracer("memoryhub")


@contextmanager
def span(
    name: str,
    attributes: Attributes | None = None,
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    alone: bool = False,
    parent: str = "",
) -> Iterator[Span]:
    """Trace a block, ``with span("memoryhub.recall") as traced: …``, or a function, as its decorator.

    ``alone``: spans that start inside are not its children. This is for code that is awaited piece by piece, such as a
    stream. ``parent``: the ``traceparent`` of another process, which becomes the parent in place of the current span.
    """
    before = _going_on_from(parent) if parent else None
    begun = tracer(os.getpid()).start_span(name, before, kind, dict(attributes or {}))
    quiet = {"record_exception": False, "set_status_on_exception": False}
    try:
        with nullcontext() if alone else trace.use_span(begun, **quiet):
            yield begun
    except Exception as error:  # not a cancellation
        failed(begun, error)
        raise
    finally:
        begun.end()


def model_call(model: str) -> AbstractContextManager[Span]:
    """Start the span of one model call. ``metering.report`` later adds the usage to it."""
    named = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
    return span("memoryhub.model", named, kind=SpanKind.CLIENT, alone=True)


def failed(begun: Span, error: Exception) -> None:
    """Record an error's type on the span, but not its message, which may contain a person's text."""
    begun.set_attribute("error.type", type(error).__qualname__)
    begun.set_status(StatusCode.ERROR)


def add_attributes(attributes: Attributes) -> None:
    """Add attributes to the current span."""
    trace.get_current_span().set_attributes(attributes)


def current_traceparent() -> str:
    """Return the ``traceparent`` with which another process can continue this trace, or "" if there is none."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return carrier.get(PARENT, "")


def continue_trace(parent: str) -> None:
    """Make the next spans of this thread children of ``parent``, a ``traceparent``, or of no span if it is empty."""
    context.attach(_going_on_from(parent))


def trace_id() -> str:
    """Return the id of the current trace, for log lines; empty if there is none."""
    span_context = trace.get_current_span().get_span_context()
    return format(span_context.trace_id, "032x") if span_context.is_valid else ""


def _going_on_from(parent: str) -> context.Context:
    return _PROPAGATOR.extract({PARENT: parent}, context=context.Context())
