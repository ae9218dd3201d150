"""Which workspaces have outgrown the shared partitions of the vector tables, and moving each to one with its own ANN index.

Runs as the app's role through two functions of the owner (migration 0005), for no runtime role may change the schema.
"""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from sqlalchemy import text

from app.db.session import SystemSession

# Comparing all of up to so many vectors of a workspace is fast enough (`make bench-vectors`, DECISIONS.md 17); beyond, the
# workspace gets a partition with an HNSW index, which makes each insert several times dearer.
OWN_INDEX_ROWS = 10_000
# Copying and indexing a large workspace takes minutes, in which nobody waits for it.
TEND_TIMEOUT = "30min"

Outcome = Literal["split", "dropped", "nothing", "busy"]


@dataclass(frozen=True)
class PartitionWork:
    """A workspace that needs a partition of `table` to be made or, being gone, to be dropped."""

    table: str
    workspace_id: UUID


class VectorPartitions:
    """The partitions of all embedding profiles, over all tenants."""

    def __init__(self, session: SystemSession) -> None:
        self._session = session

    async def list_work(self, min_rows: int = OWN_INDEX_ROWS) -> list[PartitionWork]:
        """What is to be done for workspaces with more than `min_rows` vectors in a shared partition, and for gone ones."""
        statement = text("SELECT table_name, workspace_id FROM vector_partition_work(:min_rows)")
        found = await self._session.execute(statement, {"min_rows": min_rows})
        return [PartitionWork(row.table_name, row.workspace_id) for row in found]

    async def tend(self, work: PartitionWork) -> Outcome:
        """Make the workspace's partition, or drop it if the workspace is gone, within this unit of work. Safe to repeat.

        Others may read and write meanwhile; at the end they are held up for a moment. Raises the driver's error, with
        nothing changed, if they do not let go of the table within a second.
        """
        await self._session.execute(text(f"SET LOCAL statement_timeout = '{TEND_TIMEOUT}'"))
        statement = text("SELECT tend_vector_partition(:table_name, :workspace_id)")
        outcome: Outcome = await self._session.scalar(
            statement, {"table_name": work.table, "workspace_id": work.workspace_id}
        )
        return outcome
