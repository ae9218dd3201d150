"""Every metric that Trellis has, and how all of a process are told to Prometheus. Who counts what is left to the code that does it.

Two kinds: what this process has done (counters of `prometheus_client`), and how the whole installation stands
(`Figure`), which is read from Postgres and Redis when it is asked for and the same from every process that tells it.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

SWEEP_FOUND = Counter("trellis_sweep_found", "What a sweep found, each time it did.", ["kind"])
SWEEP_HANDLED = Counter("trellis_sweep_handled", "What a sweep sent again or removed.", ["kind"])
UPKEEP_RUNS = Counter(
    "trellis_upkeep_runs", "What beat asked for: `done`, or `skipped` for something was away.", ["task", "outcome"]
)


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
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


def exposition(figures: Mapping[Figure, Values]) -> bytes:
    """Both kinds, in Prometheus' text format."""
    return generate_latest(process_registry()) + generate_latest(_Standing(figures))


def declared() -> Iterable[tuple[str, str, Sequence[str]]]:
    """(name, type, labels) of each metric of ours, as Prometheus knows them."""
    for counter in (SWEEP_FOUND, SWEEP_HANDLED, UPKEEP_RUNS):
        yield f"{counter._name}_total", "counter", counter._labelnames
    for figure in FIGURES:
        yield figure.name, "gauge", figure.labels
