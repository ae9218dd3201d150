"""Answers the mode `themes`: what the corpus is about or, with a question, which communities of concepts matter for it.

Reads the map that a job made; nothing is computed here but which themes to tell, and what of them may be told now. No model
is asked but the workspace's embedding, once where there is a question.
"""

from dataclasses import replace

from app.db.session import Database
from app.providers.contract import Vectors
from app.retrieval.contract import EngineWorkspace, SearchRequest, SearchResult
from app.retrieval.deadline import asked
from app.retrieval.lazy.engine import Stopwatch, embed_query, resolve_filter
from app.retrieval.store.allowed import nothing_allowed
from app.retrieval.theme_contract import Source, ThemeRank, ThemesFound
from app.retrieval.themes.answer import Asked, Found, assemble, cache_details
from app.retrieval.themes.budgets import themes_wanted
from app.retrieval.themes.describing import no_map
from app.retrieval.themes.legs import passage_legs, theme_legs
from app.retrieval.themes.levels import require_level
from app.retrieval.themes.ranking import IMPORTANCE, chosen, route_themes
from app.retrieval.themes.reading_store import Usable, load_map_row, load_memberships, load_usable_tree
from app.retrieval.themes.tree import MapRow


class ThemeSearch:
    """A `Search` over the workspace's theme map."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def search(self, workspace: EngineWorkspace, request: SearchRequest) -> SearchResult:
        """The best themes with passages of trusted versions. Without a map the answer is empty, and a notice says why.

        Raises ThemeLevelUnknown.
        """
        clock = Stopwatch()
        has_question = bool(request.query.strip())
        query = None
        if has_question:
            with clock.stage("embedding"):
                query = await asked("vectors", lambda: embed_query(workspace, request.query), None)
        async with self._database.snapshot(workspace.ref.tenant_id) as session:
            row = await load_map_row(session, workspace.ref)
            if row is None or not row.is_ready or not row.levels:
                return _nothing(workspace, row, clock)
            require_level(request.themes.level, row)
            allowed = await resolve_filter(session, workspace, request, clock)
            if allowed is not None and not allowed.version_ids:
                note = await nothing_allowed(session, workspace.ref, request.filter, "lazy")
                return replace(_nothing(workspace, row, clock), notes=(note,), withheld=allowed.withheld)
            usable = Usable(session, workspace.ref, row.id, request.include_partial, allowed)
            with clock.stage("map"):
                tree = await load_usable_tree(row, usable)
            opened = Asked(workspace, request, tree, usable, clock)
            return await (_about(opened, query) if has_question else _overview(opened))


async def _overview(opened: Asked) -> SearchResult:
    """What the corpus is about: the themes of a level by their importance."""
    wanted, level = themes_wanted(opened.request), opened.request.themes.level
    if level is None:
        level = opened.tree.readable_level(wanted)
    nodes = sorted(opened.tree.themes(level), key=lambda node: (-node.importance, node.first_leaf))[:wanted]
    ranks = {
        node.id: ThemeRank(node.importance, sources=(Source(IMPORTANCE, rank, node.importance),))
        for rank, node in enumerate(nodes, start=1)
    }
    return await assemble(opened, level, nodes, ranks, None)


async def _about(opened: Asked, query: Vectors | None) -> SearchResult:
    """The themes that matter for a question."""
    request, tree = opened.request, opened.tree
    level = tree.row.levels - 1 if request.themes.level is None else request.themes.level
    nodes = {node.id: node for node in tree.themes(level)}
    owners = tree.tree.owners(nodes.values())
    legs = await passage_legs(opened, query)
    with opened.clock.stage("themes"):
        memberships = await load_memberships(opened.usable, list(legs.fused))
        scores = await theme_legs(opened, legs, memberships, owners)
    routed = route_themes(
        scores,
        {theme_id: node.importance for theme_id, node in nodes.items()},
        coverage_weight=request.themes.coverage_weight,
    )
    best = chosen(routed, themes_wanted(request), request.themes.min_relevance)
    found = Found(legs, memberships, owners, len(routed), scores.words)
    ranks = {item.theme_id: ThemeRank(item.score, item.relevance, item.coverage, item.sources) for item in best}
    return await assemble(opened, level, [nodes[item.theme_id] for item in best], ranks, found)


def _nothing(workspace: EngineWorkspace, row: MapRow | None, clock: Stopwatch) -> SearchResult:
    """The answer of a workspace that has no themes to tell."""
    has_map = row is not None and row.is_ready and row.levels > 0
    return SearchResult(
        (),
        stage_ms=clock.stages,
        details={"cache": cache_details(workspace)},
        themes=ThemesFound(notices=() if has_map else (no_map(row),)),
    )
