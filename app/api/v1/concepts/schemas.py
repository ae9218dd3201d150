"""What the concept graph looks like over HTTP."""

from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.api.v1.documents.schemas import DOCUMENT_ID


class ConceptNodeRead(BaseModel):
    """A concept."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    label: str
    kind: str = Field(description="`name`, `number` or `word`.")
    weight: float = Field(description="Its relevance: how strongly the question leads to it, at most 1.")
    passages: int = Field(description="Passages that hold it.")
    degree: int = Field(description="Other nodes that share a passage with it, those of left-out edges included.")
    in_question: bool
    pagerank: float = Field(description="How central it is among these nodes; the sum over them is 1.")
    betweenness: float = Field(description="Part of the shortest paths among these nodes that lead over it, estimated.")


class ConceptEdgeRead(BaseModel):
    """Two concepts that stand in the same passages."""

    model_config = ConfigDict(from_attributes=True)

    source: str
    target: str
    weight: int = Field(description="Passages that hold both.")


class SeedPassage(BaseModel):
    """A passage that fits the question."""

    model_config = ConfigDict(from_attributes=True)

    passage_id: int
    document_id: UUID
    title: str
    score: float


class ConceptSeedRead(BaseModel):
    """A passage from which the concepts were found, and the nodes that it holds."""

    model_config = ConfigDict(from_attributes=True)

    passage: SeedPassage
    nodes: list[str]


_EXAMPLE: dict[str, Any] = {
    "seeds": [
        {
            "passage": {"passage_id": 4711, "document_id": DOCUMENT_ID, "title": "Maintenance handbook", "score": 0.93},
            "nodes": ["-5512", "87134"],
        }
    ],
    "nodes": [
        {
            "id": "-5512", "label": "Press 4", "kind": "name", "weight": 0.41, "passages": 6, "degree": 1,
            "in_question": True, "pagerank": 0.5, "betweenness": 0.0,
        },
        {
            "id": "87134", "label": "Kestrel Polymers", "kind": "name", "weight": 0.22, "passages": 3, "degree": 1,
            "in_question": False, "pagerank": 0.5, "betweenness": 0.0,
        },
    ],
    "edges": [{"source": "-5512", "target": "87134", "weight": 2}],
    "edges_left_out": 0,
}  # fmt: skip


class ConceptGraphRead(BaseModel):
    """Nodes and edges, strongest first."""

    model_config = ConfigDict(from_attributes=True, json_schema_extra={"examples": [_EXAMPLE]})

    seeds: list[ConceptSeedRead]
    nodes: list[ConceptNodeRead]
    edges: list[ConceptEdgeRead]
    edges_left_out: int
