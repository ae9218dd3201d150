"""Moves a workspace's graph to another store while it is asked and written: copied first, switched under its lease, then given up."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from app.db.session import Database, TenantSession
from app.domain.ingestion.lease_repository import BEGIN_MOVING, END_MOVING
from app.domain.ingestion.leases import WorkspaceLeases, confirm
from app.domain.ingestion.repository import IngestionRepository
from app.domain.workspaces.errors import ModeNeedsEngine
from app.domain.workspaces.opening import WorkspaceOpener
from app.domain.workspaces.repository import WorkspaceRepository
from app.domain.workspaces.service import refuse_deleting
from app.errors import Conflict
from app.retrieval.contract import EngineWorkspace, GraphMoves, GraphStoreName, GraphStores, Lease, WorkspaceBusy

# Copies without the lease, until what is left is small: writers wait for the last one.
PASSES = 5
SMALL = 500
LEASE_WAIT_SECONDS = 120.0

Say = Callable[[str], None]


class DirectConnectionNeeded(Conflict):
    """A pooler that lends connections for a transaction stands in the way."""

    code = "direct_connection_needed"
    title = "A direct connection is needed"


@dataclass(frozen=True)
class Moved:
    """`rows` were compared one by one; 0 where the graph had been moved already."""

    rows: int


class GraphMove:
    """One workspace at a time. Broken off anywhere it is begun again and goes on with what is left."""

    def __init__(
        self,
        database: Database,
        workspaces: WorkspaceOpener,
        leases: WorkspaceLeases,
        stores: GraphStores,
        moves: GraphMoves,
    ) -> None:
        self._database = database
        self._workspaces = workspaces
        self._leases = leases
        self._stores = stores
        self._moves = moves

    async def run(
        self,
        tenant_id: UUID,
        workspace_id: UUID,
        to: GraphStoreName,
        say: Say,
        *,
        drain_seconds: float,
    ) -> Moved:
        """The old store is kept for `drain_seconds`: queries that began before the switch still read it.

        Raises WorkspaceNotFound, WorkspaceDeleting, GraphStoreUnavailable, WorkspaceBusy or a conflict of the copy.
        """
        await self._stores.require_available(to)
        async with self._alone(workspace_id):
            workspace = await self._open(tenant_id, workspace_id)
            rows = 0
            if workspace.ref.graph_store != to:
                rows = await self._move(workspace, to, say)
                say(f"{rows} rows are equal in both; the workspace uses {to} now")
                await asyncio.sleep(drain_seconds)
                workspace = await self._open(tenant_id, workspace_id)
            await self._give_up(workspace, to)
        return Moved(rows)

    @asynccontextmanager
    async def _alone(self, workspace_id: UUID) -> AsyncIterator[None]:
        """Be the workspace's only move, from the first copy to the end of the drain: what one takes for a copy is the
        graph itself to another. Raises WorkspaceBusy."""
        # Of the connection, which is held for the block and no longer than the process lives.
        async with self._database.statement() as session:
            values = {"workspace_id": workspace_id}
            if not await session.scalar(BEGIN_MOVING, values):
                raise WorkspaceBusy("another move of this workspace's graph is under way", retry_after_seconds=60)
            try:
                yield
            finally:
                await session.execute(END_MOVING, values)

    async def _open(self, tenant_id: UUID, workspace_id: UUID) -> EngineWorkspace:
        async with self._database.tenant(tenant_id) as session:
            record = await WorkspaceRepository(session).get(workspace_id)
        refuse_deleting(record.row)
        if "graph" not in record.row.engines:
            raise ModeNeedsEngine("The workspace has no graph to move.", engine="graph")
        return await self._workspaces.engine_workspace(record)

    async def _move(self, workspace: EngineWorkspace, to: GraphStoreName, say: Say) -> int:
        for number in range(1, PASSES + 1):
            changed = await self._moves.copy(workspace, to)
            say(f"pass {number}: {changed} rows changed")
            if changed <= SMALL:
                break
        async with self._leases.hold(workspace.ref, wait_seconds=LEASE_WAIT_SECONDS) as lease:
            async with self._confirmed(lease, workspace.ref.graph_store):
                pass
            await self._moves.copy(workspace, to)
            rows = await self._moves.verify(workspace, to)
            async with self._confirmed(lease, workspace.ref.graph_store) as session:
                await WorkspaceRepository(session).move_graph(workspace.ref.workspace_id, to)
                await IngestionRepository(session).bump_corpus(workspace.ref.workspace_id)
        return rows

    async def _give_up(self, workspace: EngineWorkspace, to: GraphStoreName) -> None:
        """Remove the store that was moved from, while nobody can move the graph back into it."""
        async with (
            self._leases.hold(workspace.ref, wait_seconds=LEASE_WAIT_SECONDS) as lease,
            self._confirmed(lease, to),
        ):
            await self._moves.give_up(workspace, "table" if to == "age" else "age")

    @asynccontextmanager
    async def _confirmed(self, lease: Lease, store: GraphStoreName) -> AsyncIterator[TenantSession]:
        """A transaction in which the graph is in `store`, and stays there. Raises LeaseLost, WorkspaceBusy."""
        async with self._database.tenant(lease.ref.tenant_id) as session:
            await confirm(session, lease)
            if await WorkspaceRepository(session).graph_store(lease.ref.workspace_id) != store:
                raise WorkspaceBusy("the graph was moved by somebody else meanwhile", retry_after_seconds=60)
            yield session
