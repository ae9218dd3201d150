"""`make bench-lazy`: what the lazy index costs and how fast it answers, by size of the corpus, on servers of its own.

The index is measured through the product's own write path, one transaction a document of 20 passages, without files and
without a model: vectors are made up, and the embedding call is no part of any figure.
"""

import argparse
import asyncio
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import SecretStr
from sqlalchemy import text

from app.db.provision import provision_database
from app.db.schema import upgrade_schema
from app.db.session import Database
from app.db.vector_partitions import PartitionWork, VectorPartitions
from app.db.vector_tables import vector_table_names
from app.devstack.run_folders import close_run_folder, open_run_folder
from app.devstack.servers import Servers
from app.domain.models.offline import register_offline_models
from app.domain.models.service import ModelProfiles
from app.providers.contract import ModelProfile
from app.retrieval.contract import SearchRequest
from app.retrieval.lazy.engine import LazySearch
from app.retrieval.lazy.index import ConceptIndex
from app.settings import DEVELOPMENT_SECRET
from bench.corpus import IndexedSet, add_rows, analyse, open_workspace, prepare, write_documents
from bench.datasets import EvaluationSet, read_sets
from bench.lazy_corpus import DOCUMENT_PASSAGES, BasePassage, NoisyVectors, RenamedCopies
from bench.lazy_report import Answers, Cost, Indexing, Report, Sizes, render
from bench.sidebyside.meters import Group

MODES = ("baseline", "lazy-fast", "lazy-balanced", "lazy-wide")
QUESTIONS = 60
CHANGES = 20
NEIGHBOURS = 48
NEIGHBOUR_PASSAGES = 100
WRITERS = 2
OWN_PARTITION_FROM = 10_000
EMBEDDING = "offline-use"


@dataclass
class Bench:
    owner: Database
    database: Database
    postmaster: int
    embedding: NoisyVectors
    copies: RenamedCopies
    questions: Sequence[str]
    documents: dict[int, int] = field(default_factory=dict)  # made so far, by workspace number

    async def grow(self, indexed: IndexedSet, passages: int) -> Indexing:
        """Bring a workspace up to so many passages, one document a transaction, two writers at a time."""
        made = self.documents.get(indexed.workspace.ref.number, 0)
        numbers = range(made, passages // DOCUMENT_PASSAGES)
        prepared = prepare(indexed, [self.copies.document(number) for number in numbers])
        await self.embedding.remember([text for item in prepared for text in item.texts])
        self.documents[indexed.workspace.ref.number] = passages // DOCUMENT_PASSAGES
        await add_rows(self.database, indexed, prepared)
        server, started, spent = Group([self.postmaster]), time.perf_counter(), time.process_time()
        server.begin()
        halves = (prepared[half::2] for half in range(WRITERS))
        await asyncio.gather(
            *(write_documents(self.database, indexed, half, per_transaction=1, has_rows=True) for half in halves)
        )
        client_seconds, seconds = time.process_time() - spent, time.perf_counter() - started
        drafts = [draft for item in prepared for draft in item.drafts]
        characters = sum(len(draft.text) for draft in drafts)
        return Indexing(len(drafts), characters, seconds, client_seconds, server.cost().cpu_seconds)

    async def settle(self, indexed: IndexedSet) -> None:
        """What beat and autovacuum do in the background."""
        if self.documents[indexed.workspace.ref.number] * DOCUMENT_PASSAGES > OWN_PARTITION_FROM:
            table = vector_table_names(indexed.workspace.vector_suffix)[-1]
            async with self.database.system() as session:
                await VectorPartitions(session).tend(PartitionWork(table, indexed.workspace.ref.workspace_id))
        await analyse(self.owner)
        await self._vacuum()

    async def _vacuum(self) -> None:
        async with self.owner.engine.connect() as connection:
            plain = await connection.execution_options(isolation_level="AUTOCOMMIT")
            for table in ("concept_postings", "term_postings", "lazy_passages", "passages"):
                await plain.execute(text(f"VACUUM ANALYZE {table}"))

    async def ask(self, indexed: IndexedSet, mode: str) -> Answers:
        """Every question once, after a first round that is not counted; milliseconds by leg."""
        search, found = LazySearch(self.database), Answers(mode)
        await self.embedding.remember(self.questions)
        for is_counted in (False, True):
            server, spent = Group([self.postmaster]), time.process_time()
            server.begin()
            for question in self.questions:
                result = await search.search(indexed.workspace, SearchRequest(question, mode))
                if is_counted:
                    found.add(result.stage_ms)
            cpu_seconds = time.process_time() - spent + server.cost().cpu_seconds
            found.cpu_ms = 1000 * cpu_seconds / len(self.questions)
        return found

    async def change(self, indexed: IndexedSet) -> tuple[Cost, Cost]:
        """Add one document of 20 passages and remove it, again and again; milliseconds."""
        made = self.documents[indexed.workspace.ref.number]
        added, removed = Cost(), Cost()
        for number in range(made, made + CHANGES):
            prepared = prepare(indexed, [self.copies.document(number)])
            await self.embedding.remember(prepared[0].texts)
            with added.measured():
                [document] = await write_documents(self.database, indexed, prepared, per_transaction=1)
            with removed.measured():
                await self._remove(indexed, document.id)
        return added, removed

    async def _remove(self, indexed: IndexedSet, document_id: object) -> None:
        async with self.database.tenant(indexed.workspace.ref.tenant_id) as session:
            version_id = await session.scalar(
                text("SELECT id FROM versions WHERE document_id = :id"), {"id": document_id}
            )
            await ConceptIndex().remove(session, indexed.workspace.ref, version_id)
            await session.execute(text("DELETE FROM documents WHERE id = :id"), {"id": document_id})

    async def sizes(self) -> Sizes:
        """Bytes of each table of the index with its own indexes, and the rows of passages there are."""
        async with self.owner.system() as session:
            found = await session.execute(text(_SIZES))
            rows = {row.name: int(row.bytes) for row in found}
            passages = await session.scalar(text("SELECT count(*) FROM passages"))
            characters = await session.scalar(text("SELECT sum(length(text)) FROM passages"))
        return Sizes(rows, int(passages or 0), int(characters or 0))


_SIZES = """
SELECT regexp_replace(COALESCE(parent.relname, c.relname), '_(rest|w_[0-9a-f]+)$', '') AS name,
       sum(pg_total_relation_size(c.oid)) AS bytes
  FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class parent ON parent.oid = i.inhparent
 WHERE c.relkind = 'r' AND (c.relname IN ('passages', 'lazy_passages', 'lazy_versions', 'concept_postings', 'term_postings')
       OR parent.relname LIKE 'passage_vectors%')
 GROUP BY 1
"""


async def run(bench: Bench, sizes: Sequence[int]) -> Report:
    """One workspace that grows alone; then 48 small ones and one more that grows beside them."""
    report = Report(sizes)
    alone = await open_workspace(bench.owner, bench.database, bench.embedding)
    for size in sizes:
        report.indexing[size] = await bench.grow(alone, size)
        await bench.settle(alone)
        report.sizes[size] = await bench.sizes()
        await _measure(bench, alone, report, size, "alone")
    for _ in range(NEIGHBOURS):
        neighbour = await open_workspace(bench.owner, bench.database, bench.embedding)
        await bench.grow(neighbour, NEIGHBOUR_PASSAGES)
    beside = await open_workspace(bench.owner, bench.database, bench.embedding)
    for size in sizes[:-1]:
        await bench.grow(beside, size)
        await bench.settle(beside)
        await _measure(bench, beside, report, size, "one of 50")
    await _measure(bench, alone, report, sizes[-1], "one of 50")
    report.peak_megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return report


async def _measure(bench: Bench, indexed: IndexedSet, report: Report, size: int, where: str) -> None:
    for mode in MODES:
        report.answers[size, where, mode] = await bench.ask(indexed, mode)
    report.changes[size, where] = await bench.change(indexed)
    print(f"{size} passages, {where}: measured", flush=True)


def base_passages(data: Path) -> tuple[list[BasePassage], list[str]]:
    """English passages of the sets of a folder, and questions about them."""
    found: list[EvaluationSet] = [item for item in read_sets(data, [], QUESTIONS) if item.is_multi_hop]
    passages = [BasePassage(document.title, document.text) for item in found for document in item.documents]
    return passages, [question.text for item in found for question in item.questions][:QUESTIONS]


@contextmanager
def servers_of_its_own() -> Iterator[Servers]:
    folder = open_run_folder("bench-runs")
    servers = Servers(folder / "servers")
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()
        close_run_folder(folder)


async def measure(servers: Servers, data: Path, sizes: Sequence[int]) -> Report:
    """Everything, on a fresh database."""
    urls = await provision_database(servers.postgres.url(), "bench", servers.secrets.roles)
    await asyncio.to_thread(upgrade_schema, urls.owner)
    owner, database = Database(urls.owner, pool_size=1), Database(urls.app, pool_size=2)
    profiles = ModelProfiles(owner, SecretStr(DEVELOPMENT_SECRET))
    await register_offline_models(profiles)
    registered: ModelProfile = await profiles.get_by_name(EMBEDDING)
    passages, questions = base_passages(data)
    embedding = NoisyVectors(registered, registered.dimension or 0)
    postmaster = int((servers.postgres.data / "postmaster.pid").read_text().splitlines()[0])
    bench = Bench(owner, database, postmaster, embedding, RenamedCopies(passages), questions)
    try:
        return await run(bench, sizes)
    finally:
        await owner.close()
        await database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("tests/data/retrieval"))
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    with servers_of_its_own() as servers:
        page = render(asyncio.run(measure(servers, arguments.data, sizes)))
    print(page)
    if arguments.write:
        arguments.write.write_text(page)


if __name__ == "__main__":
    main()
