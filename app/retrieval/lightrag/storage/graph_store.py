"""LightRAG's graph in two plain tables, inside units of work. Reads without a unit are LightRAG's own."""

from collections.abc import Iterable, Mapping
from typing import Any

from lightrag.kg.pgtable_impl import PGTableGraphStorage
from lightrag.kg.postgres_impl import ClientManager
from lightrag.kg.shared_storage import get_data_init_lock

from app.retrieval.lightrag.storage.context import active_unit, writing_unit
from app.retrieval.lightrag.storage.graph_overlay import GraphReader, Pair, Properties, pair_of
from app.retrieval.lightrag.storage.guard import GuardedDatabase, refuse_in_unit


class UnitGraphStorage(GuardedDatabase, PGTableGraphStorage):  # type: ignore[misc]
    """Degrees, labels and whole graphs have no form inside a unit; nothing that writes asks for them."""

    async def initialize(self) -> None:
        """Take the process's pool; no statement, and none of the DDL that locks all tenants' graphs (facts F10)."""
        async with get_data_init_lock():
            if self.db is None:
                self.db = await ClientManager.get_client("PGVectorStorage")

    # --- Reads ---

    async def has_node(self, node_id: str) -> bool:
        return await self.get_node(node_id) is not None

    async def get_node(self, node_id: str) -> Properties | None:
        unit = active_unit(self.workspace)
        if unit is None:
            return (await self.read_nodes([node_id])).get(node_id)
        return await unit.graph.node(node_id)

    async def has_edge(self, source_node_id: str, target_node_id: str) -> bool:
        return await self.get_edge(source_node_id, target_node_id) is not None

    async def get_edge(self, source_node_id: str, target_node_id: str) -> Properties | None:
        unit = active_unit(self.workspace)
        if unit is None:
            pair = pair_of(source_node_id, target_node_id)
            return (await self.read_edges([pair])).get(pair)
        return await unit.graph.edge(source_node_id, target_node_id)

    async def get_node_edges(self, source_node_id: str) -> list[Pair] | None:
        unit = active_unit(self.workspace)
        if unit is None:
            found: list[Pair] | None = await super().get_node_edges(source_node_id)
            return found
        if await unit.graph.node(source_node_id) is None:
            return None
        pairs = await unit.graph.pairs_of(source_node_id)
        # Whoever lists a node's edges asks for each of them next.
        await unit.read_ahead_edges(pairs)
        return _from(source_node_id, pairs)

    async def get_nodes_batch(self, node_ids: list[str]) -> dict[str, Properties]:
        unit = active_unit(self.workspace)
        if unit is None:
            return await self.read_nodes(node_ids)
        await unit.graph.load_nodes(node_ids)
        return {name: node for name in node_ids if (node := await unit.graph.node(name)) is not None}

    async def has_nodes_batch(self, node_ids: list[str]) -> set[str]:
        return set(await self.get_nodes_batch(node_ids))

    async def get_edges_batch(self, pairs: list[dict[str, str]]) -> dict[Pair, Properties]:
        unit = active_unit(self.workspace)
        if unit is None:
            return dict(await super().get_edges_batch(pairs))
        asked = [(pair["src"], pair["tgt"]) for pair in pairs]
        await unit.graph.load_edges(pair_of(*pair) for pair in asked)
        return {pair: edge for pair in asked if (edge := await unit.graph.edge(*pair)) is not None}

    async def get_nodes_edges_batch(self, node_ids: list[str]) -> dict[str, list[Pair]]:
        unit = active_unit(self.workspace)
        if unit is None:
            return dict(await super().get_nodes_edges_batch(node_ids))
        await unit.graph.load_neighbourhoods(node_ids)
        return {name: _from(name, await unit.graph.pairs_of(name)) for name in node_ids}

    # --- Writes ---

    async def upsert_node(self, node_id: str, node_data: Mapping[str, Any]) -> None:
        writing_unit(self.workspace).graph.put_node(node_id, node_data)

    async def upsert_nodes_batch(self, nodes: list[tuple[str, Mapping[str, Any]]]) -> None:
        for name, properties in nodes:
            await self.upsert_node(name, properties)

    async def upsert_edge(self, source_node_id: str, target_node_id: str, edge_data: Mapping[str, Any]) -> None:
        writing_unit(self.workspace).graph.put_edge(source_node_id, target_node_id, edge_data)

    async def upsert_edges_batch(self, edges: list[tuple[str, str, Mapping[str, Any]]]) -> None:
        for source, target, properties in edges:
            await self.upsert_edge(source, target, properties)

    async def delete_node(self, node_id: str) -> None:
        await self.remove_nodes([node_id])

    async def remove_nodes(self, nodes: list[str]) -> None:
        await writing_unit(self.workspace).graph.remove_nodes(nodes)

    async def remove_edges(self, edges: list[Pair]) -> None:
        writing_unit(self.workspace).graph.remove_edges(pair_of(*edge) for edge in edges)

    async def index_done_callback(self) -> None:
        """Nothing: a unit writes when it commits."""

    async def drop(self) -> dict[str, str]:
        """Raises: a workspace is cleared by a unit of its own."""
        writing_unit(self.workspace)
        refuse_in_unit(self.workspace, "drop")
        return {}

    # --- What the database holds, read by LightRAG's own code ---

    def reader(self) -> GraphReader:
        return GraphReader(self.read_nodes, self.read_edges, self.read_neighbourhoods)

    async def read_nodes(self, names: list[str]) -> dict[str, Properties]:
        return dict(await super().get_nodes_batch(names))

    async def read_edges(self, pairs: list[Pair]) -> dict[Pair, Properties]:
        return dict(await super().get_edges_batch([{"src": one, "tgt": other} for one, other in pairs]))

    async def read_neighbourhoods(self, names: list[str]) -> dict[str, set[Pair]]:
        found = await super().get_nodes_edges_batch(names)
        return {name: {pair_of(*pair) for pair in pairs} for name, pairs in found.items()}


def _from(name: str, pairs: Iterable[Pair]) -> list[Pair]:
    """Edges as seen from one end, by the other end's name."""
    return sorted((name, other if one == name else one) for one, other in pairs)
