"""What a merge makes of entities and their relations. Pure: previews and merges both follow it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.retrieval.entity_contract import DEFAULT_STRATEGIES, EntityField, MergedRelation, MergeRequest, Strategy
from app.retrieval.lightrag.graph_store import SEPARATOR

UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class Node:
    """An entity; `description` holds what several chunks said, separated as LightRAG separates them."""

    name: str
    type: str
    description: str


@dataclass(frozen=True)
class Edge:
    """A relation, with the chunks behind it."""

    source: str
    target: str
    weight: float
    chunks: tuple[str, ...]


@dataclass(frozen=True)
class MergePlan:
    """The merged entity."""

    type: str
    description: str
    relations: tuple[MergedRelation, ...]
    self_loops: tuple[tuple[str, str], ...]


def plan_merge(
    sources: Sequence[Node], target: Node | None, edges: Iterable[Edge], request: MergeRequest, name: str
) -> MergePlan:
    """`name` is the target's. Distinct evidence adds up: of a relation that becomes part of another one, the share of
    its weight counts that comes from chunks which do not speak for the other one already.
    """
    gone = {node.name for node in sources}
    becoming: defaultdict[tuple[str, str], list[Edge]] = defaultdict(list)
    loops = []
    for edge in sorted(set(edges), key=lambda edge: (edge.source, edge.target)):
        ends = [name if end in gone or end == name else end for end in (edge.source, edge.target)]
        if ends[0] == ends[1]:
            loops.append((edge.source, edge.target))
        else:
            becoming[min(ends), max(ends)].append(edge)
    relations = (_merged(pair, found) for pair, found in sorted(becoming.items()))
    return MergePlan(
        type=_chosen("type", sources, target, request),
        description=_chosen("description", sources, target, request),
        relations=tuple(relations),
        self_loops=tuple(loops),
    )


def _merged(pair: tuple[str, str], edges: Sequence[Edge]) -> MergedRelation:
    weight, seen = 0.0, set[str]()
    for edge in edges:
        new = set(edge.chunks) - seen
        share = len(new) / len(set(edge.chunks)) if edge.chunks else 1.0
        weight += edge.weight * share
        seen |= new
    weight = max([weight, *(edge.weight for edge in edges)])
    return MergedRelation(*pair, weight, len(seen), tuple((edge.source, edge.target) for edge in edges))


def _chosen(field: EntityField, sources: Sequence[Node], target: Node | None, request: MergeRequest) -> str:
    if field in request.values:
        return request.values[field]
    strategy = request.strategies.get(field, DEFAULT_STRATEGIES[field])
    said = {node.name: _of(node, field) for node in [*sources, *([target] if target else [])]}
    return _by_strategy(strategy, {name: text for name, text in said.items() if text}, target.name if target else "")


def _of(node: Node, field: EntityField) -> str:
    if field == "description":
        return node.description
    return "" if node.type.upper() == UNKNOWN else node.type


def _by_strategy(strategy: Strategy, said: Mapping[str, str], target: str) -> str:
    texts = list(said.values())
    if not texts:
        return ""
    match strategy:
        case "keep_target":
            return said.get(target, texts[0])
        case "keep_first":
            return texts[0]
        case "keep_last":
            return texts[-1]
        case "longest":
            return max(texts, key=len)
        case "concatenate":
            return SEPARATOR.join(dict.fromkeys(part for text in texts for part in text.split(SEPARATOR)))
