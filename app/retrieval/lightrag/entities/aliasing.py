"""Lists, adds and removes aliases by hand."""

from collections.abc import Sequence

from app.retrieval.contract import EngineWorkspace, Lease, Statement
from app.retrieval.entity_contract import AliasNotFound, AliasTaken, EntityAlias, InvalidAlias
from app.retrieval.lightrag.entities.base import EntityOperations
from app.retrieval.lightrag.graph_store import SEPARATOR
from app.retrieval.lightrag.names import engine_name, entity_key
from app.retrieval.lightrag.pool import inside
from app.retrieval.lightrag.storage.commit import write_fenced


class EntityAliasing(EntityOperations):
    async def aliases(self, workspace: EngineWorkspace, *, after: str | None, limit: int) -> Sequence[EntityAlias]:
        with inside(workspace.ref):
            return await self._aliases(workspace).list(after=after, limit=limit)

    async def add_alias(
        self,
        workspace: EngineWorkspace,
        alias: str,
        target: str,
        lease: Lease,
        *,
        companions: Sequence[Statement] = (),
    ) -> EntityAlias:
        with inside(workspace.ref):
            aliases = self._aliases(workspace)
            support = self._support(workspace)
            name, meant = engine_name(alias), await self._resolve(workspace, target) or engine_name(target)
            meant = (await aliases.meanings([meant])).get(meant, meant)
            if not name or not meant or SEPARATOR in name + meant or entity_key(name) == entity_key(meant):
                raise InvalidAlias(
                    "An alias must differ from the name it stands for by more than case, width or spaces, "
                    "and both must be names that the graph can keep."
                )
            known = await aliases.find(alias)
            if await support.existing([alias, name]) or (known is None and await aliases.meanings([alias])):
                raise AliasTaken("There is an entity of that name; merge it into the other one.")
            if known is None:
                put = aliases.putting([alias], meant, "manual")
                await write_fenced(self._database, lease, [put, *companions])
            elif entity_key((await aliases.meanings([alias]))[alias]) != entity_key(meant):
                raise AliasTaken(f"The name means {known.target!r} already.", target=known.target)
            found = await aliases.find(alias)
        if found is None:
            raise AliasNotFound("The alias was removed meanwhile.")
        return found

    async def remove_alias(
        self, workspace: EngineWorkspace, alias: str, lease: Lease, *, companions: Sequence[Statement] = ()
    ) -> None:
        with inside(workspace.ref):
            aliases = self._aliases(workspace)
            if await aliases.find(alias) is None:
                raise AliasNotFound(f"{alias!r} is no alias.")
            await write_fenced(self._database, lease, [aliases.removing(alias), *companions])
