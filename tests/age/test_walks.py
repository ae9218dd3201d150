"""Neighbourhoods and paths are the same in both stores, on random graphs with hostile names."""

import random

import asyncpg
import pytest

from app.retrieval.lightrag.age.rows import AgeRows
from app.retrieval.lightrag.age.stores import AgeReader, AgeSupportStore
from app.retrieval.lightrag.graphs import walks
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.rows_store import Key, Properties, TableRows
from app.retrieval.lightrag.search_store import GraphReader
from app.retrieval.lightrag.support_store import SupportStore
from tests.age.conftest import HOSTILE, fill, in_store, new_ref
from tests.factories import Tenancy

pytestmark = pytest.mark.age


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_walks_are_the_same_in_both_stores(pool: EngineDatabase, tenancy: Tenancy, seed: int) -> None:
    ref = await new_ref(tenancy)
    size = {"entities": 150, "relations": 170, "seed": seed}
    names = await fill(TableRows(pool, ref), ref, **size)
    assert names == await fill(AgeRows(pool, ref), ref, **size)
    rng = random.Random(seed)
    lengths = set()
    with inside(ref):
        table, age = (walks(pool, in_store(ref, store)) for store in ("table", "age"))
        for name in [*HOSTILE, *rng.sample(names, 10), "nobody"]:
            depth = rng.randrange(4)
            limit = rng.choice((1, 7, 1000))
            found = await table.neighbourhood(name, depth=depth, limit=limit)
            assert await age.neighbourhood(name, depth=depth, limit=limit) == found
        for _ in range(30):
            ends = rng.choice(names), rng.choice([*names, "nobody"])
            path = await table.path(*ends, longest=6)
            assert await age.path(*ends, longest=6) == path
            lengths.add(None if path is None else len(path))
    assert None in lengths
    assert max(length or 0 for length in lengths) > 2


async def test_readers_find_the_same_in_the_same_order(pool: EngineDatabase, tenancy: Tenancy) -> None:
    ref = await new_ref(tenancy)
    size = {"entities": 120, "relations": 400, "seed": 9}
    names = await fill(TableRows(pool, ref), ref, **size)
    await fill(AgeRows(pool, ref), ref, **size)
    rng = random.Random(9)
    with inside(ref):
        table, age = GraphReader(pool, ref, "none"), AgeReader(pool, ref, "none")
        support, age_support = SupportStore(pool, ref), AgeSupportStore(pool, ref)
        for limit in (1, 5, 60, 1000):
            asked = [*rng.sample(names, 12), "nobody"]
            assert await age.entities(asked) == await table.entities(asked)
            assert await age.relations_of(asked, limit) == await table.relations_of(asked, limit)
            assert await age_support.existing(asked) == await support.existing(asked) == set(asked) - {"nobody"}


async def test_a_graph_that_is_not_there_yet_is_empty(pool: EngineDatabase, tenancy: Tenancy) -> None:
    ref = await new_ref(tenancy, "age")
    with inside(ref):
        assert await walks(pool, in_store(ref, "age")).neighbourhood("Ada", depth=2, limit=9) == []
        assert await AgeReader(pool, ref, "none").relations_of(["Ada"], 5) == []
        assert await AgeRows(pool, ref).read("nodes", [("Ada",)]) == {}


async def test_zero_bytes_are_refused_by_both_stores(pool: EngineDatabase, tenancy: Tenancy) -> None:
    ref = await new_ref(tenancy)
    node: dict[Key, Properties] = {("a",): {"entity_id": "a", "description": "a\0b"}}
    with inside(ref):
        for rows in (TableRows(pool, ref), AgeRows(pool, ref)):
            await rows.prepare()
            with pytest.raises(asyncpg.PostgresError):
                await rows.write("nodes", node)
