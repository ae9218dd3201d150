"""Writes a workspace's graph through LightRAG: extraction ahead, insert, removal with proof, clearing.

LightRAG reports few of its failures; what counts here is what stands in the database afterwards.
"""

from asyncio import Event
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

from app.errors import AppError
from app.retrieval.contract import (
    EngineWorkspace,
    Extracted,
    GraphWriteFailed,
    Lease,
    OnChunk,
    Statement,
    Vector,
    VersionChunks,
    WorkspaceRef,
)
from app.retrieval.lightrag.alias_store import AliasStore
from app.retrieval.lightrag.departures import Departure
from app.retrieval.lightrag.edit_store import EditStore
from app.retrieval.lightrag.edits import apply_edits
from app.retrieval.lightrag.extraction import chunk_id, extract_chunks, read_answers
from app.retrieval.lightrag.graph_store import ANSWERS, GraphStore
from app.retrieval.lightrag.graphs import graph_store
from app.retrieval.lightrag.instances import DEFAULT_CONCURRENCY, Instance, InstancePool
from app.retrieval.lightrag.long_name_store import LongNames
from app.retrieval.lightrag.models import noted_failures
from app.retrieval.lightrag.pool import EngineDatabase, engine_workspace, inside
from app.retrieval.lightrag.repair import remove_rows, remove_support
from app.retrieval.lightrag.scope import ended_with_block
from app.retrieval.lightrag.storage.aliases import forgetting, resolved_names
from app.retrieval.lightrag.storage.commit import write_fenced
from app.retrieval.lightrag.storage.mentions import ReadChunk, delete_mentions, insert_mentions, recorded_extractions
from app.retrieval.lightrag.stores import Write, Writes


class GraphWriter:
    """`GraphIndex` over LightRAG."""

    def __init__(self, database: EngineDatabase, instances: InstancePool, writes: Writes) -> None:
        self._database = database
        self._instances = instances
        self._writes = writes

    def is_atomic(self, ref: WorkspaceRef) -> bool:
        return self._writes.are_atomic(ref)

    async def extract(
        self,
        workspace: EngineWorkspace,
        version: VersionChunks,
        on_chunk: OnChunk,
        *,
        until: Event | None = None,
        into: Extracted | None = None,
    ) -> None:
        async with self._instances.use(workspace) as instance:
            concurrency = workspace.chat.profile.max_concurrency if workspace.chat else DEFAULT_CONCURRENCY
            try:
                # Asking again for what is cached costs nothing.
                await extract_chunks(
                    instance.rag,
                    version,
                    version.chunks,
                    on_chunk,
                    concurrency=concurrency,
                    until=until,
                    into={} if into is None else into,
                )
            finally:
                await instance.rag.llm_response_cache.index_done_callback()

    async def insert(
        self,
        workspace: EngineWorkspace,
        version: VersionChunks,
        lease: Lease,
        *,
        extracted: Extracted | None = None,
        replaces: Sequence[UUID] = (),
        companions: Sequence[Statement] = (),
    ) -> None:
        version_id = str(version.version_id)
        async with self._instances.use(workspace) as instance, unspoiled(instance):
            rag, store = instance.rag, await self._writable(workspace)
            read: dict[int, ReadChunk] = dict(extracted or {})
            unread = [chunk for chunk in version.chunks if chunk.ordinal not in read]
            read |= await read_answers(rag, version, unread) if unread else {}
            chunks = tuple(chunk for chunk in version.chunks if chunk.ordinal in read)
            by_id = {chunk_id(version, chunk): read[chunk.ordinal] for chunk in chunks}
            if not chunks:
                raise GraphWriteFailed("no chunk of the document has been extracted", code="nothing_extracted")

            async def write(operation: Write) -> None:
                touched: set[str] = set()
                with resolved_names(self._database, workspace.ref) as names:
                    leftovers = await store.leftovers(version_id)
                    for leftover in leftovers:
                        touched |= await _remove(rag, store, leftover)
                    if not leftovers and not replaces:
                        operation.expect_new(version_id)
                    with noted_failures() as failures, recorded_extractions(by_id) as said:
                        track_id = await rag.ainsert(version_id, ids=[version_id], file_paths=[version_id])
                    await _require_processed(operation, version_id, track_id, failures)
                    for old in replaces:
                        touched |= await _remove(rag, store, str(old))
                    forgotten = await self._edit_again(rag, workspace, touched | said.names)
                await operation.commit(
                    [
                        *forgotten,
                        delete_mentions(workspace.ref, [version.version_id, *replaces]),
                        *insert_mentions(workspace.ref, list(said.mentions())),
                        *names.learning(),
                        *([forgetting(workspace.ref, touched)] if touched else []),
                        *LongNames(self._database, workspace.ref).forgetting(touched),
                        store.adoption(version_id),
                        *companions,
                    ]
                )

            async def known_vectors(_texts: Sequence[str]) -> Mapping[str, Vector]:
                return await store.vectors_of([str(old) for old in replaces])

            with instance.offered_chunks(replace(version, chunks=chunks)):
                async with ended_with_block():
                    await self._writes.run(rag, lease, write, lookup=known_vectors if replaces else None)

    async def remove(
        self, workspace: EngineWorkspace, version_id: UUID, lease: Lease, *, keep_answers: bool = False
    ) -> None:
        name = str(version_id)
        async with self._instances.use(workspace) as instance, unspoiled(instance):
            rag, store = instance.rag, await self._writable(workspace)
            if not await store.holds(name):
                return

            departure = Departure(self._database, workspace.ref, name)

            async def write(operation: Write) -> None:
                if not keep_answers:
                    await departure.read()
                with resolved_names(self._database, workspace.ref):
                    touched = await _remove(rag, store, name)
                    forgotten = await self._edit_again(rag, workspace, touched)
                names_gone = await departure.forgetting(rag, touched)
                long = LongNames(self._database, workspace.ref)
                names_gone += long.forgetting({*touched, *await long.said_in(name)})
                if not keep_answers:
                    await rag.llm_response_cache.delete(await store.answers_of(name))
                forgotten += [delete_mentions(workspace.ref, [version_id]), forgetting(workspace.ref, touched)]
                await operation.commit([*forgotten, *names_gone])

            async with ended_with_block():
                await self._writes.run(rag, lease, write)
                await departure.prove(lease)
            left = await store.traces(name)
            if keep_answers:
                left.pop(ANSWERS, None)
            if left:
                raise GraphWriteFailed(
                    "the graph still holds parts of the version", code="removal_incomplete", left=left
                )

    async def clear(self, workspace: EngineWorkspace, lease: Lease) -> None:
        with inside(workspace.ref):
            store = graph_store(self._database, workspace.ref, workspace.vector_suffix)
            clearing = await store.clearing()
            clearing.append(AliasStore(self._database, workspace.ref).forgetting_spellings())
            clearing += EditStore(self._database, workspace.ref).clearing()
            clearing.append(LongNames(self._database, workspace.ref).clearing())
            await write_fenced(self._database, lease, clearing)
            await store.empty()
            # A move that was broken off may have left one, whatever store the workspace uses.
            await self._database.fetch("SELECT drop_graph($1)", workspace.ref.workspace_id)

    async def discard(self, workspace_id: UUID) -> None:
        name = f"w_{workspace_id.hex}"
        with engine_workspace(name):
            for statement in await GraphStore(self._database, name, "").clearing():
                await self._database.fetch(statement.sql, *statement.values)
            await self._database.fetch("SELECT drop_graph($1)", workspace_id)

    async def _edit_again(self, rag: Any, workspace: EngineWorkspace, names: Collection[str]) -> list[Statement]:
        """Put what people say of these entities on top again; the statements forget what has nothing to stand on."""
        edits = EditStore(self._database, workspace.ref)
        return edits.deleting(await apply_edits(rag, await edits.touching(names)))

    async def _writable(self, workspace: EngineWorkspace) -> GraphStore:
        """The workspace's rows, to be written: where its graph is in Apache AGE it is made now."""
        store = graph_store(self._database, workspace.ref, workspace.vector_suffix)
        await store.open()
        return store


@asynccontextmanager
async def unspoiled(instance: Instance) -> AsyncIterator[None]:
    """A write that breaks off, by an error or by cancellation, takes its instance with it: buffers hold half of it."""
    is_whole = False
    try:
        yield
        is_whole = True
    finally:
        if not is_whole:
            instance.spoil()


async def _remove(rag: Any, store: GraphStore, version_id: str) -> set[str]:
    """Remove what the engine holds of the version, whatever state it is in; its cached answers stay.

    Returns the names of the entities that it supported.
    """
    await store.hand_on_shared_answers(version_id)
    touched = await store.touched(version_id)
    await remove_support(rag, touched, version_id)
    await remove_rows(rag, await store.documents_of(version_id), await store.chunks_of(version_id))
    return set(touched.entities)


async def _require_processed(operation: Write, version_id: str, track_id: str, failures: list[AppError]) -> None:
    try:
        await operation.require_processed(version_id, track_id)
    except GraphWriteFailed as error:
        if not failures:
            raise
        cause = failures[-1]
        raise GraphWriteFailed(f"a model failed: {cause.detail}", cause=cause.reason, **error.facts) from cause
