"""Creates, edits and deletes entities, relations and aliases by hand, each under the workspace's write lease."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from app.db.base import TenantId, WorkspaceId
from app.domain.entities.changes import EntityChanges, Requested
from app.domain.entities.service import EntityService
from app.domain.ingestion.repository import bump
from app.retrieval.contract import Lease, RelationEvidence
from app.retrieval.entity_contract import ChangeRecord, EntityAlias, EntityDetail
from app.retrieval.entity_edit_contract import EntityEditor

Place = tuple[TenantId, WorkspaceId]
Pair = tuple[str, str]
Fields = Mapping[str, Any]
Result = TypeVar("Result")


class EntityEditing:
    """Every method raises WorkspaceNotFound, EngineOff and WorkspaceBusy, and what `EntityEditor` says."""

    def __init__(self, browsing: EntityService, changes: EntityChanges, editor: EntityEditor) -> None:
        self._browsing = browsing
        self._changes = changes
        self._editor = editor

    async def create_entity(self, place: Place, name: str, fields: Fields, by: Requested) -> EntityDetail:
        return await self._change(place, by, {"name": name, **fields}, self._editor.create_entity, name, fields)

    async def edit_entity(self, place: Place, name: str, fields: Fields, by: Requested) -> EntityDetail:
        return await self._change(place, by, {"name": name, **fields}, self._editor.edit_entity, name, fields)

    async def delete_entity(self, place: Place, name: str, by: Requested) -> None:
        await self._change(place, by, {"name": name}, self._editor.delete_entity, name)

    async def get_relation(self, place: Place, pair: Pair) -> RelationEvidence:
        return await self._editor.get_relation(await self._browsing.open(*place), *pair)

    async def create_relation(self, place: Place, pair: Pair, fields: Fields, by: Requested) -> RelationEvidence:
        return await self._change(place, by, {**_ends(pair), **fields}, self._editor.create_relation, *pair, fields)

    async def edit_relation(self, place: Place, pair: Pair, fields: Fields, by: Requested) -> RelationEvidence:
        return await self._change(place, by, {**_ends(pair), **fields}, self._editor.edit_relation, *pair, fields)

    async def delete_relation(self, place: Place, pair: Pair, by: Requested) -> None:
        await self._change(place, by, _ends(pair), self._editor.delete_relation, *pair)

    async def add_alias(self, place: Place, alias: str, target: str, by: Requested) -> EntityAlias:
        """Raises InvalidAlias or AliasTaken with nothing changed."""
        asked = {"alias": alias, "target": target}
        return await self._change(place, by, asked, self._editor.add_alias, alias, target)

    async def remove_alias(self, place: Place, alias: str, by: Requested) -> None:
        """Raises AliasNotFound."""
        await self._change(place, by, {"alias": alias}, self._editor.remove_alias, alias)

    async def _change(
        self,
        place: Place,
        by: Requested,
        asked: Mapping[str, Any],
        change: Callable[..., Awaitable[Result]],
        *arguments: object,
    ) -> Result:
        """`change` one thing of the workspace as `asked`, with its place in the history."""
        workspace = await self._browsing.open(*place)
        record = ChangeRecord(request=asked, actor=by.actor)

        async def work(lease: Lease) -> Result:
            return await change(workspace, *arguments, lease, record=record, companions=[bump(workspace.ref)])

        return await self._changes.under_lease(workspace, work)


def _ends(pair: Pair) -> dict[str, Any]:
    return {"source": pair[0], "target": pair[1]}
