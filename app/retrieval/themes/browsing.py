"""Reads a workspace's themes level by level, without a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from app.db.session import Database, TenantSession
from app.errors import NotFound
from app.retrieval.contract import EngineWorkspace, PassageEvidence, Source
from app.retrieval.store.passages import load_evidence
from app.retrieval.theme_contract import DEFAULT_THEMES, Notice, ThemeEvidence, ThemeMapState, ThemeRank
from app.retrieval.themes.concept_store import ConceptPosition, ConceptSearch, RankedConcept, list_concepts
from app.retrieval.themes.describing import describe, map_state, no_map, notices_of
from app.retrieval.themes.levels import UsableTree, require_level
from app.retrieval.themes.ranking import IMPORTANCE
from app.retrieval.themes.reading_store import (
    DocumentShare,
    OutsideDocument,
    Usable,
    digest_content,
    load_documents,
    load_map_row,
    load_members,
    load_outside,
    load_usable_tree,
)
from app.retrieval.themes.tree import ThemeNode
from app.text.concepts.extraction import query_concepts

PASSAGES_SHOWN: Final = 10
REPORTED_PASSAGES: Final = 12
DOCUMENTS_SHOWN: Final = 20
# Where a page of a list ends: importance and id of its last theme.
Position = tuple[float, UUID]


class ThemeNotFound(NotFound):
    """The workspace's map has no such theme, or nothing of it may be told now."""

    code = "theme_not_found"
    title = "Theme not found"

    @classmethod
    def of(cls, theme_id: UUID) -> "ThemeNotFound":
        return cls(f"There is no theme {theme_id} in this workspace.", theme_id=theme_id)


@dataclass(frozen=True)
class ThemeListing:
    """Themes of a level by importance; `has_more` of them follow. Without a map there are none, and `notices` say why."""

    themes: tuple[ThemeEvidence, ...]
    level: int | None
    map: ThemeMapState | None
    notices: Sequence[Notice]
    has_more: bool = False


@dataclass(frozen=True)
class ThemeDetail:
    """A theme, the themes that it is made of, and where it is spoken of most."""

    theme: ThemeEvidence
    children: tuple[ThemeEvidence, ...]
    passages: tuple[PassageEvidence, ...]
    documents: tuple[DocumentShare, ...]
    map: ThemeMapState
    content_hash: bytes


@dataclass(frozen=True)
class ConceptListing:
    """Concepts by PageRank, and where the list goes on; without a map there are none, and `notices` say why."""

    concepts: Sequence[RankedConcept]
    following: ConceptPosition | None = None
    notices: Sequence[Notice] = ()


@dataclass(frozen=True)
class OutsideListing:
    """Documents in no theme by their ids; `has_more` of them follow. Without a map there are none, and `notices` say why."""

    documents: Sequence[OutsideDocument]
    has_more: bool = False
    notices: Sequence[Notice] = ()


@dataclass(frozen=True)
class ReportMaterial:
    """What a report of a theme is made from; `content_hash` is a digest of all that its passages say now, and `versions` all
    that they are of: label and concepts may be words of any."""

    theme: ThemeEvidence
    passages: tuple[PassageEvidence, ...]
    content_hash: bytes
    versions: tuple[UUID, ...]


@dataclass(frozen=True)
class _Opened:
    tree: UsableTree
    usable: Usable

    async def themes(self, nodes: Sequence[ThemeNode], *, first: int = 1) -> tuple[ThemeEvidence, ...]:
        """`first` is the rank of the first of them."""
        leaves = {node.id: self.tree.tree.leaves(node) for node in nodes}
        described = await describe(self.usable, self.tree.counts, leaves)
        return tuple(
            described[node.id].evidence(
                node, ThemeRank(node.importance, sources=(Source(IMPORTANCE, rank, node.importance),))
            )
            for rank, node in enumerate(nodes, start=first)
        )


class ThemeBrowser:
    """Every answer is of one snapshot, from passages of trusted versions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(
        self, workspace: EngineWorkspace, *, level: int | None, after: Position | None, limit: int
    ) -> ThemeListing:
        """The themes of a level, by default the coarsest that says anything. Raises ThemeLevelUnknown."""
        async with self._database.snapshot(workspace.ref.tenant_id) as session:
            opened = await _open(session, workspace)
            if isinstance(opened, Notice):
                return ThemeListing((), None, None, (opened,))
            require_level(level, opened.tree.row)
            shown = opened.tree.readable_level(DEFAULT_THEMES) if level is None else level
            ordered = sorted(opened.tree.themes(shown), key=_place)
            start = 0 if after is None else sum(_place(node) <= (-after[0], after[1]) for node in ordered)
            themes = await opened.themes(ordered[start : start + limit], first=start + 1)
            state = map_state(opened.tree, workspace.corpus_version)
            more = start + limit < len(ordered)
            return ThemeListing(themes, shown, state, notices_of(opened.tree.row, state), more)

    async def get(self, workspace: EngineWorkspace, theme_id: UUID) -> ThemeDetail:
        """Raises ThemeNotFound."""
        async with self._database.snapshot(workspace.ref.tenant_id) as session:
            opened, node = await _find(session, workspace, theme_id)
            inside = [child for child in opened.tree.tree.children(node) if opened.tree.passages(child)]
            theme, *children = await opened.themes([node, *sorted(inside, key=_place)])
            leaves = {node.id: opened.tree.tree.leaves(node)}
            ids = (await load_members(opened.usable, leaves, PASSAGES_SHOWN)).get(node.id, [])
            digest, _ = await digest_content(opened.usable, leaves[node.id])
            return ThemeDetail(
                theme=theme,
                children=tuple(children),
                passages=tuple(await load_evidence(session, workspace.ref, ids, engine="lazy")),
                documents=tuple(await load_documents(opened.usable, leaves[node.id], DOCUMENTS_SHOWN)),
                map=map_state(opened.tree, workspace.corpus_version),
                content_hash=digest,
            )

    async def outside(self, workspace: EngineWorkspace, *, after: UUID | None, limit: int) -> OutsideListing:
        """The documents that have no passage in any theme."""
        async with self._database.snapshot(workspace.ref.tenant_id) as session:
            opened = await _open(session, workspace)
            if isinstance(opened, Notice):
                return OutsideListing((), notices=(opened,))
            found = await load_outside(opened.usable, after, limit + 1)
            return OutsideListing(found[:limit], len(found) > limit)

    async def concepts(
        self, workspace: EngineWorkspace, *, search: str, after: ConceptPosition | None, limit: int
    ) -> ConceptListing:
        """The concepts of the graph that a trusted passage holds, the most central first; `search` blank: all."""
        keys = tuple(concept.key for concept in query_concepts(search))
        async with self._database.snapshot(workspace.ref.tenant_id) as session:
            row = await load_map_row(session, workspace.ref)
            if row is None or not row.is_ready or not row.levels:
                return ConceptListing((), notices=(no_map(row),))
            usable = Usable(session, workspace.ref, row.id, False, None)
            found, following = await list_concepts(usable, ConceptSearch(search.strip(), keys), after, limit)
            return ConceptListing(found, following)

    async def material(self, workspace: EngineWorkspace, theme_id: UUID) -> ReportMaterial:
        """Raises ThemeNotFound."""
        async with self._database.snapshot(workspace.ref.tenant_id) as session:
            opened, node = await _find(session, workspace, theme_id)
            [theme] = await opened.themes([node])
            leaves = {node.id: opened.tree.tree.leaves(node)}
            ids = (await load_members(opened.usable, leaves, REPORTED_PASSAGES)).get(node.id, [])
            digest, versions = await digest_content(opened.usable, leaves[node.id])
            return ReportMaterial(
                theme=theme,
                passages=tuple(await load_evidence(session, workspace.ref, ids, engine="lazy")),
                content_hash=digest,
                versions=versions,
            )


async def _open(session: TenantSession, workspace: EngineWorkspace) -> _Opened | Notice:
    """The map as it may be told now, or why there is none."""
    row = await load_map_row(session, workspace.ref)
    if row is None or not row.is_ready or not row.levels:
        return no_map(row)
    usable = Usable(session, workspace.ref, row.id, False, None)
    return _Opened(await load_usable_tree(row, usable), usable)


async def _find(session: TenantSession, workspace: EngineWorkspace, theme_id: UUID) -> tuple[_Opened, ThemeNode]:
    """Raises ThemeNotFound."""
    opened = await _open(session, workspace)
    node = None if isinstance(opened, Notice) else opened.tree.tree.by_id.get(theme_id)
    if isinstance(opened, Notice) or node is None or not opened.tree.passages(node):
        raise ThemeNotFound.of(theme_id)
    return opened, node


def _place(node: ThemeNode) -> tuple[float, UUID]:
    return -node.importance, node.id
