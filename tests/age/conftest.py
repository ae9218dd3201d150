"""Graphs in both stores of one workspace, filled past LightRAG with rows that it could have written."""

import random
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from lightrag.kg.postgres_impl import ClientManager
from sqlalchemy import text

from app.retrieval.contract import WorkspaceRef
from app.retrieval.lightrag.pool import EngineDatabase, inside, open_engine_database
from app.retrieval.lightrag.rows_store import Rows
from app.settings import Settings
from tests.factories import Tenancy

HOSTILE = (
    "the \"Blue\" Book", "O'Neill's", "back\\slash\\", "$$ price $cypher$ $1", "curly {braces} {graph} {0} %s",
    "a\nline\tbreak", "🚀 Rocket 🧑🏽‍🚀", "شركة النور", "'; DROP TABLE x; --", "`tick`", "名" * 300, "x" * 600, "//*", "\\u0041",
    '"', "null", "12", "true", "::vertex", "{\"id\": 1}::vertex",
)  # fmt: skip


@pytest.fixture(scope="module")
async def pool(settings: Settings) -> AsyncIterator[EngineDatabase]:
    pool = await open_engine_database(settings)
    yield pool
    await pool.close()


def engine_pool() -> EngineDatabase:
    """The pool of the container that is open."""
    database: EngineDatabase = ClientManager._instances["db"]
    return database


async def new_ref(tenancy: Tenancy, graph_store: str = "table") -> WorkspaceRef:
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"), graph_store=graph_store)
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        number = await session.scalar(text("SELECT number FROM workspaces WHERE id = :id"), {"id": workspace_id})
    assert isinstance(number, int)
    return WorkspaceRef(tenancy.tenant_id, workspace_id, number)


def in_store(ref: WorkspaceRef, graph_store: str) -> WorkspaceRef:
    return replace(ref, graph_store="age" if graph_store == "age" else "table")


async def fill(rows: Rows, ref: WorkspaceRef, *, entities: int, relations: int, seed: int) -> list[str]:
    """Write a random graph, and give its names."""
    rng = random.Random(seed)
    names = [*HOSTILE, *(f"Name {number}" for number in range(entities - len(HOSTILE)))]
    said = (*HOSTILE, "plain text", "")
    nodes = {
        (name,): {
            "entity_id": name,
            "entity_type": rng.choice(("person", "place")),
            "description": rng.choice(said),
            "source_id": "<SEP>".join(f"chunk {rng.randrange(50)}" for _ in range(3)),
            "file_path": "a file",
            "created_at": rng.randrange(10**9),
        }
        for name in names
    }
    pairs = {(min(pair), max(pair)) for pair in (rng.sample(names, 2) for _ in range(relations))}
    edges = {
        pair: {"weight": rng.choice((1, 1.5, 2.0, 12)), "description": rng.choice(said), "keywords": "a,b"}
        for pair in pairs
    }
    with inside(ref):
        await rows.prepare()
        for kind, wanted in (("nodes", nodes), ("edges", edges)):
            keys = list(wanted)
            for start in range(0, len(keys), 500):
                await rows.write(kind, {key: wanted[key] for key in keys[start : start + 500]})  # type: ignore[arg-type, index]
    return names
