"""Puts documents where an upload would have put them, and reads back what ingestion made of them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

import asyncpg
from sqlalchemy import func, select, text, update

from app.blobs.store import BlobStore, blob_key
from app.db.base import TenantId, WorkspaceId
from app.db.models import Blob, Document, IndexState, ModelProfile, Version, Workspace
from app.db.session import Database
from app.jobs import IndexGraph, ProcessVersion, PurgeDocument
from app.retrieval.contract import Engine

OPEN = {"queued", "running"}


@dataclass(frozen=True)
class Upload:
    """One uploaded document."""

    tenant_id: TenantId
    workspace_id: WorkspaceId
    document_id: UUID
    version_id: UUID

    @property
    def process(self) -> ProcessVersion:
        return ProcessVersion(self.tenant_id, self.workspace_id, self.version_id)

    @property
    def purge(self) -> PurgeDocument:
        return PurgeDocument(self.tenant_id, self.workspace_id, self.document_id)

    @property
    def index_graph(self) -> IndexGraph:
        return IndexGraph(self.tenant_id, self.workspace_id, self.version_id)


@dataclass(frozen=True)
class Uploads:
    """Uploads to one tenant through its database and blob store."""

    database: Database
    blobs: BlobStore
    tenant_id: TenantId

    async def add(
        self,
        workspace_id: WorkspaceId,
        content: bytes | str,
        filename: str = "a.txt",
        *,
        engines: tuple[str, ...] = ("lazy",),
    ) -> Upload:
        """Original, rows, and an index state per engine; no job is sent."""
        blob_id = uuid4()
        stored = await self.blobs.put(
            blob_key(self.tenant_id, workspace_id, blob_id),
            _once(content.encode() if isinstance(content, str) else content),
        )
        ids = {"tenant_id": self.tenant_id, "workspace_id": workspace_id}
        document, version_id = Document(**ids, id=uuid4(), title=filename, filename=filename), uuid4()
        async with self.database.tenant(self.tenant_id) as session:
            session.add(Blob(**ids, id=blob_id, key=stored.key, sha256=stored.sha256, size_bytes=stored.size_bytes))
            session.add(document)
            await session.flush()
            session.add(
                Version(
                    **ids,
                    id=version_id,
                    document_id=document.id,
                    blob_id=blob_id,
                    ordinal=1,
                    media_type="",
                    index_profile_hash="",
                )
            )
            await session.flush()
            session.add_all(IndexState(**ids, version_id=version_id, engine=engine) for engine in engines)
        return Upload(self.tenant_id, workspace_id, document.id, version_id)

    async def replace(self, upload: Upload, content: str) -> Upload:
        """The next version of a document, as a replacement of its content would add it."""
        blob_id, version_id = uuid4(), uuid4()
        stored = await self.blobs.put(blob_key(self.tenant_id, upload.workspace_id, blob_id), _once(content.encode()))
        ids = {"tenant_id": self.tenant_id, "workspace_id": upload.workspace_id}
        async with self.database.tenant(self.tenant_id) as session:
            session.add(Blob(**ids, id=blob_id, key=stored.key, sha256=stored.sha256, size_bytes=stored.size_bytes))
            await session.flush()
            session.add(
                Version(
                    **ids, id=version_id, document_id=upload.document_id, blob_id=blob_id, ordinal=2, media_type="",
                    index_profile_hash="",
                )
            )  # fmt: skip
            await session.flush()
            session.add_all(IndexState(**ids, version_id=version_id, engine=engine) for engine in ("lazy", "graph"))
        return replace(upload, version_id=version_id)

    async def begin_deletion(self, upload: Upload) -> None:
        """What a deletion by the API leaves to the worker."""
        async with self.database.tenant(self.tenant_id) as session:
            await session.execute(
                update(Document).where(Document.id == upload.document_id).values(deleting_at=func.now())
            )

    async def state(self, upload: Upload, engine: Engine = "lazy") -> IndexState:
        async with self.database.tenant(self.tenant_id) as session:
            return (
                await session.scalars(
                    select(IndexState).where(IndexState.version_id == upload.version_id, IndexState.engine == engine)
                )
            ).one()

    async def count(self, table: str, upload: Upload) -> int:
        """Rows of `table` that name the upload's version."""
        async with self.database.tenant(self.tenant_id) as session:
            found = await session.scalar(
                text(f"SELECT count(*) FROM {table} WHERE version_id = :version"),
                {"version": upload.version_id},
            )
        return int(found or 0)

    async def scalar(self, statement: str, **parameters: Any) -> Any:
        async with self.database.tenant(self.tenant_id) as session:
            return await session.scalar(text(statement), parameters)

    async def settled(self, uploads: list[Upload], engine: Engine = "lazy") -> list[IndexState]:
        """Wait until every index is in a final state; the test's own time limit ends a wait that is in vain."""
        while True:
            states = [await self.state(upload, engine) for upload in uploads]
            if all(state.state not in OPEN for state in states):
                return states
            await asyncio.sleep(0.1)

    async def enters(self, upload: Upload, stage: str, engine: Engine = "lazy") -> None:
        """Wait until an attempt is at this stage."""
        while True:
            if (await self.state(upload, engine)).stage == stage:
                return
            await asyncio.sleep(0.02)

    async def change_settings(self, workspace_id: WorkspaceId, settings: dict[str, Any]) -> None:
        async with self.database.tenant(self.tenant_id) as session:
            await session.execute(update(Workspace).where(Workspace.id == workspace_id).values(settings=settings))

    async def engine_rows(self, workspace_id: WorkspaceId, engine_url: str) -> dict[str, int]:
        """Rows of the workspace in each of the graph engine's tables, but for cached answers of the model."""
        async with self._engine(workspace_id, engine_url) as connection:
            counts = {
                table: await connection.fetchval(
                    f"SELECT count(*) FROM {table} WHERE workspace = $1",
                    f"w_{workspace_id.hex}",
                )
                for table in await _engine_tables(connection)
                if not table.endswith("_cache")
            }
            for table in await _graph_tables(connection, workspace_id):
                counts[table] = await connection.fetchval(f"SELECT count(*) FROM {table}")
        return {table: count for table, count in counts.items() if count}

    async def engine_text(self, workspace_id: WorkspaceId, engine_url: str) -> str:
        """All that the graph engine holds of the workspace, as one text."""
        async with self._engine(workspace_id, engine_url) as connection:
            parts = [
                await connection.fetchval(
                    f"SELECT string_agg(t::text, '\n') FROM {table} t WHERE workspace = $1",
                    f"w_{workspace_id.hex}",
                )
                for table in await _engine_tables(connection)
            ]
            for table in await _graph_tables(connection, workspace_id):
                parts.append(await connection.fetchval(f"SELECT string_agg(t::text, '\n') FROM {table} t"))
        return "\n".join(part for part in parts if part)

    async def point_model(self, owner_database: Database, name: str, base_url: str) -> None:
        """Move a model profile to another endpoint."""
        async with owner_database.system() as session:
            await session.execute(update(ModelProfile).where(ModelProfile.name == name).values(base_url=base_url))

    @asynccontextmanager
    async def _engine(self, workspace_id: WorkspaceId, engine_url: str) -> AsyncIterator[asyncpg.Connection]:
        connection = await asyncpg.connect(engine_url)
        try:
            await connection.execute("SELECT set_config('app.workspace', $1, false)", f"w_{workspace_id.hex}")
            yield connection
        finally:
            await connection.close()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that a process does; the test's own time limit ends a wait that is in vain."""
    while True:
        if condition():
            return
        await asyncio.sleep(0.05)


async def _graph_tables(connection: "asyncpg.Connection", workspace_id: WorkspaceId) -> list[str]:
    """The tables of the workspace's graph in Apache AGE, if it has one; the connection is its role from now on."""
    graph = await connection.fetchval("SELECT graph_name($1)", workspace_id)
    if not await connection.fetchval("SELECT to_regnamespace($1) IS NOT NULL", graph):
        return []
    await connection.execute("SELECT set_config('role', $1, false)", graph)
    return [f"{graph}.base", f'{graph}."DIRECTED"']


async def _engine_tables(connection: asyncpg.Connection) -> list[str]:
    rows = await connection.fetch(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relname LIKE 'lightrag%'"
    )
    return [row["relname"] for row in rows]


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
