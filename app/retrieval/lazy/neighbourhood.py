"""Turns the concepts that a question leads to into nodes and edges. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from itertools import combinations
from typing import Final, Literal

from app.retrieval.concepts import MAX_EDGES, ConceptEdge, ConceptGraph, ConceptNode, ConceptSeed
from app.retrieval.contract import PassageEvidence
from app.retrieval.lazy.centrality import betweenness, pagerank
from app.retrieval.lazy.selection import kind_of
from app.retrieval.lazy.store import Postings
from app.retrieval.lazy.traversal import Visit

_KINDS: Final[tuple[Literal["name", "number", "word"], ...]] = ("name", "number", "word")


def trusted_postings(postings: Postings, trusted: Set[int], max_df: int) -> dict[int, list[tuple[int, int]]]:
    """What is left of each concept's postings; one that has more than `max_df` stays as it is, for it leads nowhere."""
    return {
        key: [posting for posting in found if posting[0] in trusted] if len(found) <= max_df else list(found)
        for key, found in postings.items()
    }


def without(postings: Postings, untrusted: Set[int], max_df: int) -> dict[int, list[tuple[int, int]]]:
    """The same of postings less those of passages that are `untrusted`."""
    return {
        key: [posting for posting in found if posting[0] not in untrusted] if len(found) <= max_df else list(found)
        for key, found in postings.items()
    }


def draw(
    seeds: Sequence[PassageEvidence], visits: Sequence[Visit], postings: Postings, asked: Set[int]
) -> ConceptGraph:
    """The graph of these concepts; `asked` are the keys of the question's own."""
    shared = _shared_passages({visit.key: [passage for passage, _ in postings[visit.key]] for visit in visits})
    degrees = Counter(key for pair in shared for key in pair)
    ordered = sorted(visits, key=lambda visit: (-visit.score, visit.key))
    places = {visit.key: place for place, visit in enumerate(ordered)}
    links = [(places[left], places[right], float(weight)) for (left, right), weight in sorted(shared.items())]
    ranks, between = pagerank(len(ordered), links), betweenness(len(ordered), links)
    nodes = tuple(
        ConceptNode(
            id=str(visit.key),
            label=visit.surface,
            kind=_KINDS[kind_of(postings[visit.key][0][1])],
            weight=visit.score,
            passages=visit.df,
            degree=degrees[visit.key],
            in_question=visit.key in asked,
            pagerank=round(rank, 6),
            betweenness=round(part, 6),
        )
        for visit, rank, part in zip(ordered, ranks, between, strict=True)
    )
    edges = sorted(shared.items(), key=lambda item: (-item[1], item[0]))
    return ConceptGraph(
        seeds=tuple(_seed(passage, ordered, postings) for passage in seeds),
        nodes=nodes,
        edges=tuple(ConceptEdge(str(left), str(right), weight) for (left, right), weight in edges[:MAX_EDGES]),
        edges_left_out=max(0, len(edges) - MAX_EDGES),
    )


def _shared_passages(passages: Mapping[int, Sequence[int]]) -> Counter[tuple[int, int]]:
    by_passage: dict[int, list[int]] = {}
    for key, ids in passages.items():
        for passage_id in ids:
            by_passage.setdefault(passage_id, []).append(key)
    shared: Counter[tuple[int, int]] = Counter()
    for keys in by_passage.values():
        shared.update(combinations(sorted(keys), 2))
    return shared


def _seed(passage: PassageEvidence, visits: Sequence[Visit], postings: Postings) -> ConceptSeed:
    held = (visit.key for visit in visits if any(found == passage.passage_id for found, _ in postings[visit.key]))
    return ConceptSeed(passage, tuple(str(key) for key in held))
