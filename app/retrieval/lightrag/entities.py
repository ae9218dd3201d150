"""Browses and merges the entities of a workspace's graph."""

import json
from collections.abc import Sequence

from app.retrieval.contract import (
    EngineWorkspace,
    EntityDetail,
    EntityNotFound,
    EntitySummary,
    InvalidMerge,
    Lease,
    MergeRequest,
    RelationEvidence,
    Statement,
)
from app.retrieval.lightrag.evidence import plain_text, relation_evidence
from app.retrieval.lightrag.graph_store import SEPARATOR
from app.retrieval.lightrag.index import unspoiled
from app.retrieval.lightrag.instances import InstancePool
from app.retrieval.lightrag.names import engine_name
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.stores import Stores, Write
from app.retrieval.lightrag.support_store import SupportStore


class GraphEntities:
    """`Entities` over LightRAG."""

    def __init__(self, database: EngineDatabase, instances: InstancePool, stores: Stores) -> None:
        self._database = database
        self._instances = instances
        self._stores = stores

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
            known = await _resolve(store, name)
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
            sources, target = await _check_merge(store, request)

            async def write(operation: Write) -> None:
                await operation.read_ahead([*sources, target])
                await instance.rag.amerge_entities(sources, target)
                await operation.commit(companions)

            async with unspoiled(instance):
                await self._stores.run(instance.rag, lease, write)
        return await self.get(workspace, target)


async def _resolve(store: SupportStore, name: str) -> str | None:
    """The entity that `name` means: the one of that very name, or of the name LightRAG makes of it."""
    candidates = [name, engine_name(name)]
    known = await store.existing(candidates)
    return next((candidate for candidate in candidates if candidate in known), None)


async def _check_merge(store: SupportStore, request: MergeRequest) -> tuple[list[str], str]:
    """The names as the graph has them. Refuses whatever would lose an entity or relate one to itself."""
    if not request.sources:
        raise InvalidMerge("Name at least one entity to merge.")
    sources = []
    for name in request.sources:
        source = await _resolve(store, name)
        if source is None:
            raise EntityNotFound(f"There is no entity named {name!r}.")
        sources.append(source)
    if len(set(sources)) < len(sources):
        raise InvalidMerge("An entity is named twice among those to merge.")
    target = await _resolve(store, request.target)
    if target in sources:
        raise InvalidMerge("An entity cannot be merged into itself.")
    if target is None:
        target = _new_name(request.target, sources)
    return sources, target


def _new_name(wanted: str, sources: Sequence[str]) -> str:
    name = engine_name(wanted)
    if not name or SEPARATOR in name:
        raise InvalidMerge("The engine cannot keep an entity of that name.")
    if _folded(name) in map(_folded, sources):
        raise InvalidMerge("The new name differs from an entity to merge by case or spaces only.")
    return name


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())


async def _relations(store: SupportStore, name: str) -> tuple[RelationEvidence, ...]:
    rows = []
    for row in await store.relations_of(name):
        edge = json.loads(row["properties"])
        texts = {field: edge.get(field) or "" for field in ("description", "keywords")}
        rows.append({"src_id": row["src_id"], "tgt_id": row["tgt_id"], "weight": edge.get("weight") or 0, **texts})
    return tuple(await relation_evidence(store, rows))


async def _trusted_texts(store: SupportStore, blended: dict[str, str]) -> dict[str, str]:
    """The entities' texts; of those that untrusted versions speak of too, what the trusted ones say, or nothing."""
    support = await store.of_entities(list(blended))
    said = await store.said_of([name for name, found in support.items() if found.is_mixed])
    mixed = {name for name, found in support.items() if found.is_mixed}
    return {
        name: plain_text(text) if name not in mixed else said[name].description if name in said else ""
        for name, text in blended.items()
    }
