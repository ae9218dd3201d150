"""LightRAG writes the same rows through units of work as through its own storages."""

from typing import Any

from app.db.provision import DatabaseUrls
from tests.retrieval.storage.conftest import OpenEngine
from tests.retrieval.storage.harness import Engine, differences, make_documents, space_out_answers, table_rows


async def test_inserts_leave_the_same_rows(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    documents = make_documents(6)
    stock, unit = await open_one(is_unit=False), await open_one(is_unit=True)
    for engine in (stock, unit):
        engine.chunks.update(documents)
        for document in documents:
            await engine.insert(document)
    expected = await table_rows(urls.owner, stock.ref.engine_name)
    assert all(expected.values())
    assert differences(expected, await table_rows(urls.owner, unit.ref.engine_name)) == {}


async def test_every_operation_leaves_the_same_rows(open_one: OpenEngine, urls: DatabaseUrls) -> None:
    documents = make_documents(8)
    ids = list(documents)
    steps: tuple[tuple[str, tuple[Any, ...], tuple[str, ...]], ...] = (
        (
            "amerge_entities",
            (["Amber Bridge", "Amber Castle"], "Amber Forest"),
            ("Amber Bridge", "Amber Castle", "Amber Forest"),
        ),
        ("aedit_entity", ("Amber Harbor", {"description": "A harbor of amber.", "entity_type": "place"}), ()),
        ("aedit_entity", ("Amber Island", {"entity_name": "Amber Isle"}), ("Amber Island", "Amber Isle")),
        ("adelete_by_doc_id", (ids[1],), ()),
        ("adelete_by_entity", ("Amber Meadow",), ("Amber Meadow",)),
        ("acreate_entity", ("Zinc Bridge", {"description": "New.", "entity_type": "place"}), ()),
        (
            "acreate_relation",
            ("Zinc Bridge", "Amber Harbor", {"description": "Beside.", "keywords": "beside", "weight": 2.0}),
            (),
        ),
        ("aedit_relation", ("Zinc Bridge", "Amber Harbor", {"description": "Near."}), ()),
        ("adelete_by_relation", ("Zinc Bridge", "Amber Harbor"), ()),
        ("adelete_by_doc_id", (ids[3],), ()),
    )
    stock, unit = await open_one(is_unit=False), await open_one(is_unit=True)
    for engine in (stock, unit):
        engine.chunks.update(documents)
        for document in ids:
            await engine.insert(document)
    for method, arguments, read_ahead in steps:
        await space_out_answers(urls.owner, stock, unit)
        for engine in (stock, unit):
            await engine.change(method, *arguments, read_ahead=read_ahead)
        await _require_same(stock, unit, urls, method)
    for engine in (stock, unit):
        await engine.insert(ids[1])
    await _require_same(stock, unit, urls, "insert again")


async def _require_same(stock: Engine, unit: Engine, urls: DatabaseUrls, step: str) -> None:
    expected = await table_rows(urls.owner, stock.ref.engine_name)
    assert differences(expected, await table_rows(urls.owner, unit.ref.engine_name)) == {}, step
