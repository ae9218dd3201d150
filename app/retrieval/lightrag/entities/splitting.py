"""Splits an entity whose name means several things: single chunks are assigned to new names, and it can be undone."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from app.retrieval.contract import EngineWorkspace, Lease, Statement
from app.retrieval.entity_contract import ChangeRecord, EntityDetail, UndoBlocked
from app.retrieval.entity_edit_contract import InvalidEntity
from app.retrieval.lightrag.edits import apply_edits
from app.retrieval.lightrag.entities.base import chunks_behind
from app.retrieval.lightrag.entities.change_store import (
    announcing,
    marking_undone,
    recording,
    splits_of,
    splitting,
    unsplitting,
)
from app.retrieval.lightrag.entities.replay import Reread, correct_anchors, derive_again, lost_edits, reread
from app.retrieval.lightrag.entities.undoing import EntityUndoing
from app.retrieval.lightrag.graph_store import SEPARATOR
from app.retrieval.lightrag.index import unspoiled
from app.retrieval.lightrag.names import engine_name, entity_key
from app.retrieval.lightrag.storage.aliases import Anew, NameResolver, Splits, read_splits
from app.retrieval.lightrag.storage.mentions import forget_mentions_of, insert_mentions
from app.retrieval.lightrag.stores import Write

Place = tuple[UUID, int]
Begin = Callable[[set[str]], Awaitable[None]]


class EntitySplitting(EntityUndoing):
    async def split(
        self,
        workspace: EngineWorkspace,
        name: str,
        parts: Mapping[str, Sequence[Place]],
        lease: Lease,
        *,
        record: ChangeRecord | None = None,
        companions: Sequence[Statement] = (),
    ) -> tuple[EntityDetail, ...]:
        """`EntityEditor.split`."""
        record = record or ChangeRecord()
        ref = workspace.ref
        async with self._instances.use(workspace) as instance, unspoiled(instance):
            known = await self._require(workspace, name)
            assigned = await self._assigned(workspace, known, parts)
            if set(assigned) - set(await self._support(workspace).chunks_of(known)):
                raise InvalidEntity("A chunk does not speak of the entity.")
            new_names = list(dict.fromkeys(assigned.values()))

            async def write(operation: Write) -> None:
                await operation.read_ahead([known, *new_names])
                await _refuse_other_chunks(instance.rag, known, assigned)
                key = entity_key(known)
                splits = {**await read_splits(self._database, ref), **_by_chunk(key, assigned)}
                await self._refuse_without_effect(workspace, known, assigned, splits)
                names = [known, *new_names]

                async def begin(touched: set[str]) -> None:
                    every = [*names, *sorted(touched - set(names))]
                    await operation.announce(announcing(ref, "split", record, every))

                statements = await self._derive_split(instance.rag, workspace, names, splits, begin)
                history = recording(ref, "split", record, names)
                long = self._long(workspace).keeping(parts)
                split = splitting(ref, key, record.id, assigned)
                await operation.commit([*long, *history, split, *statements, *companions])

            await self._writes.run(instance.rag, lease, write)
        return tuple([await self.get(workspace, each) for each in new_names])

    async def undo(
        self,
        workspace: EngineWorkspace,
        change_id: UUID,
        lease: Lease,
        *,
        record: ChangeRecord | None = None,
        companions: Sequence[Statement] = (),
    ) -> tuple[str, ...]:
        """`Entities.undo`, of splits too."""
        ref = workspace.ref
        async with self._instances.use(workspace) as instance:
            taken_back = await splits_of(self._database, ref, change_id)
            if not taken_back:
                return await super().undo(workspace, change_id, lease, record=record, companions=companions)
            record = record or ChangeRecord(request={"change_id": str(change_id)})
            concerned = set(taken_back.values())

            async def write(operation: Write) -> None:
                # A part may have been merged or split again since.
                current = NameResolver(self._database, ref)
                for (chunk, _), target in taken_back.items():
                    concerned.update((await current.meanings(chunk, [target])).values())
                rest = {
                    place: target
                    for place, target in (await read_splits(self._database, ref)).items()
                    if place not in taken_back
                }

                async def begin(touched: set[str]) -> None:
                    every = sorted(concerned | touched)
                    await operation.announce(announcing(ref, "undo", record, every, undoes=change_id))

                statements = await self._derive_split(instance.rag, workspace, sorted(concerned), rest, begin)
                history = recording(ref, "undo", record, sorted(concerned), undoes=change_id)
                await operation.commit(
                    [marking_undone(ref, change_id), *history, unsplitting(ref, change_id), *statements, *companions]
                )

            async with unspoiled(instance):
                await self._writes.run(instance.rag, lease, write)
        return tuple(sorted(concerned))

    async def _derive_split(
        self, rag: Any, workspace: EngineWorkspace, names: Sequence[str], splits: Splits, begin: Begin
    ) -> list[Statement]:
        """Have the documents say again what these entities are, once the splits are these. Raises UndoBlocked.

        `begin` is told what is touched before anything is written.
        """
        ref, edits = workspace.ref, self._edits(workspace)
        old, new = NameResolver(self._database, ref), NameResolver(self._database, ref, Anew(splits=splits))
        ends = set((await old.resolve(names)).values())
        found: Reread = await reread(rag, self._database, ref.engine_name, old, new, ends)
        known = await edits.touching(found.names)
        if lost := await lost_edits(rag, found, known):
            raise UndoBlocked(
                "Edits would have nothing left to stand on.", edits=[{"names": list(edit.names)} for edit in lost]
            )
        await begin(found.names)
        await derive_again(rag, found)
        await apply_edits(rag, known)
        await correct_anchors(rag, found)
        return [
            *new.learning(),
            forget_mentions_of(ref, found.names),
            *insert_mentions(ref, list(found.extractions().mentions())),
        ]

    async def _refuse_without_effect(
        self, workspace: EngineWorkspace, known: str, assigned: Mapping[Place, str], splits: Splits
    ) -> None:
        """A part cannot be split back to where it came from: the two names would lead to each other."""
        new = NameResolver(self._database, workspace.ref, Anew(splits=splits))
        meant = await new.resolve(assigned.values())
        for place, name in assigned.items():
            if (await new.meanings(_chunk_id(place), [known]))[known] != meant[name]:
                raise InvalidEntity(
                    "The part would go back to where an earlier split took it from; undo that one instead."
                )

    async def _assigned(
        self, workspace: EngineWorkspace, known: str, parts: Mapping[str, Sequence[Place]]
    ) -> dict[Place, str]:
        """The new name of each chunk, as the graph keeps it. Raises InvalidEntity."""
        assigned: dict[Place, str] = {}
        for wanted, places in parts.items():
            name = await self._resolve(workspace, wanted) or engine_name(wanted)
            if not name or SEPARATOR in name or entity_key(name) == entity_key(known):
                raise InvalidEntity("A part needs a name of its own that the graph can keep.")
            for place in places:
                if place in assigned:
                    raise InvalidEntity("A chunk can be part of one new entity only.")
                assigned[place] = name
        if not assigned:
            raise InvalidEntity("Name at least one chunk to assign.")
        return assigned


def _by_chunk(key: bytes, assigned: Mapping[Place, str]) -> dict[tuple[str, bytes], str]:
    return {(_chunk_id(place), key): name for place, name in assigned.items()}


def _chunk_id(place: Place) -> str:
    return f"{place[0]}-chunk-{place[1]:03d}"


async def _refuse_other_chunks(rag: Any, name: str, assigned: Mapping[Place, str]) -> None:
    row = await rag.entity_chunks.get_by_id(name)
    node = await rag.chunk_entity_relation_graph.get_node(name)
    if {_chunk_id(place) for place in assigned} - set(chunks_behind(row, node)):
        raise InvalidEntity("A chunk does not speak of the entity.")
