"""One process that touches workspace after workspace: cheap to open, nothing left behind.

`MANY_WORKSPACES=5000 pytest --log-cli-level=INFO` runs it at the size of a large installation and tells the figures.
"""

import asyncio
import gc
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from lightrag import LightRAG
from lightrag.kg import shared_storage

from app.db.base import TenantId, WorkspaceId
from app.db.session import Database
from app.retrieval.contract import EngineWorkspace, SearchRequest
from app.retrieval.lightrag.instances import InstancePool
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.search import GraphSearch
from app.retrieval.lightrag.stores import UNITS
from app.settings import Settings
from tests.factories import Tenancy
from tests.retrieval.lightrag.doubles import Corpus

logger = logging.getLogger(__name__)

WORKSPACES = int(os.environ.get("MANY_WORKSPACES", "300"))
# When memory is compared for the first time: pools, caches and code have their size by then.
SETTLED = max(100, WORKSPACES // 10)
GROWTH = 1.10
KEPT = 4
# What LightRAG keeps for the process itself, whatever its workspaces are.
SHARED_ENTRIES = 20


@pytest.fixture
async def few(settings: Settings, pool: EngineDatabase) -> AsyncIterator[InstancePool]:
    instances = InstancePool(settings.model_copy(update={"engine_instances": KEPT}), pool, UNITS)
    yield instances
    await instances.close()


def workspaces(database: Database, tenant_id: TenantId, count: int) -> Iterator[EngineWorkspace]:
    """Empty workspaces; what the engines hold of them needs no row of ours."""
    first = Corpus.of(database, tenant_id, WorkspaceId(uuid4()), 1).workspace
    for number in range(count):
        made = Corpus.of(database, tenant_id, WorkspaceId(uuid4()), number + 1).workspace
        # The models are the installation's, not the workspace's.
        yield EngineWorkspace(made.ref, made.profile, first.embedding, made.vector_suffix, first.chat)


@asynccontextmanager
async def noted_statements(pool: EngineDatabase) -> AsyncIterator[list[str]]:
    """The statements that are sent meanwhile, on the one connection that work in a row uses."""
    found: list[str] = []

    def note(record: Any) -> None:
        found.append(record.query)

    async with pool.pool.acquire() as connection:
        connection.add_query_logger(note)
    yield found
    async with pool.pool.acquire() as connection:
        connection.remove_query_logger(note)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def shared_entries() -> dict[str, int]:
    """How many entries the tables of LightRAG's module hold."""
    lock = shared_storage._storage_keyed_lock
    tables = {name: value for name, value in vars(shared_storage).items() if isinstance(value, dict) and name[0] == "_"}
    tables |= {f"lock.{name}": value for name, value in vars(lock).items() if isinstance(value, dict)}
    return {name: len(value) for name, value in tables.items() if not name.startswith("__")}


async def test_a_workspace_is_opened_by_two_statements_at_most_and_again_by_none(
    few: InstancePool, pool: EngineDatabase, tenancy: Tenancy
) -> None:
    first, second = workspaces(tenancy.database, tenancy.tenant_id, 2)
    async with noted_statements(pool) as sent:
        async with few.use(first):
            assert len(sent) <= 2
        sent.clear()
        async with few.use(first), few.use(second):
            assert sent == []


@pytest.mark.timeout(1200)
async def test_memory_does_not_grow_with_the_workspaces_that_were_touched(
    few: InstancePool, pool: EngineDatabase, tenancy: Tenancy
) -> None:
    search = GraphSearch(pool, tenancy.database, few)
    tasks = len(asyncio.all_tasks())
    settled = 0
    for number, workspace in enumerate(workspaces(tenancy.database, tenancy.tenant_id, WORKSPACES), 1):
        async with few.use(workspace) as instance:
            assert await instance.rag.full_docs.get_by_id("x") is None
        assert (await search.search(workspace, SearchRequest("Who founded Orbit Works?", "mix"))).passages == ()
        if number == SETTLED:
            gc.collect()
            settled, entries = resident_bytes(), shared_entries()
    gc.collect()
    grown = resident_bytes()
    logger.info("%d workspaces: %d MB after %d, %d MB at the end", WORKSPACES, settled >> 20, SETTLED, grown >> 20)
    assert grown < settled * GROWTH
    assert sum(isinstance(found, LightRAG) for found in gc.get_objects()) <= KEPT + 1
    assert len(asyncio.all_tasks()) <= tasks + 1
    more = {name: count for name, count in shared_entries().items() if count > entries.get(name, 0) + SHARED_ENTRIES}
    assert more == {}
