"""Counts what model calls cost, in meters found through a ContextVar. Writing it to the ledger is left to who opened one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from app.metrics import MODEL_TOKENS
from app.providers.contract import ModelProfile, Purpose


@dataclass(slots=True)
class UsageTotal:
    """Calls of one model for one purpose."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    estimated_calls: int = 0  # calls whose tokens were counted here, for the provider did not say or was not heard out

    @property
    def is_estimated(self) -> bool:
        return self.estimated_calls > 0


@dataclass(slots=True)
class UsageMeter:
    """What was used while the meter was open, by profile and purpose."""

    totals: dict[tuple[ModelProfile, Purpose], UsageTotal] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """Calls of chat models."""
        return sum(
            total.calls
            for (_, purpose), total in self.totals.items()
            if not purpose.is_embedding and purpose is not Purpose.RERANK
        )

    @property
    def rerank_calls(self) -> int:
        return sum(total.calls for (_, purpose), total in self.totals.items() if purpose is Purpose.RERANK)

    @property
    def embedding_calls(self) -> int:
        return sum(total.calls for (_, purpose), total in self.totals.items() if purpose.is_embedding)

    @property
    def tokens_in(self) -> int:
        """Tokens sent to models of all kinds together."""
        return sum(total.tokens_in for total in self.totals.values())

    @property
    def tokens_out(self) -> int:
        return sum(total.tokens_out for total in self.totals.values())

    @property
    def estimated_calls(self) -> int:
        return sum(total.estimated_calls for total in self.totals.values())

    def __add__(self, other: "UsageMeter") -> "UsageMeter":
        """What both counted, as a meter of its own."""
        both = UsageMeter()
        for meter in (self, other):
            for key, used in meter.totals.items():
                total = both.totals.setdefault(key, UsageTotal())
                for name in ("calls", "tokens_in", "tokens_out", "estimated_calls"):
                    setattr(total, name, getattr(total, name) + getattr(used, name))
        return both

    def take(self) -> "UsageMeter":
        """What was counted so far, as a meter of its own; this one begins anew."""
        taken, self.totals = UsageMeter(self.totals), {}
        return taken

    def add(
        self, profile: ModelProfile, purpose: Purpose, *, tokens_in: int, tokens_out: int, is_estimated: bool
    ) -> None:
        total = self.totals.setdefault((profile, purpose), UsageTotal())
        total.calls += 1
        total.tokens_in += tokens_in
        total.tokens_out += tokens_out
        total.estimated_calls += is_estimated


_meters: ContextVar[tuple[UsageMeter, ...]] = ContextVar("usage_meters", default=())


@contextmanager
def meter_usage(meter: UsageMeter | None = None) -> Iterator[UsageMeter]:
    """Count every model call made inside, in `meter` or a new one; an outer meter goes on counting too."""
    meter = UsageMeter() if meter is None else meter
    token = _meters.set((*_meters.get(), meter))
    try:
        yield meter
    finally:
        _meters.reset(token)


def record_call(
    profile: ModelProfile, purpose: Purpose, *, tokens_in: int, tokens_out: int, is_estimated: bool
) -> None:
    """Report one call to the open meters, and to the metrics of this process."""
    for direction, tokens in (("in", tokens_in), ("out", tokens_out)):
        MODEL_TOKENS.labels(profile.name, purpose, direction).inc(tokens)
    for meter in _meters.get():
        meter.add(profile, purpose, tokens_in=tokens_in, tokens_out=tokens_out, is_estimated=is_estimated)


_on_abandoned: ContextVar[Callable[[], None] | None] = ContextVar("on_abandoned", default=None)


@contextmanager
def counting_abandoned(profile: ModelProfile, purpose: Purpose, count: Callable[[], int]) -> Iterator[None]:
    """Count requests of the block that were sent and not heard out (a time limit, a cancellation, a lost connection): the
    provider has done the work and may bill it, so they are calls with an estimate of what was sent, which `count` makes."""
    token = _on_abandoned.set(lambda: record_call(profile, purpose, tokens_in=count(), tokens_out=0, is_estimated=True))
    try:
        yield
    finally:
        _on_abandoned.reset(token)


def note_abandoned() -> None:
    """Tell the open block that a request of it was sent and not heard out."""
    if (count := _on_abandoned.get()) is not None:
        count()
