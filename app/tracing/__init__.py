"""Traces: what a request caused, from HTTP over jobs to SQL and model calls. Off unless an endpoint for them is set.

Spans are written by hand at the few places where all work passes, with names and attributes from a closed list: ids, counts,
codes, templates of routes, kinds and tables of statements. None holds content, a question, a parameter, a path or a URL.
Nothing of OpenTelemetry is imported while tracing is off, and its global provider is never set, so that no library adds
spans of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, Protocol

Value = str | int | float
Attributes = Mapping[str, Value]
Kind = Literal["server", "client", "producer", "consumer", "internal"]
# What travels beside a job, as W3C trace context names it.
Carrier = Mapping[str, str]

# Everything that a span may say. What is not here is not sent.
ATTRIBUTES = frozenset(
    {
        "http.request.method", "http.route", "http.response.status_code",
        "messaging.system", "messaging.operation.type", "messaging.destination.name", "messaging.batch.message_count",
        "db.system.name", "db.operation.name", "db.collection.name", "db.namespace",
        "gen_ai.operation.name", "gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens",
        "error.type",
        "trellis.request_id", "trellis.tenant_id", "trellis.workspace_id", "trellis.document_id", "trellis.version_id",
        "trellis.change_id", "trellis.job", "trellis.purpose", "trellis.mode",
    }
)  # fmt: skip


class Span(Protocol):
    """A piece of work that is under way."""

    def note(self, attributes: Attributes, *, name: str | None = None) -> None:
        """Add attributes, and give it another name."""
        ...


class Tracer(Protocol):
    """What stands behind the functions below while tracing is on."""

    def span(self, name: str, kind: Kind, attributes: Attributes, parent: Carrier | None, link: Carrier | None) -> AbstractContextManager[Span]: ...  # fmt: skip

    def note_past(self, name: str, attributes: Attributes, seconds: float, error: BaseException | None) -> None: ...

    def carrier(self) -> dict[str, str]: ...

    def stop(self) -> None: ...


class _Untraced:
    def note(self, attributes: Attributes, *, name: str | None = None) -> None:
        """Nothing is kept."""


UNTRACED: Span = _Untraced()
_tracer: Tracer | None = None


def start_tracing(process: str, endpoint: str | None, headers: str, sample_ratio: float) -> None:
    """Send spans of this process to an OTLP collector over HTTP from now on; nothing happens without an `endpoint`.

    Call it before connections are opened and after a fork. `headers` are those of each request to the collector, as
    `name=value` by comma. Of all traces the share of `sample_ratio` is kept, which is decided by the trace's id and so alike in
    every process.
    """
    global _tracer
    if endpoint and _tracer is None:
        _tracer = importlib.import_module("app.tracing.export").open_tracer(process, endpoint, headers, sample_ratio)


def stop_tracing() -> None:
    """Send what is left, for some seconds at most."""
    global _tracer
    tracer, _tracer = _tracer, None
    if tracer is not None:
        tracer.stop()


def is_tracing() -> bool:
    return _tracer is not None


@contextmanager
def span(
    name: str, attributes: Attributes | None = None, *, kind: Kind = "internal", parent: Carrier | None = None,
    link: Carrier | None = None,
) -> Iterator[Span]:  # fmt: skip
    """The block as a span of the current trace, of the trace of `parent`, or of a new one that points to `link`.

    An exception that leaves the block is told by its type alone.
    """
    if _tracer is None:
        yield UNTRACED
        return
    with _tracer.span(name, kind, attributes or {}, parent, link) as found:
        yield found


def note_past(name: str, attributes: Attributes, seconds: float, error: BaseException | None = None) -> None:
    """A span that has just ended, inside the current one; without a current one nothing is kept."""
    if _tracer is not None:
        _tracer.note_past(name, attributes, seconds, error)


def carrier() -> dict[str, str]:
    """What has to travel along for the current trace to be continued elsewhere; empty if there is none."""
    return _tracer.carrier() if _tracer is not None else {}
