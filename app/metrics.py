"""Every metric that Trellis has, and how all of a process are told to Prometheus. Who counts what is left to the code that does it.

Two kinds: what this process has done (counters of `prometheus_client`), and how the whole installation stands
(`Figure`), which is read from Postgres and Redis when it is asked for and the same from every process that tells it.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

SWEEP_FOUND = Counter("trellis_sweep_found", "What a sweep found, each time it did.", ["kind"])
SWEEP_HANDLED = Counter("trellis_sweep_handled", "What a sweep sent again or removed.", ["kind"])
UPKEEP_RUNS = Counter(
    "trellis_upkeep_runs", "What beat asked for: `done`, or `skipped` for something was away.", ["task", "outcome"]
)
# From an answer out of memory to a slow model; a goal for answers without a model lies at 0.25.
QUERY_BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
QUERY_SECONDS = Histogram("trellis_query_seconds", "Queries that were answered.", ["mode"], buckets=QUERY_BUCKETS)
QUERY_STAGE_SECONDS = Histogram(
    "trellis_query_stage_seconds", "Stages of those queries, the legs of their search included.", ["mode", "stage"],
    buckets=QUERY_BUCKETS,
)  # fmt: skip
QUERY_STATEMENTS = Counter("trellis_query_statements", "SQL statements of queries.", ["mode"])
QUERY_MODEL_CALLS = Counter("trellis_query_model_calls", "Calls of models for queries.", ["mode", "kind"])
QUERY_TOKENS = Counter("trellis_query_tokens", "Tokens of these calls.", ["mode", "direction"])
QUERY_LEGS_MISSING = Counter("trellis_query_legs_missing", "Legs that were given up for a deadline.", ["mode", "leg"])
USAGE_NOT_RECORDED = Counter(
    "trellis_usage_not_recorded", "Times that model calls could not be written to the ledger.", ["work"]
)
# From a look-up to an upload; a stream of events takes as long as its client listens.
REQUEST_SECONDS = Histogram(
    "trellis_request_seconds", "HTTP requests, but for health and metrics.", ["method", "route", "status"],
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60),
)  # fmt: skip
# From a document that is there already to the longest extraction.
WORK_BUCKETS = (0.1, 0.5, 1, 5, 15, 60, 300, 1800)
JOB_SECONDS = Histogram("trellis_job_seconds", "Jobs that workers ran.", ["job", "outcome"], buckets=WORK_BUCKETS)
STAGE_SECONDS = Histogram(
    "trellis_ingestion_stage_seconds", "Stages of attempts at documents.", ["stage"], buckets=WORK_BUCKETS
)
ATTEMPTS_FAILED = Counter(
    "trellis_attempts_failed", "Attempts at documents that failed; they may be repeated.", ["engine", "code"]
)
MODEL_SECONDS = Histogram(
    "trellis_model_call_seconds", "Requests to models, with the SDK's own repetitions.", ["model", "purpose", "outcome"],
    buckets=(0.05, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300),
)  # fmt: skip
MODEL_WAIT_SECONDS = Histogram(
    "trellis_model_wait_seconds", "Waiting for a model's limits before a call.", ["model"],
    buckets=(0.01, 0.1, 0.5, 1, 5, 15, 60, 300),
)  # fmt: skip
MODEL_TOKENS = Counter("trellis_model_tokens", "Tokens of all calls of models.", ["model", "purpose", "direction"])
WEBHOOK_ATTEMPTS = Counter("trellis_webhook_attempts", "Attempts at deliveries to webhooks.", ["outcome"])
POOL_WAIT_SECONDS = Histogram(
    "trellis_pool_wait_seconds", "Waiting for a connection of the pool, with connecting.", ["pool"],
    buckets=(0.001, 0.01, 0.1, 0.5, 1, 5, 30),
)  # fmt: skip
POOL_USED = Gauge("trellis_pool_used", "Connections that are in use.", ["pool"], multiprocess_mode="livesum")
POOL_SIZE = Gauge("trellis_pool_size", "Connections that may be in use.", ["pool"], multiprocess_mode="livesum")
COUNTERS = (
    SWEEP_FOUND, SWEEP_HANDLED, UPKEEP_RUNS, QUERY_STATEMENTS, QUERY_MODEL_CALLS, QUERY_TOKENS, QUERY_LEGS_MISSING,
    USAGE_NOT_RECORDED, ATTEMPTS_FAILED, MODEL_TOKENS, WEBHOOK_ATTEMPTS,
)  # fmt: skip
HISTOGRAMS = (
    QUERY_SECONDS, QUERY_STAGE_SECONDS, REQUEST_SECONDS, JOB_SECONDS, STAGE_SECONDS, MODEL_SECONDS, MODEL_WAIT_SECONDS,
    POOL_WAIT_SECONDS,
)  # fmt: skip
GAUGES = (POOL_USED, POOL_SIZE)
# Others are what a stranger may invent.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(frozen=True)
class Figure:
    """A gauge of the whole installation; `labels` are the names of what its values are told apart by."""

    name: str
    help: str
    labels: Sequence[str] = ()


INDEXES = Figure("trellis_indexes_open", "Indexes that are not at rest.", ("engine", "state"))
INDEX_AGE = Figure("trellis_indexes_open_oldest_seconds", "Since when the oldest of them is so.", ("engine", "state"))
DELETIONS = Figure("trellis_deletions_open", "What is being deleted.", ("subject",))
DELETION_AGE = Figure("trellis_deletions_open_oldest_seconds", "How long the oldest deletion has taken.", ("subject",))
WEBHOOKS_DUE = Figure("trellis_webhook_deliveries_due", "Deliveries whose time has come.")
WEBHOOK_AGE = Figure("trellis_webhook_deliveries_due_oldest_seconds", "How long the oldest of them has been due.")
LEASES_HELD = Figure("trellis_leases_held", "Workspaces whose graph is being written.")
QUEUE_MESSAGES = Figure("trellis_queue_messages", "Messages that no worker has taken yet.", ("queue",))
REACHABLE = Figure("trellis_reachable", "Whether what the figures are read from answered: 1, or 0.", ("service",))
FIGURES = (
    INDEXES, INDEX_AGE, DELETIONS, DELETION_AGE, WEBHOOKS_DUE, WEBHOOK_AGE, LEASES_HELD, QUEUE_MESSAGES, REACHABLE,
)  # fmt: skip

# Values of a figure by the values of its labels.
Values = Mapping[tuple[str, ...], float]


def count_sweep(found: Mapping[str, int], handled: Mapping[str, int]) -> None:
    """Kinds with 0 are told as well, so that a first one shows as a rise."""
    for counter, counts in ((SWEEP_FOUND, found), (SWEEP_HANDLED, handled)):
        for kind, count in counts.items():
            counter.labels(kind).inc(count)


def observe_query(
    mode: str,
    stages_ms: Mapping[str, float],
    *,
    statements: int,
    calls: Mapping[str, int],
    tokens: Mapping[str, int],
    missing_legs: Iterable[str],
) -> None:
    """One answered query. `stages_ms` holds `total`; `calls` are by kind of model, `tokens` by direction."""
    for stage, milliseconds in stages_ms.items():
        if stage == "total":
            QUERY_SECONDS.labels(mode).observe(milliseconds / 1000)
        else:
            QUERY_STAGE_SECONDS.labels(mode, stage).observe(milliseconds / 1000)
    QUERY_STATEMENTS.labels(mode).inc(statements)
    for kind, count in calls.items():
        QUERY_MODEL_CALLS.labels(mode, kind).inc(count)
    for direction, count in tokens.items():
        QUERY_TOKENS.labels(mode, direction).inc(count)
    for leg in missing_legs:
        QUERY_LEGS_MISSING.labels(mode, leg).inc()


def observe_request(method: str, route: str, status: int, seconds: float) -> None:
    """`route` is the template of a path; of the status the first figure is told."""
    known = method if method in METHODS else "other"
    REQUEST_SECONDS.labels(known, route, f"{status // 100}xx").observe(seconds)


def note_pool(pool: str, *, used: int, size: int, waited_seconds: float | None = None) -> None:
    """How a pool stands after a connection was taken from it, or given back."""
    POOL_USED.labels(pool).set(used)
    POOL_SIZE.labels(pool).set(size)
    if waited_seconds is not None:
        POOL_WAIT_SECONDS.labels(pool).observe(waited_seconds)


class _Standing:
    """What `generate_latest` asks for, of figures."""

    def __init__(self, figures: Mapping[Figure, Values]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        for figure, values in self._figures.items():
            family = GaugeMetricFamily(figure.name, figure.help, labels=figure.labels)
            for labels, value in values.items():
                family.add_metric(labels, value)
            yield family


def process_registry() -> CollectorRegistry:
    """What this process has counted; with PROMETHEUS_MULTIPROC_DIR all that share that folder, summed up."""
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if folder is None:
        return REGISTRY
    _forget_ended(Path(folder))
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


def _forget_ended(folder: Path) -> None:
    """What a process that was killed had in use is in use no more; what it counted stays counted."""
    for file in folder.glob("gauge_live*_*.db"):
        process_id = int(file.stem.rpartition("_")[2])
        try:
            os.kill(process_id, 0)
        except ProcessLookupError:
            mark_process_dead(process_id, str(folder))  # type: ignore[no-untyped-call]
        except PermissionError:
            continue


def exposition(figures: Mapping[Figure, Values]) -> bytes:
    """Both kinds, in Prometheus' text format."""
    return generate_latest(process_registry()) + generate_latest(_Standing(figures))


def declared() -> Iterable[tuple[str, str, Sequence[str]]]:
    """(name, type, labels) of each metric of ours, as Prometheus knows them."""
    for counter in COUNTERS:
        yield f"{counter._name}_total", "counter", counter._labelnames
    for histogram in HISTOGRAMS:
        yield histogram._name, "histogram", histogram._labelnames
    for gauge in GAUGES:
        yield gauge._name, "gauge", gauge._labelnames
    for figure in FIGURES:
        yield figure.name, "gauge", figure.labels
