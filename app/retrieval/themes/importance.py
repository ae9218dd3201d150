"""How much a theme matters, with every part of it. Pure."""

from dataclasses import dataclass
from math import log, log1p

import numpy as np

from app.retrieval.themes.graph import Ints
from app.retrieval.themes.parameters import ThemeParameters


@dataclass(frozen=True)
class Importance:
    """All but `product` are from 0 to 1."""

    size: float  # ln(1 + passages) / ln(1 + passages of the map)
    distinctiveness: float  # of all mentions in the passages that its concepts touch, the share that is its own
    coverage: float  # of the different concepts in its passages, the share that is its own
    entropy: float  # of how often its concepts are mentioned, over the entropy if all were equally often
    density: float  # mean of coverage and entropy
    importance: float
    product: float


def weigh(
    *,
    passages: int,
    of_passages: int,
    own_mentions: int,
    touched_mentions: int,
    different: int,
    own_df: Ints,
    parameters: ThemeParameters,
) -> Importance:
    """`own_df`: how many passages of the theme hold each of its own concepts. `product` is
    ln(1 + passages) * distinctiveness * (0.5 + 0.5 * entropy), which needs no weights."""
    size = log1p(passages) / log1p(max(passages, of_passages, 1))
    distinctiveness = own_mentions / touched_mentions if touched_mentions else 0.0
    held = own_df[own_df > 0]
    coverage = len(held) / different if different else 0.0
    entropy = _entropy(held)
    density = 0.5 * coverage + 0.5 * entropy
    weights = parameters.size_weight + parameters.distinctiveness_weight + parameters.density_weight
    weighted = (
        parameters.size_weight * size
        + parameters.distinctiveness_weight * distinctiveness
        + parameters.density_weight * density
    )
    # The product over its largest value in this map, so that it too is from 0 to 1.
    multiplied = size * distinctiveness * (0.5 + 0.5 * entropy)
    return Importance(
        size=size,
        distinctiveness=distinctiveness,
        coverage=coverage,
        entropy=entropy,
        density=density,
        importance=multiplied if parameters.formula == "product" else weighted / weights if weights else 0.0,
        product=log1p(passages) * distinctiveness * (0.5 + 0.5 * entropy),
    )


def _entropy(df: Ints) -> float:
    if len(df) < 2:
        return 0.0
    shares = df / df.sum()
    return min(1.0, float(-(shares * np.log(shares)).sum()) / log(len(df)))
