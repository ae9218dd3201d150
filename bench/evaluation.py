"""Asks the questions of an evaluation set in several ways and measures the rankings."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.db.session import Database
from app.errors import AppError
from app.retrieval.contract import GRAPH_MODES, PassageEvidence, SearchRequest
from app.retrieval.lazy.engine import LazySearch
from app.retrieval.store.hits import Hit
from app.retrieval.store.passages import load_evidence
from app.retrieval.store.postings import search_terms
from app.retrieval.store.vectors import PassageVectors
from bench.corpus import IndexedSet
from bench.datasets import EvaluationSet
from bench.judge import Judge, Judgement
from bench.measures import MEASURES, measure
from bench.showcase import SHOWCASE_BUDGETS, ShowcaseIndex

LEGS = ("bm25", "vectors", "rrf")
LAZY = ("lazy-fast", "lazy-balanced", "lazy-wide")
DEFAULT_MODES = (*LEGS, "showcase", "baseline", *LAZY)
JUDGED_MODES = ("baseline", "lazy-balanced")
# Several passages of the product may stand for one of the set, so more are asked for than are measured.
_ASKED = 20
_RRF_K = 60
_LEG_SIZE = 200

Ask = Callable[[str], Awaitable[Sequence[PassageEvidence]]]


@dataclass(frozen=True)
class ModeResult:
    """Figures of one mode on one set: a row of `MEASURES` per question, and milliseconds of the first question and of
    the others (median)."""

    rows: Sequence[Sequence[float]]
    first_ms: float
    warm_ms: float
    judgement: Judgement | None = None

    def column(self, name: str) -> list[float]:
        place = MEASURES.index(name)
        return [row[place] for row in self.rows]

    def mean(self, name: str) -> float:
        return float(np.mean(self.column(name)))


@dataclass(frozen=True)
class SetResult:
    """All modes on one set; a mode that could not be asked is missing, with its reason in `failures`."""

    evaluation: EvaluationSet
    passages: int
    modes: Mapping[str, ModeResult]
    failures: Mapping[str, str]


async def evaluate(
    database: Database,
    indexed: IndexedSet,
    evaluation: EvaluationSet,
    modes: Sequence[str],
    judge: Judge | None = None,
) -> SetResult:
    """Every question in every mode. The embeddings of the questions are made beforehand and not timed.

    `judge` marks the evidence of `JUDGED_MODES`, of sets that are not derived from another.
    """
    await indexed.workspace.embedding.embed([question.text for question in evaluation.questions], role="query")
    found: dict[str, ModeResult] = {}
    failures: dict[str, str] = {}
    for mode in modes:
        if mode in GRAPH_MODES:
            failures[mode] = "the evaluation builds no graph yet, so graph modes have nothing to answer from"
            continue
        try:
            is_judged = mode in JUDGED_MODES and not evaluation.variant
            ask = _asker(database, indexed, mode)
            found[mode] = await _evaluate_mode(ask, indexed, evaluation, judge if is_judged else None)
        except AppError as error:
            failures[mode] = error.detail
    size = sum(len(document.passages) for document in evaluation.documents)
    return SetResult(evaluation, size, found, failures)


async def _evaluate_mode(ask: Ask, indexed: IndexedSet, evaluation: EvaluationSet, judge: Judge | None) -> ModeResult:
    rows, times, evidence = [], [], []
    for question in evaluation.questions:
        started = time.perf_counter()
        passages = await ask(question.text)
        times.append((time.perf_counter() - started) * 1000)
        rows.append(measure(indexed.ids(passages), question.gold))
        evidence.append((question.text, passages))
    judgement = await judge.judge(evidence) if judge is not None else None
    return ModeResult(rows, times[0], float(np.median(times[1:] or times)), judgement)


def _asker(database: Database, indexed: IndexedSet, mode: str) -> Ask:
    workspace = indexed.workspace
    if mode not in LEGS and mode not in SHOWCASE_BUDGETS:
        search = LazySearch(database)

        async def ask(query: str) -> Sequence[PassageEvidence]:
            return (await search.search(workspace, SearchRequest(query, mode, top_k=_ASKED))).passages

        return ask

    showcase = ShowcaseIndex(indexed.texts, SHOWCASE_BUDGETS[mode]) if mode in SHOWCASE_BUDGETS else None

    async def ask_legs(query: str) -> Sequence[PassageEvidence]:
        vector = (await workspace.embedding.embed([query], role="query"))[0]
        async with database.tenant(workspace.ref.tenant_id) as session:
            lexical = await search_terms(session, workspace.ref, query, _LEG_SIZE)
            dense = await PassageVectors(workspace.vector_suffix).nearest(
                session, workspace.ref, vector, _LEG_SIZE, rows=lexical.corpus_passages
            )
            fused = _fuse(lexical.hits, dense.hits)
            if showcase is not None:
                ids = showcase.search(query, fused)
            else:
                ids = {"bm25": _order(lexical.hits), "vectors": _order(dense.hits), "rrf": fused}[mode]
            return await load_evidence(session, workspace.ref, ids[:_ASKED], engine="lazy")

    return ask_legs


def _order(hits: Sequence[Hit]) -> list[int]:
    return [hit.passage_id for hit in hits]


def _fuse(*legs: Sequence[Hit]) -> list[int]:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""
    scores: dict[int, float] = {}
    for leg in legs:
        for rank, hit in enumerate(leg, start=1):
            scores[hit.passage_id] = scores.get(hit.passage_id, 0.0) + 1 / (_RRF_K + rank)
    return sorted(scores, key=lambda passage_id: (-scores[passage_id], passage_id))
