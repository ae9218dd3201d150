"""What an answer says of itself under `trellis`."""

from app.api.v1.openai.schemas import CacheRead, IndexRead, TrellisRead
from app.api.v1.queries.routing_schemas import AddedTermRead, RoutingRead
from app.api.v1.queries.schemas import Usage
from app.db.counting import StatementCount
from app.domain.answering.service import Writing
from app.retrieval.contract import LAZY_MODES, MODES
from app.retrieval.lazy.size_store import IndexSizes

# Stages of a lazy search that ask the index, and not a model.
INDEX_STAGES = ("terms", "vectors", "graph", "passages", "cache")


async def describe(writing: Writing, sizes: IndexSizes, statements: StatementCount) -> TrellisRead:
    """To be called when the answer is written; `statements` are those of the request until then."""
    answer, result, ref = writing.answer, writing.answer.result, writing.workspace.ref
    is_lazy = answer.mode in LAZY_MODES
    described = TrellisRead(
        query_id=answer.query_id,
        workspace_id=ref.workspace_id,
        mode=answer.mode,
        routing=None if answer.routing is None else RoutingRead.model_validate(answer.routing),
        added_terms=[AddedTermRead.model_validate(term) for term in answer.added_terms],
        chat_model=writing.chat_model,
        is_extractive=writing.is_extractive,
        timings_ms={name: round(value, 2) for name, value in {**answer.timings_ms, **writing.timings_ms}.items()},
        usage=_usage(writing, statements),
        missing_legs=list(answer.missing_legs),
        withheld=sum(result.withheld.values()),
        notes=[*answer.notes, *writing.notes],
        experimental=is_lazy,
    )
    if MODES[answer.mode] == "lazy":
        cache = result.details["cache"]
        described.cache = CacheRead(hit=cache["hit"], namespace=ref.engine_name, corpus_version=cache["corpus_version"])
    if is_lazy:
        size = await sizes.of(ref)
        if size is None:
            described.notes.append("The index could not be counted now.")
        described.index = IndexRead(
            ms=round(sum(result.stage_ms.get(stage, 0.0) for stage in INDEX_STAGES), 2),
            passages=None if size is None else size.passages,
            concepts=None if size is None else size.concepts,
            memberships=None if size is None else size.memberships,
            llm_calls=result.details.get("llm_index_calls", 0),
        )
        described.relevance_tests = result.details.get("relevance_tests", 0)
        described.budgets = result.details.get("budgets")
    return described


def _usage(writing: Writing, statements: StatementCount) -> Usage:
    """Finding the evidence and writing the answer together."""
    costs = [cost for cost in (writing.answer.cost, writing.cost) if cost is not None]
    used = writing.answer.usage + writing.usage
    return Usage.of(used, sum(costs) if costs else None, statements.statements)
