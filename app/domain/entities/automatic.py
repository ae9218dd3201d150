"""Merges the surest duplicates of workspaces that want it, without anybody looking: each is a change that can be undone."""

from itertools import combinations

import structlog

from app.db.base import TenantId, WorkspaceId
from app.db.session import Database
from app.domain.entities.changes import Requested
from app.domain.entities.duplicates import EntityDuplicates, GroupMerged, GroupRefused
from app.domain.entities.repository import ChangeRepository
from app.domain.ingestion.repository import IngestionRepository
from app.domain.workspaces.errors import WorkspaceNotFound
from app.domain.workspaces.repository import WorkspaceRepository
from app.domain.workspaces.settings import WorkspaceSettings
from app.jobs import MergeDuplicates
from app.retrieval.entity_graph_contract import DuplicateGroup, Pairs

logger = structlog.stdlib.get_logger(__name__)

# Who did it, in the history.
ACTOR = "automatic"
# A chain of names that are alike two by two is no longer one thing for sure.
MAX_NAMES = 4
MAX_GROUPS = 50


class AutomaticMerging:
    def __init__(self, database: Database, duplicates: EntityDuplicates) -> None:
        self._database = database
        self._duplicates = duplicates

    async def run(self, job: MergeDuplicates) -> None:
        """Does nothing while documents of the workspace wait for the graph: the last of them tells again, or the sweeper.

        Left alone are groups of different types, large ones, pairs that were rejected, and those whose merge was undone.
        What editors accepted is left to those who may merge.
        """
        place = TenantId(job.tenant_id), WorkspaceId(job.workspace_id)
        async with self._database.tenant(place[0]) as session:
            try:
                record = await WorkspaceRepository(session).get(place[1])
            except WorkspaceNotFound:
                return
            row = record.row
            least = WorkspaceSettings.stored(row.settings).merge_duplicates_above
            is_on = least is not None and row.status == "active" and "graph" in row.engines
            if not is_on or await IngestionRepository(session).has_open(place[1], "graph"):
                return
            undone = await ChangeRepository(session).undone_pairs(place[1])
        groups = await self._duplicates.propose(place, min_score=least, limit=MAX_GROUPS, with_accepted=False)
        sure = [group.names for group in groups if _is_sure(group, undone)]
        made = await self._duplicates.merge_groups(place, Requested(ACTOR), sure)
        # As of before: what was merged just now may have made others alike.
        async with self._database.tenant(place[0]) as session:
            await ChangeRepository(session).duplicates_were_merged(place[1], record.corpus_version)
        counts = {
            "merged": sum(isinstance(each, GroupMerged) for each in made),
            "refused": sum(isinstance(each, GroupRefused) for each in made),
        }
        logger.info("duplicates_merged", workspace_id=str(place[1]), **counts)


def _is_sure(group: DuplicateGroup, undone: Pairs) -> bool:
    pairs = {frozenset(pair) for pair in combinations(group.names, 2)}
    return len(group.types) <= 1 and len(group.names) <= MAX_NAMES and pairs.isdisjoint(undone)
