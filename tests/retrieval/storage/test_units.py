"""What a unit of work lets through, what it refuses, and what it costs."""

import asyncio
from uuid import UUID

import asyncpg
import pytest

from app.db.provision import DatabaseUrls
from app.retrieval.contract import GraphWriteFailed, Lease, LeaseLost, Statement, WorkspaceBusy
from app.retrieval.lightrag.graph_store import GraphStore
from app.retrieval.lightrag.pool import engine_workspace, inside
from app.retrieval.lightrag.storage import unit as unit_module
from app.retrieval.lightrag.storage.commit import write_fenced
from app.retrieval.lightrag.storage.context import (
    NameTooLong,
    NotInUnit,
    OutsideUnit,
    UnitClosed,
    UnitTooLarge,
    outside_unit,
)
from app.retrieval.lightrag.storage.mentions import delete_mentions, insert_mentions, recorded_extractions
from app.retrieval.lightrag.storage.weight import UnitLimits
from tests.retrieval.storage.conftest import OpenEngine
from tests.retrieval.storage.faults import before_statement
from tests.retrieval.storage.harness import (
    SUFFIX,
    TABLES,
    add_version,
    differences,
    hold_lease,
    make_documents,
    space_out_answers,
    table_rows,
)


async def test_writes_outside_a_unit_are_refused(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    engine = await open_one(is_unit=True)
    rag = engine.rag
    with engine_workspace(engine.ref.engine_name):
        for write in (
            lambda: rag.full_docs.upsert({"a": {"content": "text"}}),
            lambda: rag.text_chunks.delete(["a"]),
            lambda: rag.full_docs.drop(),
            lambda: rag.chunk_entity_relation_graph.upsert_node("A", {"entity_id": "A"}),
            lambda: rag.chunk_entity_relation_graph.remove_edges([("A", "B")]),
            lambda: rag.chunk_entity_relation_graph.drop(),
            lambda: rag.entities_vdb.upsert({"a": {"content": "text"}}),
            lambda: rag.relationships_vdb.delete_entity_relation("A"),
            lambda: rag.doc_status.upsert({"a": {}}),
            lambda: rag.doc_status.delete(["a"]),
        ):
            with pytest.raises(OutsideUnit):
                await write()
    assert not any((await table_rows(urls.owner, engine.ref.engine_name)).values())


async def test_calls_without_a_form_in_units_are_refused_there(open_one: OpenEngine) -> None:
    engine = await open_one(is_unit=True)
    rag = engine.rag
    async with engine.unit():
        for call in (
            lambda: rag.chunk_entity_relation_graph.node_degree("A"),
            lambda: rag.chunk_entity_relation_graph.get_all_labels(),
            lambda: rag.entities_vdb.query("A", 1),
            lambda: rag.chunks_vdb.get_vectors_by_ids(["a"]),
            lambda: rag.full_docs.is_empty(),
            lambda: rag.full_docs.drop(),
            lambda: rag.doc_status.get_status_counts(),
        ):
            with pytest.raises(NotInUnit):
                await call()


async def test_reads_see_what_the_unit_wrote_and_others_do_not(open_one: OpenEngine) -> None:
    engine = await open_one(is_unit=True)
    graph, chunks = engine.rag.chunk_entity_relation_graph, engine.rag.text_chunks
    async with engine.unit() as unit:
        await graph.upsert_edge("A", "B", {"weight": 1.0})
        assert await graph.get_node("A") == {"entity_id": "A"}
        await graph.upsert_node("A", {"entity_id": "A", "description": "first"})
        await graph.upsert_node("A", {"entity_id": "A", "entity_type": "thing"})
        assert await graph.get_node("A") == {"entity_id": "A", "description": "first", "entity_type": "thing"}
        assert await graph.get_node_edges("B") == [("B", "A")]
        await graph.delete_node("A")
        assert not await graph.has_edge("B", "A")
        assert await graph.has_node("B")
        await graph.upsert_node("A", {"entity_id": "A", "description": "second"})
        with engine_workspace(engine.ref.engine_name):
            assert await outside_unit(lambda: graph.get_nodes_batch(["A", "B"])) == {}
        await unit.commit()
    with engine_workspace(engine.ref.engine_name):
        assert await graph.get_node("A") == {"entity_id": "A", "description": "second"}
        assert await graph.get_node_edges("B") == []
        assert await chunks.get_by_id("nothing") is None


async def test_tasks_that_outlive_their_unit_are_refused(open_one: OpenEngine) -> None:
    engine = await open_one(is_unit=True)
    graph = engine.rag.chunk_entity_relation_graph
    gate = asyncio.Event()

    async def late() -> None:
        await gate.wait()
        await graph.upsert_node("late", {"entity_id": "late"})

    async with engine.unit():
        orphan = asyncio.create_task(late())
    async with engine.unit() as unit:
        gate.set()
        with pytest.raises(UnitClosed):
            await orphan
        await unit.commit()


async def test_answers_that_come_late_are_kept(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    engine = await open_one(is_unit=True)
    cache = engine.rag.llm_response_cache
    gate = asyncio.Event()

    async def late() -> None:
        await gate.wait()
        await cache.upsert({"default:extract:1": {"return": "paid for", "original_prompt": "long " * 1000}})

    async with engine.unit():
        orphan = asyncio.create_task(late())
    gate.set()
    await orphan
    assert (await cache.get_by_id("default:extract:1"))["return"] == "paid for"
    await cache.flush()
    (row,) = (await table_rows(urls.owner, engine.ref.engine_name, ("lightrag_llm_cache",)))["lightrag_llm_cache"]
    assert "paid for" in row
    assert "long" not in row


async def test_a_workspace_has_one_unit_at_a_time(open_one: OpenEngine) -> None:
    engine = await open_one(is_unit=True)
    async with engine.unit():
        with pytest.raises(WorkspaceBusy):
            await asyncio.create_task(_open_and_close(engine.unit()))


async def _open_and_close(unit: object) -> None:
    async with unit:  # type: ignore[attr-defined]
        pass


async def test_lease_of_somebody_else_opens_no_unit(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    engine = await open_one(is_unit=True)
    await hold_lease(urls.owner, engine.ref, "worker-2")
    with pytest.raises(LeaseLost):
        await _open_and_close(engine.unit())
    await hold_lease(urls.owner, engine.ref)
    newer = Lease(engine.ref, engine.lease.owner, epoch=7)
    with pytest.raises(LeaseLost):
        await _open_and_close(unit_module.open_unit(engine.rag, newer))


async def test_documents_left_in_progress_are_not_taken_up(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    engine = await open_one(is_unit=True)
    engine.chunks.update(make_documents(1))
    (document,) = engine.chunks
    connection = await asyncpg.connect(urls.owner)
    await connection.execute(
        "INSERT INTO lightrag_doc_status (workspace, id, status) VALUES ($1, 'stray', 'processing')",
        engine.ref.engine_name,
    )
    await connection.close()
    await engine.insert(document)
    rows = await table_rows(urls.owner, engine.ref.engine_name, ("lightrag_doc_status",))
    assert sorted('"processing"' in row for row in rows["lightrag_doc_status"]) == [False, True]


async def test_document_that_is_too_large_writes_nothing(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    engine = await open_one(is_unit=True)
    engine.chunks.update(make_documents(1))
    (document,) = engine.chunks
    with pytest.raises(UnitTooLarge):
        async with engine.unit(limits=UnitLimits(max_objects=40)) as unit:
            await engine.insert_into(unit, document)
    rows = await table_rows(urls.owner, engine.ref.engine_name)
    assert [table for table, found in rows.items() if found] == ["lightrag_llm_cache"]


async def test_duplicate_is_an_error_and_leaves_no_mark(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    engine = await open_one(is_unit=True)
    engine.chunks.update(make_documents(1))
    (document,) = engine.chunks
    await engine.insert(document)
    before = await table_rows(urls.owner, engine.ref.engine_name)
    with pytest.raises(GraphWriteFailed):
        await engine.insert(document)
    assert await table_rows(urls.owner, engine.ref.engine_name) == before


async def test_new_document_is_not_looked_for(
    open_one: OpenEngine, urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking, told = await open_one(is_unit=True), await open_one(is_unit=True)
    for engine in (asking, told):
        engine.chunks.update(make_documents(1))
    (document,) = told.chunks
    await asking.insert(document)

    async def refuse(*arguments: object) -> None:
        raise LookupError(f"asked for {arguments}")

    monkeypatch.setattr(told.rag.doc_status, "read_where", refuse)
    monkeypatch.setattr(told.rag.full_docs, "read_rows", refuse)
    async with told.unit() as unit:
        unit.expect_new(document)
        await told.insert_into(unit, document)
        await unit.commit()
    expected = await table_rows(urls.owner, asking.ref.engine_name)
    assert differences(expected, await table_rows(urls.owner, told.ref.engine_name)) == {}


async def test_long_names_are_stored_and_shown_whole(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    engine = await open_one(is_unit=True)
    rag, one, other = engine.rag, "A" * 256, "B" * 256
    key = f"{one}<SEP>{other}"
    async with engine.unit() as unit:
        await rag.chunk_entity_relation_graph.upsert_edge(one, other, {"weight": 1.0})
        await rag.relation_chunks.upsert({key: {"chunk_ids": ["c"], "count": 1}})
        with pytest.raises(NameTooLong):
            await rag.entity_chunks.upsert({"C" * 600: {"chunk_ids": ["c"], "count": 1}})
        await unit.commit()
    with engine_workspace(engine.ref.engine_name):
        assert (await rag.relation_chunks.get_by_id(key))["chunk_ids"] == ["c"]
        assert await rag.chunk_entity_relation_graph.get_node_edges(one) == [(one, other)]
    async with engine.unit() as unit:
        assert (await rag.relation_chunks.get_by_id(key))["id"] == key
        await rag.relation_chunks.delete([key])
        await unit.commit()
    rows = await table_rows(urls.owner, engine.ref.engine_name, ("lightrag_relation_chunks",))
    assert rows["lightrag_relation_chunks"] == []


async def test_statements_of_the_caller_go_in_with_the_unit(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    engine = await open_one(is_unit=True)
    sql = "UPDATE corpus_versions SET version = version + 1 WHERE tenant_id = $1 AND workspace_id = $2"
    bump = Statement(sql, (engine.ref.tenant_id, engine.ref.workspace_id))
    broken = Statement("UPDATE corpus_versions SET version = $1", (None,))
    async with engine.unit() as unit:
        with pytest.raises(asyncpg.PostgresError):
            await unit.commit([bump, broken])
    assert await _corpus_version(urls, engine.ref.workspace_id) == 0
    async with engine.unit() as unit:
        await unit.commit([bump])
    assert await _corpus_version(urls, engine.ref.workspace_id) == 1


async def test_known_vectors_are_not_embedded_again(open_one: OpenEngine) -> None:
    engine = await open_one(is_unit=True)
    engine.chunks.update(make_documents(1))
    (document,) = engine.chunks
    asked: list[str] = []

    async def lookup(texts: object) -> dict[str, list[float]]:
        asked.extend(texts)  # type: ignore[arg-type]
        return {text: [1.0] * 32 for text in texts}  # type: ignore[attr-defined]

    async with engine.unit(lookup=lookup) as unit:
        await engine.insert_into(unit, document)
        await unit.commit()
    assert len(asked) == len(set(asked)) > 20
    assert engine.calls.count["embed"] == 0


async def test_large_writes_are_split_inside_the_transaction(
    open_one: OpenEngine, urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_one(is_unit=True)
    engine.chunks.update(make_documents(2))
    first, second = engine.chunks
    statements = before_statement(monkeypatch, _nothing)
    await engine.insert(first)
    whole = len(statements)
    monkeypatch.setattr("app.retrieval.lightrag.storage.sql.MAX_ROWS", 5)
    await engine.insert(second)
    assert len(statements) - whole > whole + 10
    rows = await table_rows(urls.owner, engine.ref.engine_name, ("lightrag_doc_status", "lightrag_doc_chunks"))
    assert [len(found) for found in rows.values()] == [2, 6]


async def test_chunks_of_equal_text_each_get_the_answer_they_share(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    engine = await open_one(is_unit=True)
    (text,) = make_documents(1, chunks=1).values()
    first, second, third = make_documents(3)
    engine.chunks.update({first: text, second: text, third: make_documents(3)[third]})
    for document in engine.chunks:
        await engine.insert(document)
    await engine.change("adelete_by_doc_id", first)
    await engine.change("adelete_by_doc_id", third)
    rows = await table_rows(urls.owner, engine.ref.engine_name)
    assert first not in str(rows | {"lightrag_llm_cache": []})
    alone = await open_one(is_unit=True)
    alone.chunks.update({second: text})
    await alone.insert(second)
    expected = await table_rows(urls.owner, alone.ref.engine_name)
    for table in ("lightrag_graph_nodes", "lightrag_graph_edges", "lightrag_entity_chunks", "lightrag_relation_chunks"):
        # LightRAG joins keywords with a blank more when it rebuilds.
        assert [row.replace(", ", ",") for row in rows[table]] == [row.replace(", ", ",") for row in expected[table]]


async def test_replacing_a_document_is_one_write(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    stock, engine = await open_one(is_unit=False), await open_one(is_unit=True)
    documents = make_documents(4)
    *others, old, new = documents
    for one in (stock, engine):
        one.chunks.update(documents)
        for document in [*others, old, new]:
            await one.insert(document)
        # Its answers stay, so that their times can be settled.
        await one.change("adelete_by_doc_id", new)
    await space_out_answers(urls.owner, stock, engine)
    await stock.insert(new)
    await stock.change("adelete_by_doc_id", old)
    async with engine.unit() as unit:
        await engine.insert_into(unit, new)
        result = await engine.rag.adelete_by_doc_id(old)
        assert result.status == "success"
        await unit.commit()
    expected = await table_rows(urls.owner, stock.ref.engine_name)
    assert differences(expected, await table_rows(urls.owner, engine.ref.engine_name)) == {}


async def test_workspace_is_cleared_whole(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    engine, other = await open_one(is_unit=True), await open_one(is_unit=True)
    for one in (engine, other):
        one.chunks.update(make_documents(1))
        await one.insert(next(iter(one.chunks)))
    before = await table_rows(urls.owner, other.ref.engine_name)
    database = engine.rag.full_docs.db
    with inside(engine.ref):
        clearing = await GraphStore(database, engine.ref.engine_name, SUFFIX).clearing()
        await write_fenced(database, engine.lease, clearing)
    assert not any((await table_rows(urls.owner, engine.ref.engine_name, TABLES)).values())
    assert await table_rows(urls.owner, other.ref.engine_name) == before


async def test_each_chunks_words_are_stored_as_mentions(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    engine = await open_one(is_unit=True)
    documents = make_documents(2)
    engine.chunks.update(documents)
    first, second = (UUID(document) for document in documents)
    for version in (first, second):
        await add_version(urls.owner, engine.ref, version, chunks=3)
        async with engine.unit() as unit:
            with recorded_extractions() as said:
                await engine.insert_into(unit, str(version))
            await unit.commit([*insert_mentions(engine.ref, list(said.mentions()))])
    rows = await _mentions(urls, engine.ref.workspace_id)
    assert len(rows) == 2 * 3 * (10 + 9)
    entities = {(row["chunk_ordinal"], row["name"]) for row in rows if row["version_id"] == first and not row["target"]}
    chunk = documents[str(first)][1]
    assert {name for ordinal, name in entities if ordinal == 1} == set(chunk["content"].split(": ")[1].split("; "))
    async with engine.unit() as unit:
        await engine.rag.adelete_by_doc_id(str(first))
        await unit.commit([delete_mentions(engine.ref, [first])])
    assert {row["version_id"] for row in await _mentions(urls, engine.ref.workspace_id)} == {second}


async def _mentions(urls: DatabaseUrls, workspace_id: UUID) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(urls.owner)
    try:
        return list(await connection.fetch("SELECT * FROM mentions WHERE workspace_id = $1", workspace_id))
    finally:
        await connection.close()


async def _nothing(statement: int) -> None:
    """No fault: only count."""


async def _corpus_version(urls: DatabaseUrls, workspace_id: UUID) -> int:
    connection = await asyncpg.connect(urls.owner)
    try:
        return int(
            await connection.fetchval("SELECT version FROM corpus_versions WHERE workspace_id = $1", workspace_id)
        )
    finally:
        await connection.close()
