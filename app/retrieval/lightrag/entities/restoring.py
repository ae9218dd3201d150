"""Puts back what a change that was stopped half-way has written to a graph without transactions.

Nothing that such a change means is kept before its last statement: aliases, splits and edits are as they were. So what
the documents and people say of its entities now is what was there before it began.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from lightrag.utils import make_relation_vdb_ids

from app.retrieval.contract import EngineWorkspace, Lease, Statement
from app.retrieval.lightrag.edits import apply_edits
from app.retrieval.lightrag.entities.browsing import EntityBrowsing
from app.retrieval.lightrag.entities.change_store import putting_back
from app.retrieval.lightrag.entities.check_store import mentioned_chunks, relations_left
from app.retrieval.lightrag.entities.replay import add_mentioned_chunks, correct_anchors, derive_again, reread
from app.retrieval.lightrag.graph_store import SEPARATOR
from app.retrieval.lightrag.graphs import graph_store
from app.retrieval.lightrag.index import unspoiled
from app.retrieval.lightrag.names import shorten
from app.retrieval.lightrag.storage.aliases import NameResolver, forgetting
from app.retrieval.lightrag.storage.mentions import forget_mentions_of, insert_mentions
from app.retrieval.lightrag.stores import Write


class EntityRestoring(EntityBrowsing):
    async def put_back(
        self,
        workspace: EngineWorkspace,
        change_id: UUID,
        names: Sequence[str],
        lease: Lease,
        *,
        companions: Sequence[Statement] = (),
    ) -> None:
        """`Entities.put_back`."""
        ref, edits, broken = workspace.ref, self._edits(workspace), {shorten(name) for name in names}
        async with self._instances.use(workspace) as instance, unspoiled(instance):
            rag = instance.rag
            await graph_store(self._database, ref, workspace.vector_suffix).open()

            async def write(operation: Write) -> None:
                await add_mentioned_chunks(rag, sorted(broken), await mentioned_chunks(self._database, ref, broken))
                resolver = NameResolver(self._database, ref)
                found = await reread(rag, self._database, ref.engine_name, resolver, resolver, broken)
                await self._remove_relations(rag, workspace, found.names)
                await derive_again(rag, found)
                stale = await apply_edits(rag, await edits.touching(found.names))
                await correct_anchors(rag, found)
                await operation.commit(
                    [
                        putting_back(ref, change_id),
                        *resolver.learning(),
                        forget_mentions_of(ref, found.names),
                        *insert_mentions(ref, list(found.extractions().mentions())),
                        *edits.deleting(stale),
                        forgetting(ref, found.names),
                        *companions,
                    ]
                )

            await self._writes.run(rag, lease, write)

    async def _remove_relations(self, rag: Any, workspace: EngineWorkspace, names: Iterable[str]) -> None:
        """Those of which only a part may be left; all are derived again."""
        pairs = await relations_left(self._database, workspace.ref, workspace.vector_suffix, names)
        await rag.relationships_vdb.delete([key for pair in pairs for key in make_relation_vdb_ids(*pair)])
        keys = [SEPARATOR.join(pair) for pair in pairs]
        await rag.relation_chunks.get_by_ids(keys)
        await rag.relation_chunks.delete(keys)
