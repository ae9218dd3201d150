"""What a search finds: the same entities, relations and chunks, in the same order, as LightRAG's own context call."""

import hashlib
import random
from typing import Any

import numpy as np
import pytest
from lightrag import QueryParam

from app.providers.contract import Vectors
from app.retrieval.contract import GRAPH_MODES, Keywords, SearchRequest
from app.retrieval.lightrag.finding import Found, alternate, choose_chunks, find, within_budget
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.instances import InstancePool
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.search import _probes, _wanted
from app.retrieval.lightrag.search_store import GraphReader
from app.retrieval.lightrag.support_store import SupportStore
from tests.retrieval.lightrag.doubles import DIMENSION, Corpus, WordEmbedding, ignore

NAMES = [
    f"{first} {last}" for first in ("Amber", "Birch", "Cedar", "Delta", "Ember") for last in ("Mill", "Quay", "Row")
]
QUESTIONS = 12


class DistinctEmbedding(WordEmbedding):
    """Words, and a little of the whole text: no two texts are equally near to anything."""

    def vector(self, found: str) -> Vectors:
        seed = int.from_bytes(hashlib.sha256(found.encode()).digest()[:8], "big")
        mixed = super().vector(found) + 0.2 * np.random.default_rng(seed).standard_normal(DIMENSION)
        return np.asarray(mixed / np.linalg.norm(mixed), dtype=np.float32)


@pytest.fixture
async def filled(index: GraphWriter, corpus: Corpus) -> Corpus:
    """A workspace of fourteen documents that share their names, one of them a hub."""
    object.__setattr__(corpus.workspace, "embedding", DistinctEmbedding())
    lot = random.Random(5)
    for number in range(14):
        chunks = [f"Passage {order} of text {number}." for order in range(2)]
        for chunk in chunks:
            chosen = lot.sample(NAMES, 4)
            corpus.chat.answers[chunk] = _answer(chunk, lot, chosen)
        version = await corpus.add(*chunks)
        await index.extract(corpus.workspace, version, ignore)
        await index.insert(corpus.workspace, version, corpus.lease)
        await corpus.trust(version)
    return corpus


def _answer(chunk: str, lot: random.Random, names: list[str]) -> str:
    rows = [f"entity<|#|>{name}<|#|>Place<|#|>{name} in {chunk} {lot.random()}" for name in (*names, "Harbour Trust")]
    rows += [f"relation<|#|>Harbour Trust<|#|>{name}<|#|>owns<|#|>It owns {name}, {chunk}" for name in names]
    rows.append(f"relation<|#|>{names[0]}<|#|>{names[1]}<|#|>near<|#|>{names[0]} lies near {names[1]}, {chunk}")
    return "\n".join([*rows, "<|COMPLETE|>"])


@pytest.mark.parametrize("tokens", [6000, 250])
@pytest.mark.parametrize("mode", GRAPH_MODES)
async def test_the_same_is_found_as_by_lightrag(
    filled: Corpus, instances: InstancePool, pool: EngineDatabase, mode: str, tokens: int
) -> None:
    lot = random.Random(7)
    for _ in range(QUESTIONS):
        low, high = tuple(lot.sample(NAMES, 2)), (lot.choice(["owner of a mill", "near a quay", "rows and cedar"]),)
        request = SearchRequest(
            f"What about {low[0]} and {high[0]}?", mode, graph_top_k=lot.choice([3, 10]), keywords=Keywords(high, low),
            max_entity_tokens=tokens, max_relation_tokens=tokens,
        )  # fmt: skip
        expected = await stock(filled, instances, request)
        found = await ours(filled, pool, request)
        assert [row["entity_name"] for row in found.entities] == [row["entity_name"] for row in expected["entities"]]
        assert [_pair(row) for row in found.relations] == [_pair(row) for row in expected["relationships"]]
        assert list(found.chunks) == [row["chunk_id"] for row in expected["chunks"]]
        assert found.chunks


async def stock(corpus: Corpus, instances: InstancePool, request: SearchRequest) -> dict[str, Any]:
    assert isinstance(request.keywords, Keywords)
    wanted = _wanted(request, 1)
    parameters = QueryParam(
        mode=request.mode,
        only_need_context=True,
        top_k=wanted.top_k,
        chunk_top_k=wanted.chunks,
        max_entity_tokens=wanted.entity_tokens,
        max_relation_tokens=wanted.relation_tokens,
        max_total_tokens=10**9,
        hl_keywords=list(request.keywords.high),
        ll_keywords=list(request.keywords.low),
        enable_rerank=False,
    )
    async with instances.use(corpus.workspace) as instance:
        answer = await instance.rag.aquery_data(request.query, parameters)
    found: dict[str, Any] = answer["data"]
    return found


async def ours(corpus: Corpus, pool: EngineDatabase, request: SearchRequest) -> Found:
    assert isinstance(request.keywords, Keywords)
    reader = GraphReader(pool, corpus.workspace.ref, corpus.workspace.vector_suffix)
    with inside(corpus.workspace.ref):
        probes = await _probes(corpus.workspace, request, request.keywords)
        support = SupportStore(pool, corpus.workspace.ref)
        return await find(reader, support, request.mode, probes, _wanted(request, 1))


def _pair(row: dict[str, Any]) -> tuple[str, str]:
    return row["src_id"], row["tgt_id"]


async def test_relations_are_read_up_to_the_limit_best_connected_first(filled: Corpus, pool: EngineDatabase) -> None:
    reader = GraphReader(pool, filled.workspace.ref, filled.workspace.vector_suffix)
    with inside(filled.workspace.ref):
        everything = await reader.relations_of(["Harbour Trust", *NAMES], 10_000)
        few = await reader.relations_of(["Harbour Trust", *NAMES], 5)
    assert len(everything) > len(NAMES)
    assert [_pair(row) for row in few] == [_pair(row) for row in everything[:5]]
    assert all("Harbour Trust" in _pair(row) for row in few)


async def test_of_a_hub_only_the_relations_that_can_be_used_are_read(filled: Corpus, pool: EngineDatabase) -> None:
    with inside(filled.workspace.ref):
        await pool.fetch(_MANY_NODES, filled.workspace.ref.engine_name)
        await pool.fetch(_MANY_EDGES, filled.workspace.ref.engine_name)
        hub, limit = "Harbour Trust", 40
        read = await GraphReader(pool, filled.workspace.ref, filled.workspace.vector_suffix).relations_of([hub], limit)
    assert len(read) == limit
    # Those at whose other end something else hangs as well come before the thousands that only the hub knows.
    assert {name for row in read for name in _pair(row)} >= {hub, *NAMES}
    request = SearchRequest("What about the trust?", "local", keywords=Keywords(("trust",), (hub,)))
    found = await ours(filled, pool, request)
    assert hub in {row["entity_name"] for row in found.entities}
    assert found.relations


_MANY_NODES = """
INSERT INTO lightrag_graph_nodes (workspace, namespace, id, properties)
SELECT $1, 'chunk_entity_relation', 'Leaf ' || n, '{}' FROM generate_series(1, 2000) n
"""
_MANY_EDGES = """
INSERT INTO lightrag_graph_edges (workspace, namespace, src_id, tgt_id, properties)
SELECT $1, 'chunk_entity_relation', 'Harbour Trust', 'Leaf ' || n, '{"weight": 9.0, "description": "owns"}'
  FROM generate_series(1, 2000) n
"""


def test_lists_take_turns_and_equal_ones_count_once() -> None:
    assert alternate([[1, 2, 3], [2, 4], [5]], lambda number: number) == [1, 2, 5, 4, 3]


def test_a_budget_takes_whole_rows_until_one_does_not_fit() -> None:
    rows: list[dict[str, Any]] = [{"text": "one"}, {"text": "word " * 50}, {"text": "two"}]
    assert within_budget(rows, lambda row: row["text"], 10) == rows[:1]
    assert within_budget(rows, lambda row: row["text"], 0) == []
    assert within_budget(rows, lambda row: row["text"], 1000) == rows


def test_chunks_that_many_speak_of_come_first_and_none_twice() -> None:
    given = [["a", "b", "c"], ["b", "d"], ["b"]]
    assert choose_chunks(given)[:3] == ["b", "a", "c"]
    assert set(choose_chunks(given)) == {"a", "b", "c", "d"}
    assert choose_chunks(given, but={"a", "b"}) == ["c", "d"]
