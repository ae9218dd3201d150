"""Merges entities, and shows beforehand what that would do."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lightrag.utils import make_relation_chunk_key

from app.retrieval.contract import EngineWorkspace, EntityEvidence, Lease, Statement
from app.retrieval.entity_contract import (
    ChangeRecord,
    EntityDetail,
    EntityNotFound,
    InvalidMerge,
    MergePreview,
    MergeRequest,
)
from app.retrieval.lightrag.edits import apply_edits, merged_edits
from app.retrieval.lightrag.entities.base import chunks_behind
from app.retrieval.lightrag.entities.browsing import EntityBrowsing, trusted_entities
from app.retrieval.lightrag.entities.change_store import announcing, recording
from app.retrieval.lightrag.entities.plan import Edge, MergePlan, Node, plan_merge
from app.retrieval.lightrag.entities.undo_store import keeping_undo
from app.retrieval.lightrag.graph_store import SEPARATOR
from app.retrieval.lightrag.index import unspoiled
from app.retrieval.lightrag.long_name_store import shown_whole
from app.retrieval.lightrag.names import engine_name, entity_key
from app.retrieval.lightrag.pool import inside
from app.retrieval.lightrag.stores import Write


class EntityMerging(EntityBrowsing):
    async def merge(
        self,
        workspace: EngineWorkspace,
        request: MergeRequest,
        lease: Lease,
        *,
        record: ChangeRecord | None = None,
        companions: Sequence[Statement] = (),
    ) -> EntityDetail:
        """`Entities.merge`."""
        record = record or ChangeRecord(request=asdict(request))
        async with self._instances.use(workspace) as instance:
            sources, target = await self._check_merge(workspace, request)
            rag, edits, aliases = instance.rag, self._edits(workspace), self._aliases(workspace)
            names = [*sources, target]

            async def write(operation: Write) -> None:
                await operation.read_ahead(names)
                known = await edits.touching(names)
                plan = await _plan(rag, sources, target, request)
                await operation.announce(announcing(workspace.ref, "merge", record, names))
                fields = {"description": plan.description or target, "entity_type": plan.type or "UNKNOWN"}
                await rag.amerge_entities([*sources], target, target_entity_data=fields)
                await _set_weights(rag, plan)
                kept = merged_edits(known, sources, target, _chosen_for_good(plan, request, known, names))
                await apply_edits(rag, kept)
                undo = keeping_undo(workspace.ref, record.id, sources, target, known, kept)
                await operation.commit(
                    [
                        *self._long(workspace).keeping([request.target]),
                        *recording(workspace.ref, "merge", record, names),
                        undo,
                        *aliases.merging(sources, target, record.id),
                        *edits.deleting(known),
                        *edits.putting(kept),
                        *companions,
                    ]
                )

            async with unspoiled(instance):
                await self._writes.run(rag, lease, write)
        return await self.get(workspace, target)

    @shown_whole
    async def preview_merge(self, workspace: EngineWorkspace, request: MergeRequest) -> MergePreview:
        """`Entities.preview_merge`."""
        async with self._instances.use(workspace) as instance:
            sources, target = await self._check_merge(workspace, request)
            nodes, goal, edges, chunks = await _read(instance.rag, sources, target)
            # Nobody may read in a preview what an entity would not show.
            blended = [(node.name, node.type, node.description) for node in [*nodes, *([goal] if goal else [])]]
            shown = await trusted_entities(self._support(workspace), blended)
            nodes = [_shown(node, shown) for node in nodes]
            goal = _shown(goal, shown) if goal else None
            plan = plan_merge(nodes, goal, edges, request, target)
        description = plan.description.replace(SEPARATOR, "\n")
        return MergePreview(target, plan.type, description, goal is None, len(chunks), plan.relations, plan.self_loops)

    async def count_relations(self, workspace: EngineWorkspace, names: Sequence[str]) -> int:
        """`Entities.count_relations`."""
        with inside(workspace.ref):
            known = {await self._resolve(workspace, name) for name in names}
            return await self._support(workspace).count_relations([name for name in known if name is not None])

    async def _check_merge(self, workspace: EngineWorkspace, request: MergeRequest) -> tuple[Sequence[str], str]:
        """The names as the graph has them. Refuses whatever would lose an entity or relate one to itself."""
        if not request.sources:
            raise InvalidMerge("Name at least one entity to merge.")
        # What an alias stands for must not vanish by a merge that was meant for the alias, or is tried again.
        sources = [await self._require(workspace, name, by_alias=False) for name in request.sources]
        if len(set(sources)) < len(sources):
            raise InvalidMerge("An entity is named twice among those to merge.")
        if await self._support(workspace).existing([request.target, engine_name(request.target)]) & set(sources):
            raise InvalidMerge("An entity cannot be merged into itself.")
        target = await self._resolve(workspace, request.target)
        # Of documents that nobody may read by now the answer could show nothing.
        names, support = [*sources, *([target] if target else [])], self._support(workspace)
        if not any([await support.chunks_of(name) or await support.is_trusted(name) for name in names]):
            raise EntityNotFound(f"There is no entity named {request.sources[0]!r}.")
        # An old name of a source may become the name again: the newest merge wins.
        return sources, _new_name(request.target, sources) if target is None or target in sources else target


def _new_name(wanted: str, sources: Sequence[str]) -> str:
    name = engine_name(wanted)
    if not name or SEPARATOR in name:
        raise InvalidMerge("The engine cannot keep an entity of that name.")
    if entity_key(name) in map(entity_key, sources):
        raise InvalidMerge("The new name differs from an entity to merge by case, width or spaces only.")
    return name


async def _plan(rag: Any, sources: Sequence[str], target: str, request: MergeRequest) -> MergePlan:
    nodes, goal, edges, _ = await _read(rag, sources, target)
    return plan_merge(nodes, goal, edges, request, target)


async def _read(rag: Any, sources: Sequence[str], target: str) -> tuple[list[Node], Node | None, list[Edge], set[str]]:
    """The entities, their relations, and all chunks behind the entities."""
    graph, names = rag.chunk_entity_relation_graph, [*sources, target]
    found = await graph.get_nodes_batch(names)
    pairs = sorted(
        {(min(pair), max(pair)) for each in (await graph.get_nodes_edges_batch(names)).values() for pair in each}
    )
    edges = await graph.get_edges_batch([{"src": one, "tgt": other} for one, other in pairs])
    tracked = await rag.relation_chunks.get_by_ids([make_relation_chunk_key(*pair) for pair in pairs])
    nodes = {
        name: Node(name, properties.get("entity_type") or "", properties.get("description") or "")
        for name, properties in found.items()
    }
    if missing := set(sources) - nodes.keys():
        raise EntityNotFound(f"There is no entity named {min(missing)!r}.")
    rows = await rag.entity_chunks.get_by_ids(names)
    chunks = {chunk for name, row in zip(names, rows, strict=True) for chunk in chunks_behind(row, found.get(name))}
    return (
        [nodes[name] for name in sources],
        nodes.get(target),
        [
            Edge(*pair, float(edges[pair].get("weight") or 0), tuple(chunks_behind(row, edges[pair])))
            for pair, row in zip(pairs, tracked, strict=True)
            if pair in edges
        ],
        chunks,
    )


def _shown(node: Node, shown: Mapping[str, EntityEvidence]) -> Node:
    found = shown.get(node.name)
    return Node(node.name, found.type, found.description) if found is not None else Node(node.name, "", "")


async def _set_weights(rag: Any, plan: MergePlan) -> None:
    """LightRAG takes the largest weight of relations that become one; distinct evidence adds up."""
    graph = rag.chunk_entity_relation_graph
    for relation in plan.relations:
        if len(relation.merged_from) > 1:
            edge = await graph.get_edge(relation.source, relation.target)
            if edge is not None and float(edge.get("weight") or 0) < relation.weight:
                await graph.upsert_edge(relation.source, relation.target, edge_data={**edge, "weight": relation.weight})


def _chosen_for_good(
    plan: MergePlan, request: MergeRequest, known: Sequence[Any], names: Sequence[str]
) -> dict[str, str]:
    """What no document says by itself: values and strategies that were asked for, and what edits had said before."""
    edited = {field for edit in known if edit.target is None and edit.name in names for field in edit.fields}
    wanted = edited | request.values.keys() | request.strategies.keys()
    return {
        field: value for field, value in (("type", plan.type), ("description", plan.description)) if field in wanted
    }
