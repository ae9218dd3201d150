"""Lists, adds and removes aliases by hand."""

from collections.abc import Sequence

from app.retrieval.contract import EngineWorkspace, Lease, Statement
from app.retrieval.entity_contract import AliasNotFound, AliasTaken, ChangeRecord, EntityAlias, InvalidAlias
from app.retrieval.lightrag.entities.base import EntityOperations
from app.retrieval.lightrag.entities.change_store import recording
from app.retrieval.lightrag.graph_store import SEPARATOR
from app.retrieval.lightrag.long_name_store import shown_whole
from app.retrieval.lightrag.names import engine_name, entity_key, shorten
from app.retrieval.lightrag.pool import inside
from app.retrieval.lightrag.storage.commit import write_fenced


class EntityAliasing(EntityOperations):
    @shown_whole
    async def aliases(self, workspace: EngineWorkspace, *, after: str | None, limit: int) -> Sequence[EntityAlias]:
        with inside(workspace.ref):
            return await self._aliases(workspace).list(after=after and shorten(after), limit=limit)

    @shown_whole
    async def add_alias(
        self,
        workspace: EngineWorkspace,
        alias: str,
        target: str,
        lease: Lease,
        *,
        record: ChangeRecord | None = None,
        companions: Sequence[Statement] = (),
    ) -> EntityAlias:
        """`EntityEditor.add_alias`."""
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
                long = self._long(workspace).keeping([alias, target])
                put = aliases.putting([shorten(alias)], meant, "manual")
                history = recording(workspace.ref, "add_alias", record, [shorten(alias), meant])
                await write_fenced(self._database, lease, [*long, put, *history, *companions])
            elif entity_key((await aliases.meanings([alias]))[alias]) != entity_key(meant):
                raise AliasTaken(f"The name means {known.target!r} already.", target=known.target)
            found = await aliases.find(alias)
        if found is None:
            raise AliasNotFound("The alias was removed meanwhile.")
        return found

    async def remove_alias(
        self,
        workspace: EngineWorkspace,
        alias: str,
        lease: Lease,
        *,
        record: ChangeRecord | None = None,
        companions: Sequence[Statement] = (),
    ) -> None:
        """`EntityEditor.remove_alias`."""
        with inside(workspace.ref):
            aliases = self._aliases(workspace)
            known = await aliases.find(alias)
            if known is None:
                raise AliasNotFound(f"{alias!r} is no alias.")
            history = recording(workspace.ref, "remove_alias", record, [known.alias, known.target])
            long = self._long(workspace).forgetting([known.alias, known.target])
            await write_fenced(self._database, lease, [*history, aliases.removing(alias), *long, *companions])
