"""Random calls on the storages give the same answers and rows inside units as on LightRAG's own storages."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.db.provision import DatabaseUrls
from app.retrieval.lightrag.pool import engine_workspace
from app.retrieval.lightrag.storage.answer_keys import plain_key
from tests.retrieval.storage.conftest import OpenEngine
from tests.retrieval.storage.harness import Engine, differences, table_rows

NAMES = "ABCDEFGH"
STEPS = 120
TIMES = {"create_time", "update_time"}
Step = Callable[[Any], Awaitable[Any]]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["graph", "vectors", "rows"])
async def test_same_answers_and_rows(kind: str, seed: int, open_one: OpenEngine, urls: DatabaseUrls) -> None:
    make = {"graph": _graph_step, "vectors": _vector_step, "rows": _row_step}[kind]
    lot = random.Random(seed)
    stock, engine = await open_one(is_unit=False), await open_one(is_unit=True)
    for _ in range(6):
        steps = [make(lot) for _ in range(STEPS // 6)]
        with engine_workspace(stock.ref.engine_name):
            expected = [await step(stock.rag) for step in steps]
            for store in stock.rag._index_storages():
                await store.index_done_callback()
        async with engine.unit() as unit:
            answers = [await step(engine.rag) for step in steps]
            await unit.commit()
        assert answers == expected
        await _require_same_rows(stock, engine, urls)


async def _require_same_rows(stock: Engine, engine: Engine, urls: DatabaseUrls) -> None:
    expected = await table_rows(urls.owner, stock.ref.engine_name)
    assert differences(expected, await table_rows(urls.owner, engine.ref.engine_name)) == {}


def _graph_step(lot: random.Random) -> Step:
    one, other, number = lot.choice(NAMES), lot.choice(NAMES), lot.randint(0, 99)
    some = lot.sample(NAMES, 3)
    steps: list[Step] = [
        lambda rag: rag.chunk_entity_relation_graph.upsert_node(one, {"entity_id": one, f"p{number % 3}": number}),
        lambda rag: rag.chunk_entity_relation_graph.upsert_edge(some[0], some[1], {"weight": float(number)}),
        lambda rag: rag.chunk_entity_relation_graph.upsert_edge(some[1], some[0], {f"p{number % 3}": number}),
        lambda rag: rag.chunk_entity_relation_graph.delete_node(one),
        lambda rag: rag.chunk_entity_relation_graph.remove_nodes(some[:2]),
        lambda rag: rag.chunk_entity_relation_graph.remove_edges([(some[0], some[1]), (some[2], some[1])]),
        lambda rag: rag.chunk_entity_relation_graph.get_node(one),
        lambda rag: rag.chunk_entity_relation_graph.has_node(other),
        lambda rag: rag.chunk_entity_relation_graph.get_edge(one, other),
        lambda rag: rag.chunk_entity_relation_graph.has_edge(some[0], some[1]),
        lambda rag: rag.chunk_entity_relation_graph.get_node_edges(one),
        lambda rag: rag.chunk_entity_relation_graph.get_nodes_batch(some),
        lambda rag: rag.chunk_entity_relation_graph.get_edges_batch([{"src": some[1], "tgt": some[0]}]),
        lambda rag: rag.chunk_entity_relation_graph.get_nodes_edges_batch(some),
    ]
    weights = [4, 6, 6, 1, 1, 2, 3, 1, 3, 1, 3, 1, 1, 1]
    return lot.choices(steps, weights)[0]


def _vector_step(lot: random.Random) -> Step:
    one, other, number = lot.choice(NAMES), lot.choice(NAMES), lot.randint(0, 9)
    entity = {"entity_name": one, "content": f"{one} {number}", "source_id": "c1<SEP>c2"[: 2 + 7 * (number % 2)]}
    relation = {"src_id": one, "tgt_id": other, "content": f"{one}{other} {number}", "source_id": ""}
    chunk = {"tokens": 1, "chunk_order_index": 0, "full_doc_id": "d", "content": f"{one}", "file_path": "f"}

    async def read(rag: Any) -> list[str | None]:
        rows = await rag.relationships_vdb.get_by_ids([f"{one}{other}", f"{other}{one}"])
        return [row and row["content"] for row in rows]

    steps: list[Step] = [
        lambda rag: rag.entities_vdb.upsert({f"ent-{one}": dict(entity)}),
        lambda rag: rag.entities_vdb.delete([f"ent-{one}", f"ent-{other}"]),
        lambda rag: rag.entities_vdb.delete_entity(one),
        lambda rag: rag.relationships_vdb.upsert({f"{one}{other}": dict(relation)}),
        lambda rag: rag.relationships_vdb.delete([f"{one}{other}"]),
        lambda rag: rag.relationships_vdb.delete_entity_relation(one),
        lambda rag: rag.chunks_vdb.upsert({one: dict(chunk)}),
        lambda rag: rag.chunks_vdb.delete([one]),
        read,
    ]
    return lot.choices(steps, [6, 2, 1, 8, 2, 1, 3, 1, 5])[0]


def _row_step(lot: random.Random) -> Step:
    one, number = lot.choice(NAMES), lot.randint(0, 9)
    some = lot.sample(NAMES, 3)
    document: dict[str, Any] = {"content": f"text {number}", "file_path": f"{one}.txt"}
    document |= lot.choice([{}, {"content_hash": str(number)}, {"parse_format": ""}, {"chunk_options": {"n": number}}])
    chunk = {"tokens": number, "chunk_order_index": 0, "full_doc_id": "d", "content": "text", "file_path": "f"}

    async def append(rag: Any) -> None:
        row = await rag.text_chunks.get_by_id(one)
        if row is not None:
            row["llm_cache_list"].append(f"key {number}")
            await rag.text_chunks.upsert({one: row})

    async def read(rag: Any) -> list[Any]:
        found = []
        for store in (rag.full_docs, rag.text_chunks, rag.entity_chunks, rag.relation_chunks):
            for row in await store.get_by_ids(some):
                found.append(row and {name: _plain(value) for name, value in row.items() if name not in TIMES})
        return found

    steps: list[Step] = [
        lambda rag: rag.full_docs.upsert({one: dict(document)}),
        lambda rag: rag.full_docs.delete([one]),
        lambda rag: rag.text_chunks.upsert({one: dict(chunk)}),
        append,
        lambda rag: rag.text_chunks.delete(some),
        lambda rag: rag.entity_chunks.upsert({one: {"chunk_ids": [str(number)], "count": 1}}),
        lambda rag: rag.relation_chunks.upsert({one: {"chunk_ids": [], "count": 0}}),
        lambda rag: rag.entity_chunks.delete([one]),
        lambda rag: rag.entity_chunks.filter_keys(set(some)),
        read,
    ]
    return lot.choices(steps, [6, 1, 3, 3, 1, 3, 3, 1, 2, 4])[0]


def _plain(value: Any) -> Any:
    # Inside a unit a chunk asks for its answers by its own name.
    return [plain_key(part) for part in value] if isinstance(value, list) else value
