"""Answers of models on their way into the database."""

import asyncio
from typing import Any

from app.db.counting import StatementCount, counting_statements
from tests.retrieval.storage.conftest import OpenEngine


async def test_an_answer_that_was_asked_for_is_taken_without_the_database(open_one: OpenEngine) -> None:
    """LightRAG looks once more whether there is one before it hands over what the model said; the database may be away."""
    cache = (await open_one(is_unit=True)).rag.llm_response_cache
    key = "default:extract:2"

    async def look(count: StatementCount) -> tuple[Any, int]:
        before = count.statements
        return await cache.get_by_id(key), count.statements - before

    with counting_statements() as count:
        assert await look(count) == (None, 1)
        assert await look(count) == (None, 0)
        # Once only, and by the one who found nothing: another process may have written it meanwhile.
        assert await look(count) == (None, 1)
        assert await asyncio.create_task(look(count)) == (None, 1)
        await cache.upsert({key: {"return": "paid for"}})
        found, statements = await look(count)
    assert (found["return"], statements) == ("paid for", 0)
    await cache.flush()
