"""Takes a merge back: the aliases that it made, and then the graph as the documents tell it without them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.retrieval.contract import EngineWorkspace, Lease, Statement
from app.retrieval.entity_contract import ChangeNotFound, ChangeRecord, UndoBlocked
from app.retrieval.lightrag.edits import Edit, apply_edits
from app.retrieval.lightrag.entities.change_store import announcing, marking_undone, recording
from app.retrieval.lightrag.entities.merging import EntityMerging
from app.retrieval.lightrag.entities.replay import correct_anchors, derive_again, lost_edits, reread
from app.retrieval.lightrag.entities.undo_store import MergeUndo, find_undo, forgetting_undo
from app.retrieval.lightrag.index import unspoiled
from app.retrieval.lightrag.names import entity_key
from app.retrieval.lightrag.storage.aliases import AliasRow, Anew, NameResolver
from app.retrieval.lightrag.storage.mentions import forget_mentions_of, insert_mentions
from app.retrieval.lightrag.stores import Write


@dataclass(frozen=True)
class _Names:
    """How the merge's names will be read again: rows of aliases to be written (None: removed)."""

    rows: Mapping[bytes, AliasRow | None]

    @property
    def written(self) -> list[AliasRow]:
        return [row for row in self.rows.values() if row is not None]


class EntityUndoing(EntityMerging):
    async def undo(
        self,
        workspace: EngineWorkspace,
        change_id: UUID,
        lease: Lease,
        *,
        record: ChangeRecord | None = None,
        companions: Sequence[Statement] = (),
    ) -> tuple[str, ...]:
        """`Entities.undo`."""
        record = record or ChangeRecord(request={"change_id": str(change_id)})
        ref, database = workspace.ref, self._database
        concerned: set[str] = set()
        async with self._instances.use(workspace) as instance:
            rag, edits, aliases = instance.rag, self._edits(workspace), self._aliases(workspace)

            async def write(operation: Write) -> None:
                merge = await find_undo(database, ref, change_id)
                if merge is None:
                    raise ChangeNotFound("There is no such change that can be undone.")
                names = await self._names_before(workspace, merge, change_id)
                old, new = NameResolver(database, ref), NameResolver(database, ref, Anew(names.rows))
                end = (await old.resolve([merge.target]))[merge.target]
                await operation.read_ahead([end])
                found = await reread(rag, database, ref.engine_name, old, new, [end])
                known = await edits.touching(found.names | {*merge.sources, merge.target})
                kept = _edits_after(merge, known)
                _refuse_lost(merge, await lost_edits(rag, found, kept))
                concerned.update(found.names, merge.sources, [merge.target])
                await operation.announce(announcing(ref, "undo", record, sorted(concerned), undoes=change_id))
                await derive_again(rag, found)
                await apply_edits(rag, kept)
                await correct_anchors(rag, found)
                await operation.commit(
                    [
                        marking_undone(ref, change_id),
                        *recording(ref, "undo", record, sorted(concerned), undoes=change_id),
                        forgetting_undo(ref, change_id),
                        aliases.dropping(list(names.rows)),
                        aliases.restoring(names.written),
                        *new.learning(),
                        forget_mentions_of(ref, found.names),
                        *insert_mentions(ref, list(found.extractions().mentions())),
                        *edits.deleting(known),
                        *edits.putting(kept),
                        *companions,
                    ]
                )

            async with unspoiled(instance):
                await self._writes.run(rag, lease, write)
        return tuple(sorted(concerned))

    async def _names_before(self, workspace: EngineWorkspace, merge: MergeUndo, change_id: UUID) -> _Names:
        """The aliases as the merge found them. Raises `UndoBlocked` where a later change has written over its own."""
        current = await self._aliases(workspace).rows_of([*merge.sources, merge.target])
        later = {
            str(row.change_id)
            for name in merge.sources
            if (row := current.get(entity_key(name))) is not None and row.change_id not in (change_id, None)
        }
        if later:
            raise UndoBlocked("A later merge has renamed these entities; undo that one first.", changes=sorted(later))
        own = {key for key, row in current.items() if row.change_id == change_id}
        return _Names({key: merge.aliases.get(key) for key in own})


def _edits_after(merge: MergeUndo, known: Sequence[Edit]) -> list[Edit]:
    """What people said before the merge, and what they said after it of the merged entity, which stays the target's."""
    left = {edit.key: edit for edit in merge.merged_edits}
    later = {edit.key: edit for edit in known if left.get(edit.key) != edit}
    restored = {edit.key: edit for edit in merge.edits}
    return sorted(
        {**restored, **later}.values(), key=lambda edit: (edit.target is not None, edit.name, edit.target or "")
    )


def _refuse_lost(merge: MergeUndo, lost: Sequence[Edit]) -> None:
    """Raises `UndoBlocked` for what was said after the merge of something that will not be there without it."""
    before = {edit.key for edit in merge.edits}
    since = [edit for edit in lost if edit.key not in before]
    if since:
        raise UndoBlocked(
            "Edits of the merged entity would have nothing left to stand on.",
            edits=[
                {"source": edit.name, "target": edit.target} if edit.target else {"name": edit.name} for edit in since
            ],
        )
