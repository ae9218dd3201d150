"""Figures of one ranking, their means over questions, and how sure a difference of means is."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

MEASURES = ("R@2", "R@5", "R@10", "all@5", "all@8", "MRR@10")
RESAMPLES = 2000


def measure(ranking: Sequence[str], gold: frozenset[str]) -> list[float]:
    """The figures of `MEASURES` for one question; `ranking` holds ids of passages, best first, none twice."""

    def recall(depth: int) -> float:
        return len(gold.intersection(ranking[:depth])) / len(gold)

    first = next((place for place, found in enumerate(ranking[:10], start=1) if found in gold), None)
    return [
        recall(2), recall(5), recall(10),
        float(gold <= set(ranking[:5])), float(gold <= set(ranking[:8])),
        1 / first if first else 0.0,
    ]  # fmt: skip


def difference(ours: Sequence[float], theirs: Sequence[float], seed: int = 7) -> tuple[float, float, float]:
    """Mean of the paired differences with its 95 % interval, by bootstrap over the questions (percentile method)."""
    paired = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    return float(paired.mean()), *interval(paired, seed)


def interval(values: Sequence[float] | npt.NDArray[np.float64], seed: int = 7) -> tuple[float, float]:
    """The 95 % interval of the mean, by bootstrap over the questions (percentile method)."""
    sample = np.asarray(values, dtype=np.float64)
    picks = np.random.default_rng(seed).integers(0, len(sample), size=(RESAMPLES, len(sample)))
    low, high = np.percentile(sample[picks].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)
