"""What decides a map of themes. Two builds over the same passages with the same parameters give the same map."""

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class ThemeParameters:
    """Shares are of 1. Importance is size times distinctiveness times
    half of 1 + entropy, or else the weighted mean of size, distinctiveness and density."""

    seed: int = 20_261_201
    resolution: float = 4.0  # of the base level
    coarse_resolution: float = 1.0  # of the level above it
    max_concepts: int = 50  # a larger community is split further
    rarest: int = 12  # concepts of a passage that pair up
    min_df: int = 2
    max_df_share: float = 0.05
    # In a small corpus a twentieth would be two or three passages, and leave nothing to share.
    max_df_floor: int = 10
    min_passages: int = 20
    max_passages: int = 50_000
    size_weight: float = 0.3
    distinctiveness_weight: float = 0.4
    density_weight: float = 0.3
    formula: Literal["weighted", "product"] = "product"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def max_df(self, passages: int) -> int:
        """In how many of so many passages a concept may be and still tell themes apart."""
        return max(self.max_df_floor, int(self.max_df_share * passages))
