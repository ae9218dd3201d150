"""An optional last step of a query: a reranker orders more candidates than are wanted, and the best of them stay.

Whatever goes wrong with it, the answer is the one that it would have been without, and says so.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from app.errors import AppError, Conflict
from app.providers.contract import ModelRejected, RerankModel
from app.retrieval.budgets import DEFAULT_TOP_K
from app.retrieval.contract import LAZY_MODES, THEME_MODES, PassageEvidence, SearchRequest, SearchResult, Source
from app.retrieval.deadline import give_up, time_left
from app.retrieval.lazy.budgets import flavour_of
from app.retrieval.themes.budgets import passages_wanted

CANDIDATES: Final = 50
# After a failure others do not wait for it as well.
PAUSE_SECONDS: Final = 10.0


class RerankModelMissing(Conflict):
    """The query wants its evidence reranked, and the workspace names no model for it."""

    code = "rerank_model_missing"
    title = "The workspace has no reranker"


@dataclass(frozen=True)
class Reranked:
    """What the step made of a result; `note` says why it made nothing of it."""

    result: SearchResult
    milliseconds: float | None = None
    note: str | None = None

    @property
    def stage_ms(self) -> Mapping[str, float]:
        ours = {} if self.milliseconds is None else {"rerank": self.milliseconds}
        return {**self.result.stage_ms, **ours}

    @property
    def notes(self) -> tuple[str, ...]:
        return () if self.note is None else (self.note,)


class Reranking:
    """One a process: it remembers which models have just failed."""

    def __init__(self, timeout_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._paused_until: dict[UUID, float] = {}

    async def apply(self, model: RerankModel, request: SearchRequest, found: SearchResult) -> Reranked:
        """`found` for `widened(request)`, cut to what `request` asks for."""
        name, wanted = model.profile.name, returned_by(request)
        cut = replace(found, passages=found.passages[:wanted])
        if self._paused_until.get(model.profile.id, 0.0) > self._clock():
            return Reranked(cut, note=f"Not reranked: the reranker '{name}' has just failed.")
        if not found.passages:
            return Reranked(cut)
        started, left = time.perf_counter(), time_left()
        try:
            async with asyncio.timeout(self._timeout_seconds if left is None else min(self._timeout_seconds, left)):
                ranked = await model.rerank(request.query, [_text(passage) for passage in found.passages], top_n=wanted)
        except (AppError, TimeoutError) as error:
            if isinstance(error, TimeoutError) and left is not None and left < self._timeout_seconds:
                give_up("rerank")
                return Reranked(cut, _since(started))
            if not isinstance(error, ModelRejected):  # a refusal is of these texts, and no concern of others
                self._paused_until[model.profile.id] = self._clock() + PAUSE_SECONDS
            reason = error.reason if isinstance(error, AppError) else "too slow"
            return Reranked(cut, _since(started), f"Not reranked: the reranker '{name}' failed ({reason}).")
        places = {item.index: Source("rerank", rank, item.score) for rank, item in enumerate(ranked, 1)}
        passages = [_placed(found.passages[index], index + 1, source) for index, source in places.items()]
        details = {"model": name, "candidates": len(found.passages)}
        result = replace(found, passages=tuple(passages), details={**found.details, "rerank": details})
        return Reranked(result, _since(started))


def widened(request: SearchRequest) -> SearchRequest:
    """The same question with as many passages as a reranker is given."""
    wanted = max(CANDIDATES, returned_by(request))
    if request.mode in LAZY_MODES:
        return replace(request, budgets=replace(request.budgets, max_context_chunks=wanted))
    return replace(request, top_k=wanted)


def returned_by(request: SearchRequest) -> int:
    """How many passages the request brings back at most."""
    if request.mode in THEME_MODES:
        return passages_wanted(request)
    flavour = flavour_of(request) if request.mode in LAZY_MODES else None
    return flavour.returned if flavour is not None else request.top_k or DEFAULT_TOP_K


def _placed(passage: PassageEvidence, found_at: int, source: Source) -> PassageEvidence:
    return replace(passage, sources=(*passage.sources, Source("retrieval", found_at, passage.score), source))


def _text(passage: PassageEvidence) -> str:
    return "\n".join((passage.title, *passage.heading_path, passage.text))


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
