"""Reads, creates, edits and deletes relations by hand."""

from collections.abc import Sequence
from typing import Any

from app.retrieval.contract import EngineWorkspace, Lease, RelationEvidence, Statement
from app.retrieval.entity_contract import ChangeRecord
from app.retrieval.entity_edit_contract import Fields, InvalidEntity, RelationExists, RelationNotFound
from app.retrieval.lightrag.edits import Edit, apply_edits
from app.retrieval.lightrag.entities.browsing import relation_evidence
from app.retrieval.lightrag.entities.editing import Begin, EntityEditing, document_chunks, said_only
from app.retrieval.lightrag.graph_store import SEPARATOR, Touched
from app.retrieval.lightrag.long_name_store import shown_whole
from app.retrieval.lightrag.pool import inside
from app.retrieval.lightrag.repair import remove_unsupported
from app.retrieval.lightrag.storage.mentions import forget_mentions_between
from app.retrieval.lightrag.stores import Write

Pair = tuple[str, str]


class RelationEditing(EntityEditing):
    @shown_whole
    async def get_relation(self, workspace: EngineWorkspace, source: str, target: str) -> RelationEvidence:
        """`EntityEditor.get_relation`."""
        with inside(workspace.ref):
            pair = await self._pair(workspace, source, target)
            store = self._support(workspace)
            found = await relation_evidence(store, await store.relation(*pair))
        if not found:
            raise RelationNotFound("These entities are not related.")
        return found[0]

    async def create_relation(
        self,
        workspace: EngineWorkspace,
        source: str,
        target: str,
        fields: Fields,
        lease: Lease,
        *,
        record: ChangeRecord,
        companions: Sequence[Statement] = (),
    ) -> RelationEvidence:
        """`EntityEditor.create_relation`."""
        pair = await self._pair(workspace, source, target)
        edit = Edit(*pair, said_only(fields), is_created=True)

        async def work(rag: Any, operation: Write, begin: Begin) -> list[Statement]:
            await operation.read_ahead(pair)
            if await rag.chunk_entity_relation_graph.get_edge(*pair) is not None:
                raise RelationExists("These entities are related; edit that relation.")
            await begin()
            if await apply_edits(rag, [edit]):
                raise RelationNotFound("An entity of the relation went meanwhile.")
            return self._edits(workspace).putting([edit])

        await self.change(workspace, "create_relation", list(pair), work, lease, record, companions)
        return await self.get_relation(workspace, *pair)

    async def edit_relation(
        self,
        workspace: EngineWorkspace,
        source: str,
        target: str,
        fields: Fields,
        lease: Lease,
        *,
        record: ChangeRecord,
        companions: Sequence[Statement] = (),
    ) -> RelationEvidence:
        """`EntityEditor.edit_relation`."""
        pair = await self._pair(workspace, source, target)

        async def work(rag: Any, operation: Write, begin: Begin) -> list[Statement]:
            await operation.read_ahead(pair)
            edge = await _require_edge(rag, pair)
            await begin()
            unsaid: Fields = {}
            if None in fields.values():
                key = SEPARATOR.join(pair)
                row = await rag.relation_chunks.get_by_id(key)
                chunks = document_chunks(row, edge)
                await self._derive(rag, workspace, Touched({}, {key: chunks}))
                unsaid = {} if chunks else {"description": ", ".join(pair), "keywords": "", "weight": 1.0}
            return await self._say(rag, workspace, Edit(*pair), fields, unsaid)

        await self.change(workspace, "edit_relation", list(pair), work, lease, record, companions)
        return await self.get_relation(workspace, *pair)

    async def delete_relation(
        self,
        workspace: EngineWorkspace,
        source: str,
        target: str,
        lease: Lease,
        *,
        record: ChangeRecord,
        companions: Sequence[Statement] = (),
    ) -> None:
        """`EntityEditor.delete_relation`."""
        pair = await self._pair(workspace, source, target)

        async def work(rag: Any, operation: Write, begin: Begin) -> list[Statement]:
            await operation.read_ahead(pair)
            await _require_edge(rag, pair)
            await begin()
            await remove_unsupported(rag, Touched({}, {SEPARATOR.join(pair): ()}))
            return [*self._edits(workspace).deleting([Edit(*pair)]), forget_mentions_between(workspace.ref, *pair)]

        await self.change(workspace, "delete_relation", list(pair), work, lease, record, companions)

    async def _pair(self, workspace: EngineWorkspace, source: str, target: str) -> Pair:
        with inside(workspace.ref):
            ends = sorted([await self._require(workspace, source), await self._require(workspace, target)])
        if ends[0] == ends[1]:
            raise InvalidEntity("An entity cannot be related to itself.")
        return ends[0], ends[1]


async def _require_edge(rag: Any, pair: Pair) -> Any:
    edge = await rag.chunk_entity_relation_graph.get_edge(*pair)
    if edge is None:
        raise RelationNotFound("These entities are not related.")
    return edge
