"""Puts the answer of the mode `themes` together: chosen themes, what may be told of them now, and their passages."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from app.retrieval.contract import EngineWorkspace, PassageEvidence, SearchRequest, SearchResult
from app.retrieval.lazy.engine import Stopwatch
from app.retrieval.lazy.explanation import withheld_of
from app.retrieval.lazy.ranking import Legs
from app.retrieval.store.passages import load_evidence
from app.retrieval.theme_contract import Source, ThemeEvidence, ThemeRank, ThemesFound
from app.retrieval.themes.budgets import passages_wanted
from app.retrieval.themes.describing import Described, describe, map_state, notices_of
from app.retrieval.themes.levels import UsableTree
from app.retrieval.themes.reading_store import Membership, Usable, load_members
from app.retrieval.themes.tree import ThemeNode
from app.text.concepts.extraction import query_concepts

THEMES_LEG: Final = "themes"
NO_THEME: Final = "No theme has a passage that answers this and may be shown."


@dataclass(frozen=True)
class Asked:
    """One request, and all that it is answered from."""

    workspace: EngineWorkspace
    request: SearchRequest
    tree: UsableTree
    usable: Usable
    clock: Stopwatch


@dataclass(frozen=True)
class Found:
    """What the legs of a question brought: passages, where they belong, and how many themes were candidates."""

    legs: Legs
    memberships: Mapping[int, Membership]
    owners: Mapping[UUID, UUID]
    candidates: int
    words: float

    def passages(self) -> dict[UUID, list[int]]:
        """Per theme its passages that the legs found, best first, but one of each document before a second one of any."""
        turns: Counter[tuple[UUID, UUID]] = Counter()
        found: dict[UUID, list[tuple[int, int, int]]] = {}
        for place, passage_id in enumerate(self.legs.fused):
            home = self.memberships.get(passage_id)
            owner = self.owners.get(home.leaf_id) if home is not None else None
            if home is None or owner is None:
                continue
            turn = turns[owner, home.document_id]
            turns[owner, home.document_id] += 1
            found.setdefault(owner, []).append((turn, place, passage_id))
        return {theme: [passage_id for *_, passage_id in sorted(items)] for theme, items in found.items()}

    def sources(self) -> dict[int, tuple[Source, ...]]:
        """Per passage the legs that found it."""
        sources: dict[int, tuple[Source, ...]] = {}
        for name, hits in (("bm25", self.legs.lexical.hits), ("vectors", self.legs.dense.hits)):
            for rank, hit in enumerate(hits, start=1):
                sources[hit.passage_id] = (*sources.get(hit.passage_id, ()), Source(name, rank, hit.score))
        return sources


@dataclass(frozen=True)
class Place:
    """A passage's part of an answer: of which theme it is, at which rank that one stands, and what it scores for it."""

    theme_id: UUID
    rank: int
    score: float


async def assemble(
    opened: Asked, level: int, nodes: Sequence[ThemeNode], ranks: Mapping[UUID, ThemeRank], found: Found | None
) -> SearchResult:
    """The answer with these themes, in their order. `found` is None where nothing was asked."""
    request, usable = opened.request, opened.usable
    wanted = passages_wanted(request)
    leaves = {node.id: opened.tree.tree.leaves(node) for node in nodes}
    with opened.clock.stage("passages"):
        members = await load_members(usable, leaves, wanted) if leaves else {}
        first = found.passages() if found is not None else {}
        per_theme = {
            node.id: list(dict.fromkeys((*first.get(node.id, ()), *members.get(node.id, ())))) for node in nodes
        }
        places = in_turns(per_theme, ranks, wanted)
        evidence = await load_evidence(
            usable.session, usable.ref, list(places), engine="lazy", include_partial=usable.include_partial
        )
    with opened.clock.stage("labels"):
        keys = frozenset(concept.key for concept in query_concepts(request.query))
        described = await describe(usable, opened.tree.counts, leaves, keys)
    legs = found.sources() if found is not None else {}
    passages = tuple(_placed(passage, places[passage.passage_id], legs) for passage in evidence)
    themes = tuple(_theme(node, described[node.id], ranks[node.id], passages, places) for node in nodes)
    state = map_state(opened.tree, opened.workspace.corpus_version)
    return SearchResult(
        passages,
        stage_ms=opened.clock.stages,
        notes=() if themes else (NO_THEME,),
        withheld=_withheld(opened, found, wanted),
        details=_details(opened, found),
        themes=ThemesFound(themes, level, state, notices_of(opened.tree.row, state)),
    )


def in_turns(passages: Mapping[UUID, Sequence[int]], ranks: Mapping[UUID, ThemeRank], wanted: int) -> dict[int, Place]:
    """The first passage of each theme, then the second of each …, until there are `wanted`; best score first."""
    taken = []
    for turn in range(max((len(found) for found in passages.values()), default=0)):
        for rank, (theme_id, found) in enumerate(passages.items(), start=1):
            for passage_id in found[turn : turn + 1]:
                taken.append((passage_id, Place(theme_id, rank, ranks[theme_id].score / (turn + 1))))
    return dict(sorted(taken[:wanted], key=lambda item: (-item[1].score, item[1].rank)))


def cache_details(workspace: EngineWorkspace) -> dict[str, Any]:
    """Answers of this mode are not remembered: a new map comes without a new version of the corpus."""
    return {"hit": False, "corpus_version": workspace.corpus_version}


def _placed(passage: PassageEvidence, place: Place, legs: Mapping[int, tuple[Source, ...]]) -> PassageEvidence:
    sources = (*legs.get(passage.passage_id, ()), Source(THEMES_LEG, place.rank, place.score))
    return replace(passage, score=place.score, sources=sources)


def _theme(
    node: ThemeNode,
    described: Described,
    rank: ThemeRank,
    passages: Sequence[PassageEvidence],
    places: Mapping[int, Place],
) -> ThemeEvidence:
    here = (passage.passage_id for passage in passages if places[passage.passage_id].theme_id == node.id)
    return described.evidence(node, rank, tuple(here))


def _withheld(opened: Asked, found: Found | None, wanted: int) -> Mapping[str, int]:
    if opened.usable.allowed is not None:
        return opened.usable.allowed.withheld
    return withheld_of(found.legs, wanted) if found is not None else {}


def _details(opened: Asked, found: Found | None) -> dict[str, Any]:
    details: dict[str, Any] = {"cache": cache_details(opened.workspace), "llm_index_calls": 0}
    if found is not None:
        details["candidates"] = found.candidates
        details["words_weight"] = round(found.words, 4)
        details["lexical_share"] = found.legs.lexical_share
        details["term_coverage"] = found.legs.lexical.coverage
    return details
