"""Puts one question to several modes, one after the other, and tells how much of their evidence is the same."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

from app.db.base import TenantId, WorkspaceId
from app.domain.queries.expansion import RememberedEmbedding
from app.domain.queries.planning import Question
from app.domain.queries.service import Answer, QueryService
from app.errors import AppError
from app.retrieval.contract import MODES, UnknownMode
from app.retrieval.deadline import within
from app.retrieval.once import asking_once
from app.retrieval.routing import AUTO

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Outcome:
    """What a mode answered, or why it did not."""

    mode_asked: str
    answer: Answer | None = None
    error: AppError | None = None


@dataclass(frozen=True)
class Comparison:
    """The outcomes in the order asked for, and for each two the Jaccard index of their passages and of their documents."""

    id: UUID
    outcomes: tuple[Outcome, ...]
    passages: Matrix
    documents: Matrix


async def compare_modes(
    queries: QueryService, tenant_id: TenantId, workspace_id: WorkspaceId, question: Question, modes: Sequence[str]
) -> Comparison:
    """What the modes ask of models alike is asked once. What one mode is refused or fails for is told beside the answers of
    the others. Of the time limit, which is for all of them, a mode may take an equal part of what is left.

    Raises WorkspaceNotFound, WorkspaceDeleting or UnknownMode, before anything is asked.
    """
    if unknown := [mode for mode in modes if mode not in MODES and mode != AUTO]:
        known = [*MODES, AUTO]
        raise UnknownMode(
            f"There is no mode {unknown[0]!r}; there are {', '.join(known)}.", mode=unknown[0], modes=known
        )
    workspace = await queries.open(tenant_id, workspace_id)
    embedding = RememberedEmbedding(workspace.embedding)
    comparison_id = uuid4()
    outcomes = []
    with asking_once(), within(None if question.timeout_ms is None else question.timeout_ms / 1000) as deadline:
        for number, mode in enumerate(modes):
            left = None if deadline is None else int(deadline.left * 1000) // (len(modes) - number)
            asked = replace(question, mode=mode, timeout_ms=left)
            try:
                answer = await queries.ask(
                    tenant_id, workspace_id, asked, embedding=embedding, comparison_id=comparison_id
                )
                outcomes.append(Outcome(mode, answer=answer))
            except AppError as error:
                outcomes.append(Outcome(mode, error=error))
    found = [outcome.answer.result.passages if outcome.answer is not None else () for outcome in outcomes]
    return Comparison(
        id=comparison_id,
        outcomes=tuple(outcomes),
        passages=overlap([{passage.passage_id for passage in passages} for passages in found]),
        documents=overlap([{passage.document_id for passage in passages} for passages in found]),
    )


def overlap(sets: Sequence[Set[Any]]) -> Matrix:
    """For each two sets what they share as a part of what both hold (Jaccard); 0 where both are empty."""
    return tuple(tuple(_jaccard(left, right) for right in sets) for left in sets)


def _jaccard(left: Set[Any], right: Set[Any]) -> float:
    return round(len(left & right) / len(left | right), 4) if left or right else 0.0
