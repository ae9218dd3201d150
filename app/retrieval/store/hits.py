"""What a leg of a search finds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found by one leg; higher scores are better."""

    passage_id: int
    score: float
