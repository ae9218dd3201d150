"""Creates, edits and deletes entities and relations by hand, each under the workspace's write lease."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from app.db.base import TenantId, WorkspaceId
from app.domain.entities.changes import EntityChanges, Requested
from app.domain.entities.service import EntityService
from app.domain.ingestion.repository import bump
from app.retrieval.contract import EngineWorkspace, Lease, RelationEvidence
from app.retrieval.entity_contract import ChangeRecord, EntityDetail
from app.retrieval.entity_edit_contract import EntityEditor

Place = tuple[TenantId, WorkspaceId]
Pair = tuple[str, str]


class EntityEditing:
    """Every method raises WorkspaceNotFound, EngineOff and WorkspaceBusy, and what `EntityEditor` says."""

    def __init__(self, browsing: EntityService, changes: EntityChanges, editor: EntityEditor) -> None:
        self._browsing = browsing
        self._changes = changes
        self._editor = editor

    async def create_entity(self, place: Place, name: str, fields: Mapping[str, Any], by: Requested) -> EntityDetail:
        workspace, record = await self._begin(place, by, {"name": name, **fields})

        async def work(lease: Lease) -> EntityDetail:
            return await self._editor.create_entity(
                workspace, name, fields, lease, record=record, companions=[bump(workspace.ref)]
            )

        return await self._changes.under_lease(workspace, work)

    async def edit_entity(self, place: Place, name: str, fields: Mapping[str, Any], by: Requested) -> EntityDetail:
        workspace, record = await self._begin(place, by, {"name": name, **fields})

        async def work(lease: Lease) -> EntityDetail:
            return await self._editor.edit_entity(
                workspace, name, fields, lease, record=record, companions=[bump(workspace.ref)]
            )

        return await self._changes.under_lease(workspace, work)

    async def delete_entity(self, place: Place, name: str, by: Requested) -> None:
        workspace, record = await self._begin(place, by, {"name": name})

        async def work(lease: Lease) -> None:
            await self._editor.delete_entity(workspace, name, lease, record=record, companions=[bump(workspace.ref)])

        await self._changes.under_lease(workspace, work)

    async def split(
        self, place: Place, name: str, parts: Mapping[str, Sequence[tuple[UUID, int]]], by: Requested
    ) -> tuple[UUID, tuple[EntityDetail, ...]]:
        """The change, which can be undone, and the entities that the parts became."""
        asked = {"name": name, "parts": {to: [[str(v), n] for v, n in chunks] for to, chunks in parts.items()}}
        workspace, record = await self._begin(place, by, asked)

        async def work(lease: Lease) -> tuple[EntityDetail, ...]:
            return await self._editor.split(
                workspace, name, parts, lease, record=record, companions=[bump(workspace.ref)]
            )

        return record.id, await self._changes.under_lease(workspace, work)

    async def get_relation(self, place: Place, pair: Pair) -> RelationEvidence:
        return await self._editor.get_relation(await self._browsing.open(*place), *pair)

    async def create_relation(
        self, place: Place, pair: Pair, fields: Mapping[str, Any], by: Requested
    ) -> RelationEvidence:
        workspace, record = await self._begin(place, by, {"source": pair[0], "target": pair[1], **fields})

        async def work(lease: Lease) -> RelationEvidence:
            return await self._editor.create_relation(
                workspace, *pair, fields, lease, record=record, companions=[bump(workspace.ref)]
            )

        return await self._changes.under_lease(workspace, work)

    async def edit_relation(
        self, place: Place, pair: Pair, fields: Mapping[str, Any], by: Requested
    ) -> RelationEvidence:
        workspace, record = await self._begin(place, by, {"source": pair[0], "target": pair[1], **fields})

        async def work(lease: Lease) -> RelationEvidence:
            return await self._editor.edit_relation(
                workspace, *pair, fields, lease, record=record, companions=[bump(workspace.ref)]
            )

        return await self._changes.under_lease(workspace, work)

    async def delete_relation(self, place: Place, pair: Pair, by: Requested) -> None:
        workspace, record = await self._begin(place, by, {"source": pair[0], "target": pair[1]})

        async def work(lease: Lease) -> None:
            await self._editor.delete_relation(workspace, *pair, lease, record=record, companions=[bump(workspace.ref)])

        await self._changes.under_lease(workspace, work)

    async def _begin(
        self, place: Place, by: Requested, asked: Mapping[str, Any]
    ) -> tuple[EngineWorkspace, ChangeRecord]:
        return await self._browsing.open(*place), ChangeRecord(request=asked, actor=by.actor)
