"""The themes of one map as a tree of levels: which leaves lie in which theme. Pure.

Leaves are numbered depth first, so that a theme is a range of them. A community that was not split further stands for
itself on the levels below, so each level is a partition of all leaves.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from uuid import UUID

from app.retrieval.theme_contract import Importance, ThemeLevel


@dataclass(frozen=True)
class MapRow:
    """A map as its row says; counts are those of when it was made."""

    id: UUID
    state: str
    corpus_version: int
    levels: int
    leaves: int
    passages: int
    used_passages: int
    is_sampled: bool
    empty_reason: str | None
    finished_at: datetime | None

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"

    @property
    def sampled_share(self) -> float:
        return self.used_passages / self.passages if self.passages else 1.0


@dataclass(frozen=True)
class LeafCount:
    """Passages of a leaf that may be used, and how many of them came after the map was made."""

    passages: int
    placed: int


@dataclass(frozen=True)
class DocumentCounts:
    """Documents that may be used, and how many of them have no passage in any theme of the map."""

    documents: int
    outside: int


@dataclass(frozen=True)
class ThemeNode:
    """A theme's row. It stands on the levels from `level` to `last_level`."""

    id: UUID
    level: int
    last_level: int
    number: int
    parent_id: UUID | None
    first_leaf: int
    last_leaf: int
    size: float
    distinctiveness: float
    coverage: float
    entropy: float
    density: float
    importance: float

    @property
    def parts(self) -> Importance:
        return Importance(
            size=self.size,
            distinctiveness=self.distinctiveness,
            density=self.density,
            vocabulary=self.coverage,
            entropy=self.entropy,
            importance=self.importance,
        )


@dataclass(frozen=True)
class ThemeTree:
    """All themes of a map, in the order of their first leaf and then of their level."""

    nodes: Sequence[ThemeNode]

    @cached_property
    def by_id(self) -> dict[UUID, ThemeNode]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def leaf_ids(self) -> dict[int, UUID]:
        """By number; the deepest node of a range of one leaf is the leaf."""
        return {node.first_leaf: node.id for node in self.nodes if node.first_leaf == node.last_leaf}

    @property
    def levels(self) -> tuple[ThemeLevel, ...]:
        depth = max((node.last_level for node in self.nodes), default=-1) + 1
        return tuple(ThemeLevel(level, len(self.on(level))) for level in range(depth))

    def on(self, level: int) -> list[ThemeNode]:
        """The themes of a level, from their first leaf on."""
        return [node for node in self.nodes if node.level <= level <= node.last_level]

    def children(self, node: ThemeNode) -> list[ThemeNode]:
        return [child for child in self.nodes if child.parent_id == node.id]

    def leaves(self, node: ThemeNode) -> list[UUID]:
        numbers = range(node.first_leaf, node.last_leaf + 1)
        return [self.leaf_ids[number] for number in numbers if number in self.leaf_ids]

    def owners(self, themes: Iterable[ThemeNode]) -> dict[UUID, UUID]:
        """Per leaf the one of these themes, of one level, that holds it."""
        ordered = sorted(themes, key=lambda node: node.first_leaf)
        starts = [node.first_leaf for node in ordered]
        found: dict[UUID, UUID] = {}
        for number, leaf_id in self.leaf_ids.items():
            place = bisect_right(starts, number) - 1
            if place >= 0 and number <= ordered[place].last_leaf:
                found[leaf_id] = ordered[place].id
        return found
