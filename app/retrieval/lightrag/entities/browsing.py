"""Browses the entities of a workspace's graph, each answer from one snapshot of it, as searches do."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.retrieval.contract import EngineWorkspace, EntityEvidence, RelationEvidence
from app.retrieval.entity_contract import EntityDetail, EntityNotFound, EntitySummary
from app.retrieval.lightrag.entities.base import EntityOperations
from app.retrieval.lightrag.evidence import graph_evidence
from app.retrieval.lightrag.graphs import graph_reads
from app.retrieval.lightrag.long_name_store import shown_whole
from app.retrieval.lightrag.names import shorten
from app.retrieval.lightrag.pool import inside
from app.retrieval.lightrag.support_store import SupportStore


class EntityBrowsing(EntityOperations):
    async def list(
        self, workspace: EngineWorkspace, *, prefix: str | None, after: str | None, limit: int
    ) -> Sequence[EntitySummary]:
        """`prefix` is compared without case."""
        with inside(workspace.ref):
            async with self._database.snapshot() as reads:
                store = self._support(workspace, reads)
                rows = await store.entities(prefix=prefix, after=after and shorten(after), limit=limit)
                told = await trusted_entities(store, [(row["name"], row["type"], row["description"]) for row in rows])
        rows = [row for row in rows if row["name"] in told]
        found = [
            EntitySummary(row["name"], told[row["name"]].type, told[row["name"]].description, row["degree"])
            for row in rows
        ]
        shown = await self._long(workspace).shown(found)
        return [replace(entity, key=row["name"]) for entity, row in zip(shown, rows, strict=True)]

    @shown_whole
    async def get(self, workspace: EngineWorkspace, name: str) -> EntityDetail:
        with inside(workspace.ref):
            async with self._database.snapshot() as reads:
                store = self._support(workspace, reads)
                known = await self._resolve(workspace, name, reads=reads)
                nodes = await graph_reads(reads, workspace.ref, store.states).nodes([known] if known else ())
                found, _ = await graph_evidence(store, nodes, ())
                if known is None or not found:
                    raise EntityNotFound(f"There is no entity named {name!r}.")
                chunks = await store.chunks_of(known)
                relations = await relation_evidence(store, await store.relations_of(known))
        return EntityDetail(known, found[0].type, found[0].description, relations, chunks)


async def relation_evidence(store: SupportStore, found: Sequence[Any]) -> tuple[RelationEvidence, ...]:
    """Those of these rows (src_id, tgt_id, properties) that a trusted version or a person stands behind."""
    rows = []
    for row in found:
        edge = json.loads(row["properties"])
        texts = {field: edge.get(field) or "" for field in ("description", "keywords")}
        rows.append({"src_id": row["src_id"], "tgt_id": row["tgt_id"], "weight": edge.get("weight") or 0, **texts})
    return tuple((await graph_evidence(store, (), rows))[1])


async def trusted_entities(
    store: SupportStore, blended: Sequence[tuple[str, str | None, str | None]]
) -> dict[str, EntityEvidence]:
    """Entities, given by name, type and description, by name; of those that untrusted versions speak of too what the trusted
    ones say, and none that these alone speak of."""
    rows = [{"entity_name": name, "entity_type": kind or "", "description": text or ""} for name, kind, text in blended]
    return {entity.name: entity for entity in (await graph_evidence(store, rows, ()))[0]}
