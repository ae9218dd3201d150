"""Creates, edits and deletes entities and relations by hand, in all stores at once."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.retrieval.contract import EngineWorkspace, Lease, Statement
from app.retrieval.entity_contract import ChangeRecord, EntityDetail
from app.retrieval.entity_edit_contract import EntityExists, Fields, InvalidEntity
from app.retrieval.lightrag.edits import Edit, apply_edits
from app.retrieval.lightrag.entities.base import chunks_behind
from app.retrieval.lightrag.entities.browsing import EntityBrowsing
from app.retrieval.lightrag.entities.change_store import announcing, recording
from app.retrieval.lightrag.entities.replay import is_chunk
from app.retrieval.lightrag.graph_store import SEPARATOR, Touched
from app.retrieval.lightrag.graphs import graph_store
from app.retrieval.lightrag.index import unspoiled
from app.retrieval.lightrag.names import engine_name
from app.retrieval.lightrag.pool import inside
from app.retrieval.lightrag.repair import rebuild, remove_unsupported
from app.retrieval.lightrag.storage.aliases import forgetting, resolved_names, spelling
from app.retrieval.lightrag.storage.mentions import forget_mentions_of
from app.retrieval.lightrag.stores import Write

Begin = Callable[[], Awaitable[None]]
# With the instance, the write, and what has to be called before anything is changed.
Work = Callable[[Any, Write, Begin], Awaitable[Iterable[Statement]]]


class EntityEditing(EntityBrowsing):
    async def create_entity(
        self,
        workspace: EngineWorkspace,
        name: str,
        fields: Fields,
        lease: Lease,
        *,
        record: ChangeRecord,
        companions: Sequence[Statement] = (),
    ) -> EntityDetail:
        """`EntityEditor.create_entity`."""
        meant = await self._new_name(workspace, name)
        edit = Edit(meant, None, said_only(fields), is_created=True)

        async def work(rag: Any, _: Write, begin: Begin) -> list[Statement]:
            if await rag.chunk_entity_relation_graph.get_node(meant) is not None:
                raise EntityExists(f"There is an entity named {meant!r}.")
            await begin()
            await apply_edits(rag, [edit])
            return [*self._edits(workspace).putting([edit]), spelling(workspace.ref, meant)]

        await self.change(workspace, "create_entity", [meant], work, lease, record, companions, said=[name])
        return await self.get(workspace, meant)

    async def edit_entity(
        self,
        workspace: EngineWorkspace,
        name: str,
        fields: Fields,
        lease: Lease,
        *,
        record: ChangeRecord,
        companions: Sequence[Statement] = (),
    ) -> EntityDetail:
        """`EntityEditor.edit_entity`."""
        await self.get(workspace, name)  # what nobody may see is not there
        known = await self._require(workspace, name)

        async def work(rag: Any, operation: Write, begin: Begin) -> list[Statement]:
            await operation.read_ahead([known])
            await begin()
            unsaid: Fields = {}
            if None in fields.values():
                row = await rag.entity_chunks.get_by_id(known)
                node = await rag.chunk_entity_relation_graph.get_node(known)
                chunks = document_chunks(row, node)
                await self._derive(rag, workspace, Touched({known: chunks}, {}))
                unsaid = {} if chunks else {"type": "UNKNOWN", "description": known}
            return await self._say(rag, workspace, Edit(known), fields, unsaid)

        await self.change(workspace, "edit_entity", [known], work, lease, record, companions)
        return await self.get(workspace, known)

    async def delete_entity(
        self,
        workspace: EngineWorkspace,
        name: str,
        lease: Lease,
        *,
        record: ChangeRecord,
        companions: Sequence[Statement] = (),
    ) -> None:
        """`EntityEditor.delete_entity`."""
        known, edits = await self._require(workspace, name), self._edits(workspace)

        async def work(rag: Any, operation: Write, begin: Begin) -> list[Statement]:
            await operation.read_ahead([known])
            await begin()
            await remove_unsupported(rag, Touched({known: ()}, {}))
            return [
                *edits.deleting(await edits.touching([known])),
                forget_mentions_of(workspace.ref, [known]),
                forgetting(workspace.ref, [known]),
                *self._long(workspace).forgetting([known]),
            ]

        await self.change(workspace, "delete_entity", [known], work, lease, record, companions)

    async def change(
        self,
        workspace: EngineWorkspace,
        kind: str,
        names: list[str],
        work: Work,
        lease: Lease,
        record: ChangeRecord,
        companions: Sequence[Statement],
        *,
        said: Sequence[str] = (),
    ) -> None:
        """One write: what `work` does in the engine and the statements that it returns, the history, the companions.

        `said`: names as a person wrote them, which may be too long for the engine.
        """
        async with self._instances.use(workspace) as instance, unspoiled(instance):
            # What is made by hand may be the first thing in the graph.
            await graph_store(self._database, workspace.ref, workspace.vector_suffix).open()

            async def write(operation: Write) -> None:
                async def begin() -> None:
                    await operation.announce(announcing(workspace.ref, kind, record, names))

                statements = await work(instance.rag, operation, begin)
                history = recording(workspace.ref, kind, record, names)
                whole = self._long(workspace).keeping(said)
                await operation.commit([*whole, *history, *statements, *companions])

            await self._writes.run(instance.rag, lease, write)

    async def _say(
        self, rag: Any, workspace: EngineWorkspace, about: Edit, fields: Fields, unsaid: Fields
    ) -> list[Statement]:
        """Add `fields` to what is said of something that is there; of what nobody says any more, `unsaid` is shown."""
        edits = self._edits(workspace)
        before = {edit.key: edit for edit in await edits.touching([about.name])}.get(about.key, about)
        said = said_only({**before.fields, **fields})
        after = replace(before, fields=said)
        shown = {name: value for name, value in unsaid.items() if name in fields} | said
        await apply_edits(rag, [replace(after, fields=shown)])
        return edits.putting([after]) if said or after.is_created else edits.deleting([after])

    async def _derive(self, rag: Any, workspace: EngineWorkspace, touched: Touched) -> None:
        """Have documents speak again where people did."""
        with resolved_names(self._database, workspace.ref):
            await rebuild(rag, touched.supported)

    async def _new_name(self, workspace: EngineWorkspace, name: str) -> str:
        known = await self._resolve(workspace, name)
        if known is not None:
            raise EntityExists(f"There is an entity named {known!r}.")
        with inside(workspace.ref):
            meant = (await self._aliases(workspace).meanings([name])).get(name, engine_name(name))
        if not meant or SEPARATOR in meant:
            raise InvalidEntity("The engine cannot keep an entity of that name.")
        return meant


def said_only(fields: Fields) -> dict[str, Any]:
    """Without the fields that are taken back."""
    return {name: value for name, value in fields.items() if value is not None}


def document_chunks(row: Mapping[str, Any] | None, properties: Mapping[str, Any] | None) -> list[str]:
    """The chunks behind something, without what people are."""
    return [chunk for chunk in chunks_behind(row, properties) if is_chunk(chunk)]
