"""How an answer tells which mode `auto` picked, and which words were added to the question."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.text.routing.features import QuestionKind

ROUTING_EXAMPLE: dict[str, Any] = {
    "mode": "mix",
    "kind": "relation",
    "reason": "Words that ask how things are related.",
    "runner_up": "lazy-balanced",
    "features": {
        "language": "en", "terms": 5, "names": 2, "numbers": 0, "identifiers": 0, "compares": 0, "relates": 1,
        "surveys": 0, "roles": 0, "clauses": 0, "genitives": 0, "aimless": 0,
        "documents": {"lazy": 12, "graph": 12}, "graph_ready": True,
    },
}  # fmt: skip


class RoutingRead(BaseModel):
    """Why `auto` picked the mode. No model was asked."""

    model_config = ConfigDict(from_attributes=True)

    mode: str
    kind: QuestionKind = Field(description="What kind of question it was taken for.")
    reason: str
    runner_up: str | None = Field(description="What would have been picked otherwise.")
    features: dict[str, Any] = Field(description="What was counted in the question, and what the workspace has.")


class AddedTermRead(BaseModel):
    """A word that counts less than those of the question."""

    model_config = ConfigDict(from_attributes=True)

    term: str
    origin: Literal["caller", "cooccurrence", "llm"]
