"""What a leg of a search finds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found by one leg; higher scores are better."""

    passage_id: int
    score: float


@dataclass(frozen=True)
class Ranking:
    """Hits, best first; `withheld`: the passages that would have stood among them were their versions trusted, each with
    how many hits stand before it, and with the reason."""

    hits: tuple[Hit, ...] = ()
    withheld: Mapping[int, tuple[int, str]] = field(default_factory=dict)


def ranking(rows: Iterable[tuple[int, float, str | None]], limit: int) -> Ranking:
    """The first `limit` trusted ones of (passage id, score, reason why not trusted), best first."""
    hits: list[Hit] = []
    withheld: dict[int, tuple[int, str]] = {}
    for passage_id, score, reason in rows:
        if len(hits) == limit:
            break
        if reason is None:
            hits.append(Hit(passage_id, score))
        else:
            withheld[passage_id] = len(hits), reason
    return Ranking(tuple(hits), withheld)
