"""Finds and removes what nobody owns: rows of the graph engine, originals and temporary files without a row.

Tasks that outlive their document, and processes that are killed between two steps, leave such things. No query uses
them. Looking for them reads much, so it is done now and then; several may do it at once.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import structlog

from app.blobs.store import BlobStore
from app.db.session import Database
from app.domain.ingestion.purge_repository import StaleWork
from app.domain.ingestion.sweeper import SweepReport
from app.jobs import PurgeUnownedVersion, enqueue
from app.metrics import count_sweep
from app.parsing.service import SCRATCH_PREFIXES
from app.retrieval.contract import GraphIndex

logger = structlog.stdlib.get_logger(__name__)

MAX_ROWS = 500
GRAPHS_AT_ONCE = 100
KINDS = ("engine_version", "engine_workspace", "original", "upload", "scratch")


class LeftoverSweeper:
    """`age_seconds`: how old a file without a row must be; an original is written before its row."""

    def __init__(self, database: Database, blobs: BlobStore, graph_index: GraphIndex, age_seconds: float) -> None:
        self._database = database
        self._blobs = blobs
        self._graph_index = graph_index
        self._age = timedelta(seconds=age_seconds)

    async def sweep(self, *, is_dry_run: bool = False) -> SweepReport:
        """Remove what is found, or only count it. Raises BlobStoreUnavailable and what the database raises."""
        found: dict[str, int] = dict.fromkeys(KINDS, 0)
        versions, workspaces = await self._unowned_engine_rows()
        found |= {"engine_version": len(versions), "engine_workspace": len(workspaces)}
        if not is_dry_run:
            await self._remove_engine_rows(versions, workspaces)
        found["original"] = await self._originals(is_dry_run)
        found["upload"] = await self._blobs.remove_unfinished(self._age, is_dry_run=is_dry_run)
        found["scratch"] = await asyncio.to_thread(_remove_scratch, self._age, is_dry_run)
        handled: Mapping[str, int] = dict.fromkeys(KINDS, 0) if is_dry_run else found
        if not is_dry_run:
            count_sweep(found, handled)
        if sum(handled.values()):
            logger.warning("leftovers_removed", **{kind: count for kind, count in handled.items() if count})
        return SweepReport(found, handled)

    async def _unowned_engine_rows(self) -> tuple[Sequence[PurgeUnownedVersion], Sequence[UUID]]:
        async with self._database.system() as session:
            rows = list(await StaleWork(session).unowned_engine_rows(MAX_ROWS))
        graph: str | None = ""
        while graph is not None and len(rows) < MAX_ROWS:
            # Each part by itself, for a transaction keeps a lock on every table that it has read.
            async with self._database.system() as session:
                found, graph = await StaleWork(session).unowned_graph_rows(graph, GRAPHS_AT_ONCE, MAX_ROWS)
            rows += found
        named = {(row.tenant_id, row.workspace_id, row.version_id) for row in rows}
        versions = [PurgeUnownedVersion(*ids) for ids in named if ids[0] is not None]
        return versions, [workspace_id for tenant_id, workspace_id, _ in named if tenant_id is None]

    async def _remove_engine_rows(self, versions: Sequence[PurgeUnownedVersion], workspaces: Sequence[UUID]) -> None:
        for job in versions:
            # Under the workspace's lease, like every write of a graph.
            async with self._database.tenant(job.tenant_id) as session:
                enqueue(session, job)
        for workspace_id in workspaces:
            await self._graph_index.discard(workspace_id)

    async def _originals(self, is_dry_run: bool) -> int:
        count = 0
        async for keys in self._blobs.list_old(self._age):
            async with self._database.system() as session:
                unknown = await StaleWork(session).unknown_blob_keys(keys)
            count += len(unknown)
            if not is_dry_run:
                await self._blobs.delete(unknown)
        return count


def _remove_scratch(age: timedelta, is_dry_run: bool) -> int:
    """Folders that jobs of killed processes of this host left in its temporary folder."""
    count = 0
    for path in Path(tempfile.gettempdir()).iterdir():
        if path.name.startswith(SCRATCH_PREFIXES) and _is_older(path, age):
            count += 1
            if not is_dry_run:
                shutil.rmtree(path, ignore_errors=True)
    return count


def _is_older(path: Path, age: timedelta) -> bool:
    try:
        return time.time() - path.stat().st_mtime > age.total_seconds()
    except FileNotFoundError:
        return False
