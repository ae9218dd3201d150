"""Queries of the history of entities."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any
from uuid import UUID

from sqlalchemy import func, update

from app.db.models import CorpusVersion, EntityChange
from app.db.repository import TenantRepository
from app.retrieval.entity_graph_contract import Pairs


class ChangeRepository(TenantRepository):
    async def find(self, workspace_id: UUID, change_id: UUID) -> EntityChange | None:
        query = self.rows(EntityChange, EntityChange.workspace_id == workspace_id, EntityChange.id == change_id)
        found: EntityChange | None = await self.session.scalar(query)
        return found

    async def find_by_request(self, workspace_id: UUID, request_key: bytes) -> EntityChange | None:
        """The change that a request with this Idempotency-Key made or queued."""
        query = self.rows(
            EntityChange, EntityChange.workspace_id == workspace_id, EntityChange.request_key == request_key
        )
        found: EntityChange | None = await self.session.scalar(query)
        return found

    async def list(
        self, workspace_id: UUID, *, names: Sequence[str] | None, before: int | None, limit: int
    ) -> Sequence[EntityChange]:
        """Newest first, of one entity by any of its `names`, from the first older than number `before`."""
        conditions: list[Any] = [EntityChange.workspace_id == workspace_id]
        if names is not None:
            conditions.append(EntityChange.names.overlap(list(names)))
        if before is not None:
            conditions.append(EntityChange.number < before)
        query = self.rows(EntityChange, *conditions).order_by(EntityChange.number.desc()).limit(limit)
        return list(await self.session.scalars(query))

    def add(self, change: EntityChange) -> None:
        self.session.add(change)

    async def begin(self, change_id: UUID, *, max_attempts: int) -> bool:
        """Count one more attempt at a queued change. False if it is not queued any more, or has had that many."""
        begun = await self.session.execute(
            update(EntityChange)
            .where(
                EntityChange.tenant_id == self.session.tenant_id,
                EntityChange.id == change_id,
                EntityChange.state == "queued",
                EntityChange.attempts < max_attempts,
            )
            .values(attempts=EntityChange.attempts + 1)
            .returning(EntityChange.attempts)
        )
        return begun.scalar() is not None

    async def fail(self, change_id: UUID, code: str, detail: str) -> None:
        """A queued change that can never be done. One that cannot be put back stays as it is, with the reason and one
        attempt more: after five the sweeper leaves it to people."""
        of_this = EntityChange.tenant_id == self.session.tenant_id, EntityChange.id == change_id
        told = {"error_code": code, "error_detail": detail}
        failing = update(EntityChange).where(*of_this, EntityChange.state == "queued")
        await self.session.execute(failing.values(state="failed", finished_at=func.now(), **told))
        writing = update(EntityChange).where(*of_this, EntityChange.state == "writing")
        await self.session.execute(writing.values(put_back_attempts=EntityChange.put_back_attempts + 1, **told))

    async def unfinished(self, workspace_id: UUID) -> Sequence[EntityChange]:
        """Changes that are being written, or were when what wrote them was stopped."""
        query = self.rows(EntityChange, EntityChange.workspace_id == workspace_id, EntityChange.state == "writing")
        return list(await self.session.scalars(query))

    async def undone_pairs(self, workspace_id: UUID) -> Pairs:
        """Names that somebody has taken apart again after they had been merged."""
        query = self.rows(
            EntityChange,
            EntityChange.workspace_id == workspace_id,
            EntityChange.kind == "merge",
            EntityChange.state == "undone",
        ).with_only_columns(EntityChange.names)
        merged = await self.session.scalars(query)
        return frozenset(frozenset(pair) for names in merged for pair in combinations(names, 2))

    async def duplicates_were_merged(self, workspace_id: UUID, corpus_version: int) -> None:
        """The sweeper asks for it again when the corpus has moved on from this version."""
        await self.session.execute(
            update(CorpusVersion)
            .where(CorpusVersion.tenant_id == self.session.tenant_id, CorpusVersion.workspace_id == workspace_id)
            .values(duplicates_version=func.greatest(CorpusVersion.duplicates_version, corpus_version))
        )
