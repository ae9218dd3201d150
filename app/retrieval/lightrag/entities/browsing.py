"""Browses the entities of a workspace's graph, each answer from one snapshot of it, as searches do."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.retrieval.contract import EngineWorkspace, RelationEvidence
from app.retrieval.entity_contract import EntityDetail, EntityNotFound, EntitySummary
from app.retrieval.lightrag.entities.base import EntityOperations
from app.retrieval.lightrag.evidence import graph_evidence, plain_text
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
                descriptions = await trusted_texts(store, {row["name"]: row["description"] or "" for row in rows})
        found = [
            EntitySummary(row["name"], row["type"] or "", descriptions[row["name"]], row["degree"]) for row in rows
        ]
        shown = await self._long(workspace).shown(found)
        return [replace(entity, key=row["name"]) for entity, row in zip(shown, rows, strict=True)]

    @shown_whole
    async def get(self, workspace: EngineWorkspace, name: str) -> EntityDetail:
        with inside(workspace.ref):
            async with self._database.snapshot() as reads:
                store = self._support(workspace, reads)
                known = await self._resolve(workspace, name, reads=reads)
                chunks = await store.chunks_of(known) if known else ()
                if known is None or not (chunks or await store.is_trusted(known)):
                    raise EntityNotFound(f"There is no entity named {name!r}.")
                [node] = await graph_reads(reads, workspace.ref, store.states).nodes([known])
                described = await trusted_texts(store, {known: node["description"]})
                relations = await relation_evidence(store, await store.relations_of(known))
        return EntityDetail(known, node["entity_type"] or "", described[known], relations, chunks)


async def relation_evidence(store: SupportStore, found: Sequence[Any]) -> tuple[RelationEvidence, ...]:
    """Those of these rows (src_id, tgt_id, properties) that a trusted version or a person stands behind."""
    rows = []
    for row in found:
        edge = json.loads(row["properties"])
        texts = {field: edge.get(field) or "" for field in ("description", "keywords")}
        rows.append({"src_id": row["src_id"], "tgt_id": row["tgt_id"], "weight": edge.get("weight") or 0, **texts})
    return tuple((await graph_evidence(store, (), rows))[1])


async def trusted_texts(store: SupportStore, blended: dict[str, str]) -> dict[str, str]:
    """The entities' texts; of those that untrusted versions speak of too, what the trusted ones say, or nothing."""
    support = await store.of_entities(list(blended))
    said = await store.said_of([name for name, found in support.items() if found.is_mixed])
    mixed = {name for name, found in support.items() if found.is_mixed}
    return {
        name: plain_text(text) if name not in mixed else said[name].description if name in said else ""
        for name, text in blended.items()
    }
