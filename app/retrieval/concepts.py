"""The concepts around a question, as a page would draw them: value types and the protocol of who finds them."""

from dataclasses import dataclass
from typing import Literal, Protocol

from app.retrieval.contract import EngineWorkspace, PassageEvidence
from app.retrieval.filters import NO_FILTER, EvidenceFilter

MAX_NODES = 100
MAX_EDGES = 400


@dataclass(frozen=True)
class ConceptNode:
    """A concept. `passages` counts the trusted ones that hold it, `degree` the concepts here that share one with it;
    `pagerank` (the sum is 1) and `betweenness` (from 0 to 1, sampled) are of this neighbourhood, not of the corpus."""

    id: str
    label: str
    kind: Literal["name", "number", "word"]
    weight: float  # how strongly the question leads to it, at most 1
    passages: int
    degree: int
    in_question: bool
    pagerank: float
    betweenness: float


@dataclass(frozen=True)
class ConceptEdge:
    """Two concepts that stand in the same passages; `weight` is their number."""

    source: str
    target: str
    weight: int


@dataclass(frozen=True)
class ConceptSeed:
    """A passage from which the neighbourhood was found, and the nodes that it holds."""

    passage: PassageEvidence
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class ConceptGraph:
    """Nodes by weight, edges by weight; `edges_left_out` are more of them than `MAX_EDGES`."""

    seeds: tuple[ConceptSeed, ...]
    nodes: tuple[ConceptNode, ...]
    edges: tuple[ConceptEdge, ...]
    edges_left_out: int


class ConceptGraphs(Protocol):
    """Finds the neighbourhood of a question in the concept graph; only trusted versions are used."""

    async def neighbourhood(
        self, workspace: EngineWorkspace, query: str, *, nodes: int, within: EvidenceFilter = NO_FILTER
    ) -> ConceptGraph:
        """At most `nodes` concepts, up to `MAX_NODES`, of passages that meet the filter."""
        ...
