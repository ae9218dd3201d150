"""Browses and merges the entities of a workspace's graph, and keeps their aliases."""

import json
from collections.abc import Sequence

from app.retrieval.contract import EngineWorkspace, Lease, RelationEvidence, Statement
from app.retrieval.entity_contract import (
    AliasNotFound,
    AliasTaken,
    EntityAlias,
    EntityDetail,
    EntityNotFound,
    EntitySummary,
    InvalidAlias,
    InvalidMerge,
    MergeRequest,
)
from app.retrieval.lightrag.alias_store import AliasStore
from app.retrieval.lightrag.evidence import graph_evidence, plain_text
from app.retrieval.lightrag.graph_store import SEPARATOR
from app.retrieval.lightrag.index import unspoiled
from app.retrieval.lightrag.instances import InstancePool
from app.retrieval.lightrag.names import engine_name, entity_key
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.storage.commit import write_fenced
from app.retrieval.lightrag.stores import Write, Writes
from app.retrieval.lightrag.support_store import SupportStore


class GraphEntities:
    """`Entities` over LightRAG."""

    def __init__(self, database: EngineDatabase, instances: InstancePool, writes: Writes) -> None:
        self._database = database
        self._instances = instances
        self._writes = writes

    async def list(
        self, workspace: EngineWorkspace, *, prefix: str | None, after: str | None, limit: int
    ) -> Sequence[EntitySummary]:
        """`prefix` is compared without case."""
        with inside(workspace.ref):
            store = SupportStore(self._database, workspace.ref, include_partial=True)
            rows = await store.entities(prefix=prefix, after=after, limit=limit)
            descriptions = await _trusted_texts(store, {row["name"]: row["description"] or "" for row in rows})
        return [EntitySummary(row["name"], row["type"] or "", descriptions[row["name"]], row["degree"]) for row in rows]

    async def get(self, workspace: EngineWorkspace, name: str) -> EntityDetail:
        with inside(workspace.ref):
            store = SupportStore(self._database, workspace.ref, include_partial=True)
            known = await self._resolve(store, workspace, name)
            chunks = await store.chunks_of(known) if known else ()
            if known is None or not chunks:
                raise EntityNotFound(f"There is no entity named {name!r}.")
            async with self._instances.use(workspace) as instance:
                node = await instance.rag.chunk_entity_relation_graph.get_node(known)
            described = await _trusted_texts(store, {known: node["description"]})
            relations = await _relations(store, known)
        return EntityDetail(known, node.get("entity_type") or "", described[known], relations, chunks)

    async def merge(
        self,
        workspace: EngineWorkspace,
        request: MergeRequest,
        lease: Lease,
        *,
        companions: Sequence[Statement] = (),
    ) -> EntityDetail:
        async with self._instances.use(workspace) as instance:
            store = SupportStore(self._database, workspace.ref, include_partial=True)
            aliases = AliasStore(self._database, workspace.ref)
            sources, target = await self._check_merge(store, workspace, request)

            async def write(operation: Write) -> None:
                await operation.read_ahead([*sources, target])
                await instance.rag.amerge_entities([*sources], target)
                await operation.commit([*aliases.merging(sources, target), *companions])

            async with unspoiled(instance):
                await self._writes.run(instance.rag, lease, write)
        return await self.get(workspace, target)

    async def aliases(self, workspace: EngineWorkspace, *, after: str | None, limit: int) -> Sequence[EntityAlias]:
        with inside(workspace.ref):
            return await AliasStore(self._database, workspace.ref).list(after=after, limit=limit)

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
            aliases = AliasStore(self._database, workspace.ref)
            support = SupportStore(self._database, workspace.ref, include_partial=True)
            name, meant = engine_name(alias), await self._resolve(support, workspace, target) or engine_name(target)
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
            aliases = AliasStore(self._database, workspace.ref)
            if await aliases.find(alias) is None:
                raise AliasNotFound(f"{alias!r} is no alias.")
            await write_fenced(self._database, lease, [aliases.removing(alias), *companions])

    async def _resolve(
        self, store: SupportStore, workspace: EngineWorkspace, name: str, *, by_alias: bool = True
    ) -> str | None:
        """The entity of that very name, or of the name LightRAG makes of it, or that another spelling or alias means."""
        aliases = AliasStore(self._database, workspace.ref)
        meant = await (aliases.meanings([name]) if by_alias else aliases.meant_by_spelling([name]))
        candidates = [name, engine_name(name), *meant.values()]
        known = await store.existing(candidates)
        return next((candidate for candidate in candidates if candidate in known), None)

    async def _check_merge(
        self, store: SupportStore, workspace: EngineWorkspace, request: MergeRequest
    ) -> tuple[Sequence[str], str]:
        """The names as the graph has them. Refuses whatever would lose an entity or relate one to itself."""
        if not request.sources:
            raise InvalidMerge("Name at least one entity to merge.")
        sources = []
        for name in request.sources:
            # What an alias stands for must not vanish by a merge that was meant for the alias, or is tried again.
            source = await self._resolve(store, workspace, name, by_alias=False)
            if source is None:
                raise EntityNotFound(f"There is no entity named {name!r}.")
            sources.append(source)
        if len(set(sources)) < len(sources):
            raise InvalidMerge("An entity is named twice among those to merge.")
        if await store.existing([request.target, engine_name(request.target)]) & set(sources):
            raise InvalidMerge("An entity cannot be merged into itself.")
        target = await self._resolve(store, workspace, request.target)
        # An old name of a source may become the name again: the newest merge wins.
        return sources, _new_name(request.target, sources) if target is None or target in sources else target


def _new_name(wanted: str, sources: Sequence[str]) -> str:
    name = engine_name(wanted)
    if not name or SEPARATOR in name:
        raise InvalidMerge("The engine cannot keep an entity of that name.")
    if entity_key(name) in map(entity_key, sources):
        raise InvalidMerge("The new name differs from an entity to merge by case, width or spaces only.")
    return name


async def _relations(store: SupportStore, name: str) -> tuple[RelationEvidence, ...]:
    rows = []
    for row in await store.relations_of(name):
        edge = json.loads(row["properties"])
        texts = {field: edge.get(field) or "" for field in ("description", "keywords")}
        rows.append({"src_id": row["src_id"], "tgt_id": row["tgt_id"], "weight": edge.get("weight") or 0, **texts})
    return tuple((await graph_evidence(store, (), rows))[1])


async def _trusted_texts(store: SupportStore, blended: dict[str, str]) -> dict[str, str]:
    """The entities' texts; of those that untrusted versions speak of too, what the trusted ones say, or nothing."""
    support = await store.of_entities(list(blended))
    said = await store.said_of([name for name, found in support.items() if found.is_mixed])
    mixed = {name for name, found in support.items() if found.is_mixed}
    return {
        name: plain_text(text) if name not in mixed else said[name].description if name in said else ""
        for name, text in blended.items()
    }
