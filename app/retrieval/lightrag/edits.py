"""What people say of entities and relations: kept apart from what documents say, and put on top of it after each write.

An entity or relation that somebody made has a source of its own, `manual`, beside the chunks that speak of it. What was
only edited goes with the last document that speaks of it.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Self

from lightrag.utils import compute_mdhash_id, make_relation_vdb_ids

from app.retrieval.lightrag.graph_store import MANUAL, SEPARATOR


@dataclass(frozen=True)
class Edit:
    """What a person says of an entity, or of the relation between `name` and `target` (in code point order).

    `fields`: type, description; of a relation description, keywords, weight.
    """

    name: str
    target: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    is_created: bool = False

    @classmethod
    def of_pair(cls, one: str, other: str, fields: Mapping[str, Any], *, is_created: bool) -> Self:
        return cls(min(one, other), max(one, other), fields, is_created)

    @property
    def key(self) -> bytes:
        name = self.name if self.target is None else f"{self.name}\0{self.target}"
        return blake2b(name.encode(), digest_size=16).digest()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,) if self.target is None else (self.name, self.target)

    def renamed(self, meant: Mapping[str, str]) -> Self | None:
        """As an edit of what its names mean; None for a relation of an entity to itself."""
        if self.target is None:
            return replace(self, name=meant.get(self.name, self.name))
        ends = sorted(meant.get(name, name) for name in self.names)
        return None if ends[0] == ends[1] else replace(self, name=ends[0], target=ends[1])


async def apply_edits(rag: Any, edits: Sequence[Edit]) -> list[Edit]:
    """Put the edits on top of what is there. Returns those that have nothing to stand on any more."""
    graph = rag.chunk_entity_relation_graph
    stale = []
    for edit in edits:
        if edit.target is None:
            node = await graph.get_node(edit.name)
            if node is None and not edit.is_created:
                stale.append(edit)
            else:
                await _apply_to_entity(rag, edit, node)
        else:
            ends = [await graph.get_node(name) for name in edit.names]
            edge = await graph.get_edge(edit.name, edit.target) if all(end is not None for end in ends) else None
            if None in ends or (edge is None and not edit.is_created):
                stale.append(edit)
            else:
                await _apply_to_relation(rag, edit, edge)
    return stale


async def _apply_to_entity(rag: Any, edit: Edit, node: Mapping[str, Any] | None) -> None:
    before: dict[str, Any] = (
        dict(node) if node else {"entity_type": "UNKNOWN", "description": edit.name, "created_at": int(time.time())}
    )
    told = {"type": "entity_type", "description": "description"}
    after = {
        **before,
        "entity_id": edit.name,
        **{told[name]: value for name, value in edit.fields.items()},
        "source_id": _with_manual(before.get("source_id"), edit),
        "file_path": _with_manual(before.get("file_path"), edit),
    }
    if after == before:
        return
    await rag.chunk_entity_relation_graph.upsert_node(edit.name, node_data=after)
    await _track(rag.entity_chunks, edit.name, before.get("source_id"), edit)
    vector = {
        "content": f"{edit.name}\n{after['description']}",
        "entity_name": edit.name,
        **{name: after[name] for name in ("entity_type", "description", "source_id", "file_path")},
    }
    await rag.entities_vdb.upsert({compute_mdhash_id(edit.name, prefix="ent-"): vector})


async def _apply_to_relation(rag: Any, edit: Edit, edge: Mapping[str, Any] | None) -> None:
    assert edit.target is not None  # noqa: S101 - the caller has asked
    fresh: dict[str, Any] = {
        "weight": 1.0,
        "description": f"{edit.name}, {edit.target}",
        "keywords": "",
        "created_at": int(time.time()),
    }
    before: dict[str, Any] = dict(edge) if edge else fresh
    after = {
        **before,
        **edit.fields,
        "source_id": _with_manual(before.get("source_id"), edit),
        "file_path": _with_manual(before.get("file_path"), edit),
    }
    if after == before:
        return
    await rag.chunk_entity_relation_graph.upsert_edge(edit.name, edit.target, edge_data=after)
    await _track(rag.relation_chunks, SEPARATOR.join(edit.names), before.get("source_id"), edit)
    content = f"{after['keywords']}\t{edit.name}\n{edit.target}\n{after['description']}"
    told = {name: after[name] for name in ("description", "keywords", "weight", "source_id", "file_path")}
    vector = {"src_id": edit.name, "tgt_id": edit.target, "content": content, **told}
    await rag.relationships_vdb.upsert({make_relation_vdb_ids(edit.name, edit.target)[0]: vector})


async def _track(storage: Any, key: str, sources: str | None, edit: Edit) -> None:
    if not edit.is_created:
        return
    row = await storage.get_by_id(key)
    chunks = list((row or {}).get("chunk_ids") or (sources or "").split(SEPARATOR))
    chunks = [chunk for chunk in chunks if chunk]
    if MANUAL not in chunks:
        await storage.upsert({key: {"chunk_ids": [*chunks, MANUAL], "count": len(chunks) + 1}})


def _with_manual(joined: str | None, edit: Edit) -> str:
    parts = [part for part in (joined or "").split(SEPARATOR) if part]
    if edit.is_created and MANUAL not in parts:
        parts.append(MANUAL)
    return SEPARATOR.join(parts)


def merged_edits(edits: Sequence[Edit], sources: Sequence[str], target: str, chosen: Mapping[str, Any]) -> list[Edit]:
    """The edits of a merged entity and its relations; `chosen` is what the merge says of the entity for good.

    A source's relation keeps what was said of it, unless as much was said of the target's.
    """
    meant = dict.fromkeys(sources, target)
    found: dict[bytes, Edit] = {}
    # The target's own come last, so that they win.
    for edit in sorted(edits, key=lambda edit: not set(edit.names).isdisjoint(meant), reverse=True):
        new = edit.renamed(meant)
        if new is None:
            continue
        before = found.get(new.key)
        if before is not None:
            new = replace(new, fields={**before.fields, **new.fields}, is_created=before.is_created or new.is_created)
        found[new.key] = new
    own = found.pop(Edit(target).key, Edit(target))
    own = replace(own, fields=dict(chosen))
    return [*([own] if own.fields or own.is_created else []), *found.values()]


def as_rows(edits: Sequence[Edit]) -> str:
    """JSON for the undo record."""
    return json.dumps([[edit.name, edit.target, dict(edit.fields), edit.is_created] for edit in edits])


def from_rows(rows: str) -> list[Edit]:
    return [Edit(*row) for row in json.loads(rows)]
