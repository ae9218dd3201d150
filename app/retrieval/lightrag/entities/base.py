"""What every operation on entities works with, and how a name that a caller gives becomes an entity's."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.retrieval.contract import EngineWorkspace
from app.retrieval.entity_contract import EntityNotFound
from app.retrieval.lightrag.alias_store import AliasStore
from app.retrieval.lightrag.edit_store import EditStore
from app.retrieval.lightrag.graph_store import SEPARATOR
from app.retrieval.lightrag.graphs import support_store
from app.retrieval.lightrag.instances import InstancePool
from app.retrieval.lightrag.long_name_store import LongNames
from app.retrieval.lightrag.names import engine_name
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.reads import Reads
from app.retrieval.lightrag.stores import Writes
from app.retrieval.lightrag.support_store import SupportStore


class EntityOperations:
    """Base of the operations on a workspace's entities, one class a feature."""

    def __init__(self, database: EngineDatabase, instances: InstancePool, writes: Writes) -> None:
        self._database = database
        self._instances = instances
        self._writes = writes

    def _support(self, workspace: EngineWorkspace, reads: Reads | None = None) -> SupportStore:
        return support_store(reads or self._database, workspace.ref, include_partial=True)

    def _aliases(self, workspace: EngineWorkspace, reads: Reads | None = None) -> AliasStore:
        return AliasStore(reads or self._database, workspace.ref)

    def _edits(self, workspace: EngineWorkspace) -> EditStore:
        return EditStore(self._database, workspace.ref)

    def _long(self, workspace: EngineWorkspace) -> LongNames:
        return LongNames(self._database, workspace.ref)

    async def _resolve(
        self, workspace: EngineWorkspace, name: str, *, by_alias: bool = True, reads: Reads | None = None
    ) -> str | None:
        """The entity of that very name, or of the name LightRAG makes of it, or that another spelling or alias means."""
        with inside(workspace.ref):
            aliases = self._aliases(workspace, reads)
            meant = await (aliases.meanings([name]) if by_alias else aliases.meant_by_spelling([name]))
            candidates = [name, engine_name(name), *meant.values()]
            known = await self._support(workspace, reads).existing(candidates)
        return next((candidate for candidate in candidates if candidate in known), None)

    async def names_of(self, workspace: EngineWorkspace, name: str) -> Sequence[str]:
        """`Entities.names_of`."""
        with inside(workspace.ref):
            aliases = self._aliases(workspace)
            known = [name, engine_name(name), *(await aliases.meanings([name])).values()]
            found = list(dict.fromkeys([*known, *await aliases.leading_to(known)]))
            return [*found, *(await self._long(workspace).whole(found)).values()]

    async def _require(self, workspace: EngineWorkspace, name: str, *, by_alias: bool = True) -> str:
        found = await self._resolve(workspace, name, by_alias=by_alias)
        if found is None:
            raise EntityNotFound(f"There is no entity named {name!r}.")
        return found


def chunks_behind(tracking: Mapping[str, Any] | None, properties: Mapping[str, Any] | None) -> list[str]:
    """Ids of the chunks behind an entity or relation: those tracked, or what it names itself."""
    tracked = (tracking or {}).get("chunk_ids")
    if tracked is not None:
        return [chunk for chunk in tracked if chunk]
    return [chunk for chunk in ((properties or {}).get("source_id") or "").split(SEPARATOR) if chunk]
