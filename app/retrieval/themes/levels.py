"""Which level of a map is told, and what of it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from app.errors import Invalid
from app.retrieval.themes.tree import DocumentCounts, LeafCount, MapRow, ThemeNode, ThemeTree


class ThemeLevelUnknown(Invalid):
    """The map has fewer levels than the one asked for."""

    code = "theme_level_unknown"
    title = "The map has no such level"


@dataclass(frozen=True)
class UsableTree:
    """A map's themes, and how many passages of each leaf and how many documents may be used."""

    row: MapRow
    tree: ThemeTree
    counts: Mapping[UUID, LeafCount]
    documents: DocumentCounts

    def themes(self, level: int) -> list[ThemeNode]:
        """The themes of a level that have any passage that may be used."""
        return [node for node in self.tree.on(level) if self.passages(node)]

    def passages(self, node: ThemeNode) -> int:
        return sum(self.counts[leaf].passages for leaf in self.tree.leaves(node) if leaf in self.counts)

    def readable_level(self, wanted: int) -> int:
        """The coarsest level that has as many themes as are wanted; the finest, if none has."""
        for level in range(self.row.levels):
            if len(self.themes(level)) >= wanted:
                return level
        return self.row.levels - 1


def require_level(level: int | None, row: MapRow) -> None:
    """Raises ThemeLevelUnknown."""
    if level is not None and level >= row.levels:
        raise ThemeLevelUnknown(
            f"The map has {row.levels} levels, from 0 to {row.levels - 1}; there is no level {level}.",
            level=level,
            levels=row.levels,
        )
