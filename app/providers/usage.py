"""Counts what model calls cost, in meters found through a ContextVar. Writing it to the ledger is left to who opened one."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from app.providers.contract import ModelProfile, Purpose


@dataclass(slots=True)
class UsageTotal:
    """Calls of one model for one purpose."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    is_estimated: bool = False  # at least one call's tokens were counted here


@dataclass(slots=True)
class UsageMeter:
    """What was used while the meter was open, by profile and purpose."""

    totals: dict[tuple[ModelProfile, Purpose], UsageTotal] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """Calls of chat models."""
        return sum(total.calls for (_, purpose), total in self.totals.items() if not purpose.is_embedding)

    @property
    def embedding_calls(self) -> int:
        return sum(total.calls for (_, purpose), total in self.totals.items() if purpose.is_embedding)

    @property
    def tokens_in(self) -> int:
        """Tokens sent to chat and embedding models together."""
        return sum(total.tokens_in for total in self.totals.values())

    @property
    def tokens_out(self) -> int:
        return sum(total.tokens_out for total in self.totals.values())

    def add(
        self, profile: ModelProfile, purpose: Purpose, *, tokens_in: int, tokens_out: int, is_estimated: bool
    ) -> None:
        total = self.totals.setdefault((profile, purpose), UsageTotal())
        total.calls += 1
        total.tokens_in += tokens_in
        total.tokens_out += tokens_out
        total.is_estimated = total.is_estimated or is_estimated


_meters: ContextVar[tuple[UsageMeter, ...]] = ContextVar("usage_meters", default=())


@contextmanager
def meter_usage() -> Iterator[UsageMeter]:
    """Count every model call made inside; an outer meter goes on counting too."""
    meter = UsageMeter()
    token = _meters.set((*_meters.get(), meter))
    try:
        yield meter
    finally:
        _meters.reset(token)


def record_call(
    profile: ModelProfile, purpose: Purpose, *, tokens_in: int, tokens_out: int, is_estimated: bool
) -> None:
    """Report one answered call to the open meters; with none open the call is not counted."""
    for meter in _meters.get():
        meter.add(profile, purpose, tokens_in=tokens_in, tokens_out=tokens_out, is_estimated=is_estimated)
