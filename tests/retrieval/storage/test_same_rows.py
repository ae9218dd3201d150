"""LightRAG writes the same rows through units of work as through its own storages."""

from app.db.provision import DatabaseUrls
from tests.retrieval.storage.conftest import OpenEngine
from tests.retrieval.storage.harness import differences, make_documents, table_rows


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
