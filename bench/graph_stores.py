"""Both graph stores side by side, on a Postgres with Apache AGE: `make bench-graph`.

    python -m bench.graph_stores [--sizes 1000,20000] [--documents 5] [--write docs/bench-graph.md]

Two workspaces are filled alike, through transactions on the tables; the second one's graph is then moved to AGE. After that each
takes in new documents, answers questions, merges entities and loses the documents again. Models are in process and free, so
all times are the store's and LightRAG's. Medians in milliseconds.
"""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from pydantic import SecretStr
from sqlalchemy import text

from app.db.provision import provision_database
from app.db.schema import upgrade_schema
from app.db.session import Database
from app.db.vector_tables import create_vector_tables
from app.devstack.run_folders import close_run_folder, open_run_folder
from app.devstack.servers import Servers
from app.domain.models.offline import register_offline_models
from app.domain.models.service import ModelProfiles
from app.retrieval.contract import EngineWorkspace, GraphStoreName, SearchRequest, VersionChunks
from app.retrieval.entity_contract import MergeRequest
from app.retrieval.lightrag.adapter import GraphEngine, open_graph_engine
from app.settings import DEVELOPMENT_SECRET, Settings
from deploy.prepare_age import server_programs
from tests.factories import Tenancy
from tests.retrieval.lightrag.doubles import DIMENSION, OWNER, SUFFIX, Corpus, ignore, records

STORES: Sequence[GraphStoreName] = ("table", "age")
NAMES_A_CHUNK = 16
CHUNKS_A_DOCUMENT = 4
FILL_CHUNKS = 40
MERGES = 5
QUESTIONS = 20
WARM_ENTITIES = 300
LEASE = "UPDATE workspace_leases SET owner = :owner, expires_at = now() + interval '1 hour' WHERE workspace_id = :id"
MOVED = "UPDATE workspaces SET graph_store = 'age' WHERE id = :id"


@dataclass(frozen=True)
class Row:
    """What one store took at one size."""

    entities: int
    store: str
    values: dict[str, float]


class Filled:
    """A workspace of a size. Names come again: every fourth one of a chunk is among the first hundred."""

    def __init__(self, engine: GraphEngine, corpus: Corpus) -> None:
        self.engine = engine
        self.corpus = corpus
        self._next = 0

    async def add(self, chunks: int) -> VersionChunks:
        texts = []
        for _ in range(chunks):
            names = []
            for number in range(NAMES_A_CHUNK):
                shared = number % 4 == 0
                names.append(f"Entity {self._next % 100 if shared else self._next}")
                self._next += not shared
            marker = f"chunk{self._next}of"
            self.corpus.chat.answers[marker] = records(f"{marker} says this of it.", names)
            texts.append(f"{marker} " + " ".join(names))
        version = await self.corpus.add(*texts)
        await self.engine.index.extract(self.corpus.workspace, version, ignore)
        await self.engine.index.insert(self.corpus.workspace, version, self.corpus.lease)
        await self.corpus.trust(version)
        self.corpus.chat.answers.clear()
        return version

    async def fill(self, entities: int) -> None:
        while self._next < entities:
            await self.add(FILL_CHUNKS)

    async def move(self) -> None:
        """To AGE, past the service that an operator would use: nobody else is here."""
        ref = self.corpus.workspace.ref
        await self.engine.moves.copy(self.corpus.workspace, "age")
        await self.engine.moves.verify(self.corpus.workspace, "age")
        async with self.corpus.database.tenant(ref.tenant_id) as session:
            await session.execute(text(MOVED), {"id": ref.workspace_id})
        moved: EngineWorkspace = replace(self.corpus.workspace, ref=replace(ref, graph_store="age"))
        self.corpus = replace(self.corpus, workspace=moved)
        await self.engine.moves.give_up(moved, "table")


async def measure(filled: Filled, documents: int) -> dict[str, float]:
    engine, corpus = filled.engine, filled.corpus
    added: list[VersionChunks] = []

    async def insert(_: int) -> None:
        added.append(await filled.add(CHUNKS_A_DOCUMENT))

    async def ask(mode: str, number: int) -> None:
        request = SearchRequest(f"How is Entity {number} related to Entity {number * 37 % 1000}?", mode)
        found = await engine.search.search(corpus.workspace, request)
        if not found.passages:
            raise SystemExit(f"{mode} found nothing")

    async def merge(number: int) -> None:
        request = MergeRequest((f"Entity {200 + 2 * number}",), f"Entity {201 + 2 * number}")
        await engine.entities.merge(corpus.workspace, request, corpus.lease)

    async def remove(number: int) -> None:
        await engine.index.remove(corpus.workspace, added[number].version_id, corpus.lease)

    found = {"insert": await timed(insert, documents)}
    for mode in ("local", "global", "mix"):
        await ask(mode, 0)
        found[mode] = await timed(lambda number, mode=mode: ask(mode, number), QUESTIONS)  # type: ignore[misc]
    found["merge"] = await timed(merge, MERGES)
    found["delete"] = await timed(remove, documents)
    return found


async def timed(work: Callable[[int], Awaitable[None]], times: int) -> float:
    taken = []
    for number in range(times):
        started = time.perf_counter()
        await work(number)
        taken.append((time.perf_counter() - started) * 1000)
    return median(taken)


async def run(sizes: Sequence[int], documents: int, folder: Path) -> list[Row]:
    rows = []
    async with opened(folder) as (engine, owner, app):
        # The first workspace is there to warm the process and the server, and is not told.
        for size in (WARM_ENTITIES, *sizes):
            for store in STORES:
                filled = Filled(engine, await make_corpus(owner, app))
                started = time.perf_counter()
                await filled.fill(size)
                if store == "age":
                    await filled.move()
                print(f"{size} entities, {store}: filled in {time.perf_counter() - started:.0f} s", flush=True)
                async with owner.system() as session:
                    await session.execute(text("ANALYZE"))
                rows.append(Row(size, store, await measure(filled, documents)))
                print(rows[-1], flush=True)
    return rows[len(STORES) :]


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[GraphEngine, Database, Database]]:
    servers = Servers(folder, for_tests=True, programs=server_programs(), settings={"shared_preload_libraries": "age"})
    await asyncio.to_thread(servers.start)
    try:
        urls = await provision_database(servers.postgres.url(), "bench", servers.secrets.roles, age=True)
        await asyncio.to_thread(upgrade_schema, urls.owner)
        owner, app = Database(urls.owner, pool_size=2), Database(urls.app, pool_size=5)
        await register_offline_models(ModelProfiles(owner, SecretStr(DEVELOPMENT_SECRET)))
        async with owner.system() as session:
            await create_vector_tables(session, SUFFIX, DIMENSION)
        settings = Settings(
            database_url=SecretStr(urls.app),
            engine_database_url=SecretStr(urls.engine),
            scratch_dir=folder / "scratch",
        )
        async with open_graph_engine(settings, app) as engine:
            yield engine, owner, app
        await owner.close()
        await app.close()
    finally:
        servers.stop()


async def make_corpus(owner: Database, app: Database) -> Corpus:
    tenancy = await Tenancy.create(owner, app)
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"))
    async with app.tenant(tenancy.tenant_id) as session:
        number = await session.scalar(text("SELECT number FROM workspaces WHERE id = :id"), {"id": workspace_id})
        await session.execute(text(LEASE), {"id": workspace_id, "owner": OWNER})
    return Corpus.of(app, tenancy.tenant_id, workspace_id, int(number or 0))


def table(rows: Sequence[Row]) -> str:
    measures = list(rows[0].values)
    lines = [f"| entities | store | {' | '.join(measures)} |", f"| ---: | --- |{' ---: |' * len(measures)}"]
    for row in rows:
        cells = " | ".join(f"{row.values[name]:,.0f}" for name in measures)
        lines.append(f"| {row.entities:,} | {row.store} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,20000")
    parser.add_argument("--documents", type=int, default=5, help=f"of {CHUNKS_A_DOCUMENT} chunks each")
    parser.add_argument("--write", type=Path, help="put the table into this file, between its marks")
    arguments = parser.parse_args()
    folder = open_run_folder("bench-graph")
    try:
        sizes = [int(size) for size in arguments.sizes.split(",")]
        rows = asyncio.run(run(sizes, arguments.documents, folder))
    finally:
        close_run_folder(folder)
    print(table(rows))
    if arguments.write:
        begin, end = "<!-- figures -->\n", "\n<!-- end of figures -->"
        before, rest = arguments.write.read_text().split(begin)
        arguments.write.write_text(before + begin + table(rows) + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
