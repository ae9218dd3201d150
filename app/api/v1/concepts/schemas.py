"""What the concept graph looks like over HTTP."""

from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.api.v1.documents.schemas import DOCUMENT_ID
from app.api.v1.themes.schemas import THEME_ID, NoticeRead
from app.retrieval.themes.concept_store import RankedConcept


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


class RankedConceptRead(BaseModel):
    """A concept of the graph that themes are made from."""

    id: str
    label: str
    kind: str = Field(description="`name` or `word`.")
    passages: int = Field(description="Passages that hold it and may be used now; at most 5,000 are counted.")
    degree: int = Field(description="Concepts that it is tied to in the whole graph, when the map of themes was made.")
    pagerank: float = Field(description="How central it was in that graph; the sum over all concepts is 1.")
    theme_id: UUID = Field(description="The finest theme that it belongs to.")

    @classmethod
    def of(cls, concept: RankedConcept) -> Self:
        plain = {name: getattr(concept, name) for name in cls.model_fields if name != "id"}
        return cls.model_validate({**plain, "id": str(concept.key)})


class ConceptPage(BaseModel):
    """Part of the concepts, the most central first. `next_cursor` is null on the last page."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "items": [
                        {
                            "id": "-5512",
                            "label": "Press 4",
                            "kind": "name",
                            "passages": 6,
                            "degree": 14,
                            "pagerank": 0.0041,
                            "theme_id": THEME_ID,
                        }
                    ],
                    "next_cursor": None,
                    "notices": [],
                }
            ]
        }
    )

    items: list[RankedConceptRead]
    next_cursor: str | None = Field(description="Send it as `cursor`, with the same `search`, to get the next page.")
    notices: list[NoticeRead] = Field(description="Why there are none, where there is no map of themes.")


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
