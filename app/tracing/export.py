"""The one importer of OpenTelemetry's SDK: spans to a collector over OTLP/HTTP."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from app.tracing import ATTRIBUTES, Attributes, Carrier, Kind

# For one batch, and for all that is left at the end.
EXPORT_SECONDS = 5.0
STOP_SECONDS = 6.0
KINDS = {
    "server": trace.SpanKind.SERVER,
    "client": trace.SpanKind.CLIENT,
    "producer": trace.SpanKind.PRODUCER,
    "consumer": trace.SpanKind.CONSUMER,
    "internal": trace.SpanKind.INTERNAL,
}
# Only the trace's own ids travel: baggage would carry whatever a caller put into it.
_propagator = TraceContextTextMapPropagator()


class OpenSpan:
    """A span that is under way."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def note(self, attributes: Attributes, *, name: str | None = None) -> None:
        self._span.set_attributes(_allowed(attributes))
        if name is not None:
            self._span.update_name(name)


class OpenTelemetryTracer:
    """Keeps its provider to itself."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("trellis")

    @contextmanager
    def span(
        self, name: str, kind: Kind, attributes: Attributes, parent: Carrier | None, link: Carrier | None
    ) -> Iterator[OpenSpan]:
        within = None if parent is None else _propagator.extract(parent, context.Context())
        links = []
        if link:
            within = within or context.Context()
            links = [
                trace.Link(trace.get_current_span(_propagator.extract(link, context.Context())).get_span_context())
            ]
        with self._tracer.start_as_current_span(
            name, within, KINDS[kind], _allowed(attributes), links, record_exception=False,
            set_status_on_exception=False,
        ) as span:  # fmt: skip
            try:
                yield OpenSpan(span)
            except BaseException as error:
                _fail(span, error)
                raise

    def note_past(self, name: str, attributes: Attributes, seconds: float, error: BaseException | None) -> None:
        if not trace.get_current_span().is_recording():
            return
        ended = time.time_ns()
        span = self._tracer.start_span(
            name, kind=trace.SpanKind.CLIENT, attributes=_allowed(attributes), start_time=ended - int(seconds * 1e9)
        )
        if error is not None:
            _fail(span, error)
        span.end(ended)

    def carrier(self) -> dict[str, str]:
        found: dict[str, str] = {}
        _propagator.inject(found)
        return found

    def stop(self) -> None:
        # A collector that is away must not keep a process from ending.
        ending = threading.Thread(target=self._provider.shutdown, name="last-spans", daemon=True)
        ending.start()
        ending.join(STOP_SECONDS)


def open_tracer(process: str, endpoint: str, headers: str, sample_ratio: float) -> OpenTelemetryTracer:
    """See `start_tracing`."""
    pairs = (part.partition("=") for part in headers.split(",") if part.strip())
    # Whoever calls from outside must not decide what is kept: the same share for all, whatever their flags say.
    share = TraceIdRatioBased(sample_ratio)
    provider = TracerProvider(
        sampler=ParentBased(share, remote_parent_sampled=share, remote_parent_not_sampled=share),
        resource=Resource.create({"service.name": f"trellis-{process}"}),
        shutdown_on_exit=False,
        span_limits=SpanLimits(max_events=0, max_attribute_length=256),
    )
    exporter = OTLPSpanExporter(
        endpoint=endpoint,
        headers={name.strip(): value.strip() for name, _, value in pairs},
        timeout=EXPORT_SECONDS,
    )
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
    return OpenTelemetryTracer(provider)


def _allowed(attributes: Attributes) -> Attributes:
    if unknown := attributes.keys() - ATTRIBUTES:
        raise ValueError(f"spans do not say {sorted(unknown)}")
    return attributes


def _fail(span: trace.Span, error: BaseException) -> None:
    """By the type: the words of an exception may quote content."""
    span.set_attribute("error.type", f"{type(error).__module__}.{type(error).__qualname__}")
    span.set_status(trace.StatusCode.ERROR)
