"""What an ANN index costs and saves by a workspace's size: `make bench-vectors`. The threshold in app/db/vector_partitions.py is read off it.

Runs on servers of its own with tables as an embedding profile has them; vectors are clustered like those of texts. Times
are the CPU time of the server's process, which a busy machine falsifies less than the clock does.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
import numpy.typing as npt
from lightrag.kg.postgres_impl import SQL_TEMPLATES
from pgvector import Vector
from pgvector.asyncpg import register_vector

from app.db.provision import DatabaseUrls, provision_database
from app.db.schema import upgrade_schema
from app.db.session import Database
from app.db.vector_partitions import PartitionWork, VectorPartitions
from app.db.vector_tables import create_vector_tables
from app.devstack.run_folders import close_run_folder, open_run_folder
from app.devstack.servers import Servers

Matrix = npt.NDArray[np.float32]

QUESTIONS = 20
WANTED = 20
BATCH = 200
CLUSTERS = 200

WORKSPACE = """
WITH tenant AS (INSERT INTO tenants (name) VALUES ($1) RETURNING id), profile AS (
  INSERT INTO model_profiles (name, role, provider, model, dimension, table_suffix)
  VALUES ($1, 'embedding', 'offline', 'bench', 1, $1) RETURNING id)
INSERT INTO workspaces (tenant_id, name, engines, default_mode, settings, index_profile_hash, embedding_profile_id)
SELECT tenant.id, 'bench', '{lazy}', 'lazy', '{}', '', profile.id FROM tenant, profile RETURNING id
"""
INSERT = """
INSERT INTO {table} (workspace, id, entity_name, content, content_vector)
SELECT $1, u.id, u.id, repeat('a description ', 20), u.vector FROM unnest($2::text[], $3::vector[]) u (id, vector)
"""


@dataclass(frozen=True)
class Bench:
    """The table of entities of one dimension, and connections as who owns and who serves."""

    owner: asyncpg.Connection
    engine: asyncpg.Connection
    database: Database
    table: str
    corpus: Matrix
    questions: Matrix

    async def add_workspace(self, name: str) -> UUID:
        """A workspace of a tenant of its own."""
        found: UUID = await self.owner.fetchval(WORKSPACE, f"{self.table}_{name}")
        return found

    async def insert(self, workspace: UUID, first: int, last: int) -> float:
        """Insert vectors of the corpus in statements of `BATCH` rows; milliseconds for a thousand."""
        await self._enter(workspace)
        before = self._cpu_ms()
        for start in range(first, last, BATCH):
            numbers = range(start, min(last, start + BATCH))
            vectors = [Vector(self.corpus[number]) for number in numbers]
            ids = [f"ent-{number:032d}" for number in numbers]
            await self.engine.execute(INSERT.format(table=self.table), engine_name(workspace), ids, vectors)
        return (self._cpu_ms() - before) * 1000 / (last - first)

    async def search(self, workspace: UUID) -> tuple[float, list[set[str]]]:
        """LightRAG's own statement for each question: median milliseconds, and the names found."""
        await self._enter(workspace)
        statement = SQL_TEMPLATES["entities"].format(table_name=self.table, vector_cast="vector")
        times, found = [], []
        for question in (*self.questions[:3], *self.questions):
            before = self._cpu_ms()
            rows = await self.engine.fetch(statement, engine_name(workspace), 2.0, WANTED, question)
            times.append(self._cpu_ms() - before)
            found.append({row["entity_name"] for row in rows})
        return median(times[3:]), found[3:]

    async def split(self, workspace: UUID) -> float:
        """Give the workspace a partition; seconds."""
        started = time.perf_counter()
        async with self.database.system() as session:
            await VectorPartitions(session).tend(PartitionWork(self.table, workspace))
        return time.perf_counter() - started

    def _cpu_ms(self) -> float:
        """What the engine's server process has used so far (Linux keeps it in nanoseconds)."""
        return int(Path(f"/proc/{self.engine.get_server_pid()}/schedstat").read_text().split()[0]) / 1e6

    async def _enter(self, workspace: UUID) -> None:
        await self.engine.execute("SELECT set_config('app.workspace', $1, false)", engine_name(workspace))


def engine_name(workspace: UUID) -> str:
    return f"w_{workspace.hex}"


def clustered(generator: np.random.Generator, centres: Matrix, count: int) -> Matrix:
    """Unit vectors around centres, with a cosine of about 0.7 to them."""
    spread = generator.normal(size=(count, centres.shape[1])) / np.sqrt(centres.shape[1])
    found = centres[generator.integers(0, len(centres), count)] + spread
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)


async def measure(bench: Bench, sizes: Sequence[int], index_up_to: int) -> None:
    """Print a line per size: one workspace that grows in the shared partition, and a copy of it with an index."""
    print("  rows  compare ms  1,000 inserts, no index  HNSW ms  recall@20  1,000 inserts, HNSW  split, s", flush=True)
    workspace, before = await bench.add_workspace("grown"), 0
    for size in sizes:
        insert_plain = await bench.insert(workspace, before, size)
        before = size
        await bench.owner.execute(f"VACUUM ANALYZE {bench.table}_rest")
        compare_ms, exact = await bench.search(workspace)
        plain = f"{size:6d}  {compare_ms:10.1f}  {insert_plain:25.0f}"
        print(plain + (await with_index(bench, size, exact) if size <= index_up_to else ""), flush=True)
    small = await bench.add_workspace("small")
    await bench.insert(small, sizes[-1], sizes[-1] + 30)
    small_ms, found = await bench.search(small)
    full = sum(len(names) == WANTED for names in found)
    print(f"a workspace of 30 beside {sizes[-1]}: {full} of {QUESTIONS} searches full, {small_ms:.1f} ms", flush=True)


async def with_index(bench: Bench, size: int, exact: Sequence[set[str]]) -> str:
    """The same rows in a workspace with an index of its own: the rest of the line."""
    copy = await bench.add_workspace(f"indexed_{size}")
    await bench.insert(copy, 0, size)
    split_seconds = await bench.split(copy)
    index_ms, found = await bench.search(copy)
    recall = sum(len(a & b) for a, b in zip(exact, found, strict=True)) / (WANTED * QUESTIONS)
    insert_hnsw = await bench.insert(copy, size, size + 1000)
    # The copy's partition goes as it would go in production: with its workspace.
    await bench.owner.execute("DELETE FROM workspaces WHERE id = $1", copy)
    await bench.split(copy)
    return f"  {index_ms:7.1f}  {recall:9.3f}  {insert_hnsw:19.0f}  {split_seconds:8.1f}"


async def run(urls: DatabaseUrls, dimension: int, sizes: Sequence[int], index_up_to: int) -> None:
    """All sizes for one dimension."""
    suffix = f"bench_{dimension}d"
    owner_database, app = Database(urls.owner, pool_size=1), Database(urls.app, pool_size=1)
    async with owner_database.system() as session:
        await create_vector_tables(session, suffix, dimension)
    settings: dict[str, Any] = {
        "hnsw.iterative_scan": "strict_order",
        "hnsw.ef_search": "100",
        "plan_cache_mode": "force_custom_plan",
    }
    owner, engine = await asyncpg.connect(urls.owner), await asyncpg.connect(urls.engine, server_settings=settings)
    await register_vector(engine)
    generator = np.random.default_rng(7)
    centres = generator.normal(size=(CLUSTERS, dimension)).astype(np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    corpus, questions = (clustered(generator, centres, count) for count in (sizes[-1] + 1000, QUESTIONS))
    print(f"\n{dimension} dimensions", flush=True)
    await measure(Bench(owner, engine, app, f"lightrag_vdb_entity_{suffix}", corpus, questions), sizes, index_up_to)
    for connection in (owner, engine):
        await connection.close()
    for database in (owner_database, app):
        await database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dimensions", default="384,512")
    parser.add_argument("--sizes", default="1000,5000,10000,20000,50000")
    parser.add_argument("--index-up-to", type=int, default=50_000, help="no index for larger sizes, which takes long")
    arguments = parser.parse_args()
    folder = open_run_folder("bench-runs")
    servers = Servers(folder / "servers")
    try:
        servers.start()
        urls = asyncio.run(provision_database(servers.postgres.url(), "bench", servers.secrets.roles))
        upgrade_schema(urls.owner)
        for dimension in arguments.dimensions.split(","):
            sizes = [int(size) for size in arguments.sizes.split(",")]
            asyncio.run(run(urls, int(dimension), sizes, arguments.index_up_to))
    finally:
        servers.stop()
        close_run_folder(folder)


if __name__ == "__main__":
    main()
