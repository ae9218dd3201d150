"""Neighbourhoods and paths are the same in both stores, on random graphs with hostile names."""

import random
from collections.abc import AsyncIterator
from typing import Any, cast

import asyncpg
import pytest

from app.retrieval.contract import EngineWorkspace, WorkspaceRef
from app.retrieval.lightrag.age.rows import AgeRows
from app.retrieval.lightrag.age.stores import AgeGraphReads, AgeReader, AgeSupportStore
from app.retrieval.lightrag.entities.walking import EntityWalking
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.rows_store import Key, Properties, TableRows
from app.retrieval.lightrag.search_store import GraphReader
from app.retrieval.lightrag.support_store import SupportStore
from tests.age.conftest import HOSTILE, fill, in_store, new_ref
from tests.factories import Tenancy

pytestmark = pytest.mark.age


# Made by hand, so that they may be shown; names that are too long for it stand for what may not.
TRUST = """
INSERT INTO lightrag_{kind}_chunks (id, workspace, chunk_ids, count)
SELECT id, $1, '["manual"]', 1 FROM unnest($2::text[]) u (id)"""


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_neighbours_and_paths_are_the_same_in_both_stores(
    pool: EngineDatabase, tenancy: Tenancy, seed: int
) -> None:
    ref = await new_ref(tenancy)
    size = {"entities": 150, "relations": 170, "seed": seed}
    names = await fill(TableRows(pool, ref), ref, **size)
    assert names == await fill(AgeRows(pool, ref), ref, **size)
    pairs = [key async for page in pages(TableRows(pool, ref), ref) for key in page]
    rng = random.Random(seed)
    hidden = rng.sample(pairs, 10)
    with inside(ref):
        await pool.fetch(TRUST.format(kind="entity"), ref.engine_name, [n for n in names if len(n) < 200])
        keys = ["<SEP>".join(pair) for pair in pairs if pair not in hidden and max(map(len, pair)) < 200]
        await pool.fetch(TRUST.format(kind="relation"), ref.engine_name, keys)
    walking = EntityWalking(pool, cast(Any, None), cast(Any, None))
    table, age = (workspace(in_store(ref, store)) for store in ("table", "age"))
    for name in [*HOSTILE, *rng.sample(names, 10)]:
        asked = {"depth": rng.randrange(1, 4), "limit": rng.choice((1, 7, 1000))}
        around = await walking.neighbours(table, name, **asked)
        assert await walking.neighbours(age, name, **asked) == around
    lengths = set()
    for _ in range(30):
        found = await walking.paths(table, *(ends := rng.sample(names, 2)), longest=6, limit=20)
        assert await walking.paths(age, *ends, longest=6, limit=20) == found
        lengths |= {len(path) for path in found.paths} or {0}
    assert 0 in lengths
    assert max(lengths) > 3


async def pages(rows: TableRows, ref: WorkspaceRef) -> AsyncIterator[list[tuple[str, ...]]]:
    with inside(ref):
        yield [key async for page in rows.pages("edges") for key, _ in page]


def workspace(ref: WorkspaceRef) -> EngineWorkspace:
    return EngineWorkspace(ref=ref, embedding=cast(Any, None), vector_suffix="none", chat=None, profile=cast(Any, None))


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
        assert await AgeGraphReads(pool, ref, ["ready"]).pairs_around(["Ada"], total=9) == []
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
