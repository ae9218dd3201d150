"""How central the nodes of a small undirected graph are. Pure."""

from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# As the authors of PageRank have it (Brin and Page 1998).
DAMPING: Final = 0.85
_TOLERANCE: Final = 1e-9
_ITERATIONS: Final = 100
SOURCES: Final = 24  # nodes that betweenness is estimated from

Edge = tuple[int, int, float]
"""Two places of nodes, and a weight above 0."""


def pagerank(size: int, edges: Sequence[Edge]) -> list[float]:
    """Per node how often a walk along the edges, by their weights, is there; the sum is 1."""
    first = np.array([edge[0] for edge in edges], dtype=np.int64)
    second = np.array([edge[1] for edge in edges], dtype=np.int64)
    weights = np.array([edge[2] for edge in edges], dtype=np.float64)
    return [float(value) for value in pagerank_of(size, first, second, weights)]


def pagerank_of(size: int, first: Ints, second: Ints, weights: Floats) -> Floats:
    """The same for edges as columns, each edge once: a graph of a million of them takes a second."""
    if not size:
        return np.empty(0)
    ends, starts = np.concatenate((first, second)), np.concatenate((second, first))
    both = np.concatenate((weights, weights))
    strength = np.bincount(starts, both, minlength=size)
    shares = both / strength[starts] if len(both) else both
    is_alone = strength == 0
    rank = np.full(size, 1 / size)
    for _ in range(_ITERATIONS):
        # A node without edges leads anywhere.
        arrived = np.bincount(ends, rank[starts] * shares, minlength=size) + rank[is_alone].sum() / size
        following = (1 - DAMPING) / size + DAMPING * arrived
        change = np.abs(following - rank).sum()
        rank = following
        if change < _TOLERANCE:
            break
    return rank


def betweenness(size: int, edges: Sequence[Edge], sources: int = SOURCES) -> list[float]:
    """Per node the part of shortest paths between two others that lead over it, from 0 to 1, whatever edges weigh.

    By Brandes (2001), from at most `sources` nodes that are spread evenly over all (Brandes and Pich 2007).
    """
    if size < 3:
        return [0.0] * size
    near: list[list[int]] = [[] for _ in range(size)]
    for first, second, _ in edges:
        near[first].append(second)
        near[second].append(first)
    taken = min(size, sources)
    totals = [0.0] * size
    for number in range(taken):
        _add_paths(number * size // taken, near, totals)
    scale = size / taken / ((size - 1) * (size - 2))
    return [total * scale for total in totals]


def _add_paths(source: int, near: Sequence[Sequence[int]], totals: list[float]) -> None:
    """Add to each node the dependency of `source` on it."""
    size = len(near)
    distance, paths = [-1] * size, [0.0] * size
    distance[source], paths[source] = 0, 1.0
    before: list[list[int]] = [[] for _ in range(size)]
    order: list[int] = []
    waiting = deque([source])
    while waiting:
        here = waiting.popleft()
        order.append(here)
        for there in near[here]:
            if distance[there] < 0:
                distance[there] = distance[here] + 1
                waiting.append(there)
            if distance[there] == distance[here] + 1:
                paths[there] += paths[here]
                before[there].append(here)
    dependency = [0.0] * size
    for there in reversed(order):
        for here in before[there]:
            dependency[here] += paths[here] / paths[there] * (1 + dependency[there])
        if there != source:
            totals[there] += dependency[there]
