"""Communities of the concept graph, by hierarchical Leiden (Traag, Waltman and van Eck 2019), and their tree. Pure."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import graspologic_native
import numpy as np

from app.retrieval.themes.graph import Edges
from app.retrieval.themes.parameters import ThemeParameters

Path = tuple[int, ...]
_RANDOMNESS = 0.001  # the default of Leiden's authors


@dataclass(frozen=True)
class Node:
    """A community: the leaves from `first_leaf` to `last_leaf`, on the levels from `level` to `last_level`."""

    level: int
    last_level: int
    parent: int | None  # a place among the nodes, before this one
    first_leaf: int
    last_leaf: int

    @property
    def is_leaf(self) -> bool:
        return self.first_leaf == self.last_leaf


def find_paths(edges: Edges, parameters: ThemeParameters) -> dict[int, Path]:
    """The communities that each concept is in, coarsest first; concepts without an edge are left out.

    Level 1 is what Leiden finds at the full resolution; level 0 groups these by what it finds at a low one; below,
    communities of more than `max_concepts` are split.
    """
    if not len(edges.weights):
        return {}
    names = {number: str(number) for number in np.unique(np.r_[edges.first, edges.second]).tolist()}
    rows = zip(edges.first.tolist(), edges.second.tolist(), edges.weights.tolist(), strict=True)
    ties = [(names[first], names[second], weight) for first, second, weight in rows]
    found = graspologic_native.hierarchical_leiden(
        ties,
        starting_communities=None,
        resolution=parameters.resolution,
        randomness=_RANDOMNESS,
        iterations=1,
        use_modularity=True,
        max_cluster_size=parameters.max_concepts,
        seed=parameters.seed,
    )
    fine: dict[int, list[int]] = defaultdict(list)
    for row in sorted(found, key=lambda row: row.level):
        fine[int(row.node)].append(row.cluster)
    _, coarse = graspologic_native.leiden(
        ties,
        starting_communities=None,
        resolution=parameters.coarse_resolution,
        randomness=_RANDOMNESS,
        iterations=1,
        use_modularity=True,
        trials=1,
        seed=parameters.seed,
    )
    groups = _groups_of({concept: path[0] for concept, path in fine.items()}, coarse)
    return {concept: (groups[path[0]], *path) for concept, path in sorted(fine.items())}


def _groups_of(base: Mapping[int, int], coarse: Mapping[str, int]) -> dict[int, int]:
    """The coarse community of each base community: the one that most of its concepts are in."""
    votes: dict[int, Counter[int]] = defaultdict(Counter)
    for concept, number in base.items():
        votes[number][coarse[str(concept)]] += 1
    return {number: min(count, key=lambda group: (-count[group], group)) for number, count in votes.items()}


@dataclass(frozen=True)
class Tree:
    """Nodes, parents first, and the leaf of each path. Level 0 is the coarsest, `base_level` what Leiden found first."""

    nodes: list[Node]
    leaf_of: dict[Path, int]
    levels: int
    base_level: int


def grow(paths: Sequence[Path]) -> Tree:
    """The tree of these leaves. A community with one child is one with it, for it would say the same thing twice.

    Leaves are numbered depth first, in the order of `paths` where they are siblings.
    """
    levels = max((len(path) for path in paths), default=0)
    top = len({path[0] for path in paths})
    # A level that groups nothing is no level.
    skipped = 1 if levels > 1 and top in (1, len({path[:2] for path in paths})) else 0
    nodes: list[Node] = []
    leaf_of: dict[Path, int] = {}

    def visit(group: Sequence[Path], depth: int, parent: int | None) -> None:
        bottom = depth
        while bottom + 1 < levels and len({path[: bottom + 2] for path in group}) == 1:
            bottom += 1
        is_leaf = len(group) == 1
        place, first = len(nodes), len(leaf_of)
        last = first + len(group) - 1
        last_level = levels - 1 if is_leaf else bottom
        nodes.append(Node(depth - skipped, last_level - skipped, parent, first, last))
        if is_leaf:
            leaf_of[group[0]] = first
            return
        for child in _groups(group, bottom + 1):
            visit(child, bottom + 1, place)

    for group in _groups(paths, skipped):
        visit(group, skipped, None)
    return Tree(nodes, leaf_of, levels - skipped, 1 - skipped if levels > 1 else 0)


def _groups(paths: Sequence[Path], depth: int) -> list[list[Path]]:
    found: dict[Path, list[Path]] = {}
    for path in paths:
        # A leaf above this depth stands for itself here.
        found.setdefault(path[: depth + 1], []).append(path)
    return list(found.values())
