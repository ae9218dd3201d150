"""Checks that everything that is kept of a graph agrees, and derives again what does not."""

from collections.abc import Mapping, Sequence
from typing import Any

from lightrag.utils import make_relation_vdb_ids

from app.retrieval.contract import EngineWorkspace, Lease, Statement
from app.retrieval.lightrag.edits import apply_edits
from app.retrieval.lightrag.entities.browsing import EntityBrowsing
from app.retrieval.lightrag.entities.check_store import (
    ENTITY_CHECKS,
    RELATION_CHECKS,
    Drift,
    find_drift,
    mentioned_chunks,
)
from app.retrieval.lightrag.entities.replay import add_mentioned_chunks, correct_anchors, derive_again, reread
from app.retrieval.lightrag.graph_store import SEPARATOR
from app.retrieval.lightrag.graphs import graph_rows
from app.retrieval.lightrag.index import unspoiled
from app.retrieval.lightrag.pool import inside
from app.retrieval.lightrag.storage.aliases import NameResolver, forgetting
from app.retrieval.lightrag.storage.mentions import forget_mentions_of, insert_mentions
from app.retrieval.lightrag.stores import Write


class EntityMending(EntityBrowsing):
    async def check(self, workspace: EngineWorkspace) -> Mapping[str, int]:
        """`GraphCheck.check`."""
        with inside(workspace.ref):
            drift = await self._drift(workspace)
        return {kind: len(names) for kind, names in drift.found.items()}

    async def _drift(self, workspace: EngineWorkspace) -> Drift:
        ref = workspace.ref
        return await find_drift(self._database, ref, workspace.vector_suffix, graph_rows(self._database, ref))

    async def mend(
        self, workspace: EngineWorkspace, lease: Lease, *, companions: Sequence[Statement] = ()
    ) -> Mapping[str, int]:
        """`GraphCheck.mend`."""
        ref, edits = workspace.ref, self._edits(workspace)
        async with self._instances.use(workspace) as instance, unspoiled(instance):
            rag = instance.rag

            async def write(operation: Write) -> None:
                drift = await self._drift(workspace)
                if not drift:
                    return
                orphans = await _remove_orphans(rag, drift)
                broken = _broken(drift)
                mentioned = await mentioned_chunks(self._database, ref, sorted(broken))
                nodes = await rag.chunk_entity_relation_graph.get_nodes_batch(sorted(broken))
                broken &= nodes.keys() | mentioned.keys()
                await add_mentioned_chunks(rag, sorted(broken), mentioned)
                names = NameResolver(self._database, ref)
                found = await reread(rag, self._database, ref.engine_name, names, names, broken)
                await derive_again(rag, found)
                gone = orphans - found.names
                known = await edits.touching(found.names | gone)
                stale = await apply_edits(rag, known)
                await correct_anchors(rag, found)
                await operation.commit(
                    [
                        *names.learning(),
                        forget_mentions_of(ref, found.names | gone),
                        *insert_mentions(ref, list(found.extractions().mentions())),
                        *edits.deleting(stale),
                        forgetting(ref, gone),
                        *self._long(workspace).forgetting(gone),
                        *companions,
                    ]
                )

            await self._writes.run(rag, lease, write)
        return await self.check(workspace)


async def _remove_orphans(rag: Any, drift: Drift) -> set[str]:
    """What belongs to nothing in the graph. Returns the names of entities that are not there."""
    entities = set(drift.found["vector_without_entity"]) | set(drift.found["chunks_without_entity"])
    for name in drift.found["vector_without_entity"]:
        await rag.entities_vdb.delete_entity(name)
    await _delete_rows(rag.entity_chunks, sorted(drift.found["chunks_without_entity"]))
    pairs = [tuple(key.split(SEPARATOR)) for key in drift.found["vector_without_relation"]]
    await rag.relationships_vdb.delete([key for pair in pairs for key in make_relation_vdb_ids(*pair)])
    await _delete_rows(rag.relation_chunks, sorted(drift.found["chunks_without_relation"]))
    kinds = ("mention_without_entity", "edit_without_entity", "spelling_without_entity")
    return entities | {name for kind in kinds for name in drift.found[kind]}


async def _delete_rows(storage: Any, keys: list[str]) -> None:
    """Read first: a unit deletes only rows that it has seen."""
    await storage.get_by_ids(keys)
    await storage.delete(keys)


def _broken(drift: Drift) -> set[str]:
    """Entities to be derived again, with all their relations."""
    pairs = drift.names(RELATION_CHECKS) | drift.names(
        dict.fromkeys(("vector_without_relation", "chunks_without_relation"), "")
    )
    ends = {name for pair in pairs for name in pair.split(SEPARATOR)}
    return drift.names(ENTITY_CHECKS) | ends | set(drift.found["mention_without_entity"])
