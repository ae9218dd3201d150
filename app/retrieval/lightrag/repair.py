"""Removes a version from the graph by the chunks that support each name, and makes what remains again from its chunks.

LightRAG's own removal goes by its records of the document, which know nothing of merges, may be missing after a crash
and are then refused (facts F16, F17). Everything here goes through the instance's storages, so it is part of their write.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from lightrag.operate import rebuild_knowledge_from_chunks
from lightrag.utils import compute_mdhash_id, make_relation_vdb_ids

from app.retrieval.lightrag.graph_store import SEPARATOR, Touched
from app.retrieval.lightrag.storage.answer_lines import reading_about


async def remove_support(rag: Any, named: Touched, version_id: str) -> None:
    """Take the version's chunks from all that they support; `named` are the names that mention it in the database."""
    for mend in (rebuild, reduce_to_names):
        touched = await _still_touched(rag, named, version_id)
        if not touched:
            return
        await remove_unsupported(rag, touched)
        await mend(rag, touched.supported)


async def remove_rows(rag: Any, documents: Sequence[str], chunks: Sequence[str]) -> None:
    """Remove LightRAG's rows of these documents and chunks; what the chunks support is left to `remove_support`."""
    for storage, ids in (
        (rag.text_chunks, chunks),
        (rag.chunks_vdb, chunks),
        (rag.full_entities, documents),
        (rag.full_relations, documents),
        (rag.full_docs, documents),
        (rag.doc_status, documents),
    ):
        await storage.delete(list(ids))
    await rag._insert_done()


async def _still_touched(rag: Any, named: Touched, version_id: str) -> Touched:
    """Which of these names still mention the version, with the chunks that remain to each."""
    names, keys = list(named.entities), list(named.relations)
    graph = rag.chunk_entity_relation_graph
    nodes = await graph.get_nodes_batch(names)
    edges = await graph.get_edges_batch([{"src": source, "tgt": target} for source, target in map(_pair, keys)])
    tracked = await rag.entity_chunks.get_by_ids(names)
    related = await rag.relation_chunks.get_by_ids(keys)
    return Touched(
        _mentioning(version_id, zip(names, tracked, map(nodes.get, names), strict=True)),
        _mentioning(version_id, zip(keys, related, (edges.get(_pair(key)) for key in keys), strict=True)),
    )


def _mentioning(version_id: str, rows: Iterable[tuple[str, Any, Any]]) -> dict[str, list[str]]:
    found = {}
    for name, tracking, known in rows:
        properties = known or {}
        chunks = [*((tracking or {}).get("chunk_ids") or ()), *(properties.get("source_id") or "").split(SEPARATOR)]
        if version_id in " ".join([*chunks, properties.get("file_path") or ""]):
            own = f"{version_id}-chunk-"
            found[name] = list(dict.fromkeys(chunk for chunk in chunks if chunk and not chunk.startswith(own)))
    return found


async def remove_unsupported(rag: Any, touched: Touched) -> None:
    """Remove what has no chunk left, with all that hangs on it."""
    names = [name for name, remaining in touched.entities.items() if not remaining]
    edges = await rag.chunk_entity_relation_graph.get_nodes_edges_batch(names)
    pairs = {_pair(key) for key, remaining in touched.relations.items() if not remaining}
    pairs |= {(min(pair), max(pair)) for found in edges.values() for pair in found}
    if pairs:
        await rag.chunk_entity_relation_graph.remove_edges(sorted(pairs))
        await rag.relation_chunks.delete([SEPARATOR.join(pair) for pair in sorted(pairs)])
        await rag.relationships_vdb.delete([key for pair in sorted(pairs) for key in make_relation_vdb_ids(*pair)])
    if names:
        await rag.chunk_entity_relation_graph.remove_nodes(names)
        await rag.entity_chunks.delete(names)
        await rag.entities_vdb.delete([compute_mdhash_id(name, prefix="ent-") for name in names])
    await rag._insert_done()


async def rebuild(rag: Any, touched: Touched) -> None:
    """Derive what still has chunks from what the model said of those, as LightRAG itself does."""
    pairs = {_pair(key): list(chunks) for key, chunks in touched.relations.items()}
    with reading_about(touched.entities.keys(), pairs.keys()):
        await rebuild_knowledge_from_chunks(
            entities_to_rebuild={name: list(chunks) for name, chunks in touched.entities.items()},
            relationships_to_rebuild=pairs,
            knowledge_graph_inst=rag.chunk_entity_relation_graph,
            entities_vdb=rag.entities_vdb,
            relationships_vdb=rag.relationships_vdb,
            text_chunks_storage=rag.text_chunks,
            llm_response_cache=rag.llm_response_cache,
            global_config=rag._build_global_config(),
            entity_chunks_storage=rag.entity_chunks,
            relation_chunks_storage=rag.relation_chunks,
        )
    await rag._insert_done()


async def reduce_to_names(rag: Any, touched: Touched) -> None:
    """Leave of each entity and relation its name and the chunks that remain.

    The last resort for what `rebuild` cannot derive: a merged entity whose remaining chunks know it by another name.
    """
    for name, chunks in touched.entities.items():
        await _reduce_entity(rag, name, list(chunks))
    for key, chunks in touched.relations.items():
        await _reduce_relation(rag, _pair(key), list(chunks))
    await rag._insert_done()


async def _reduce_entity(rag: Any, name: str, chunks: list[str]) -> None:
    await rag.entity_chunks.upsert({name: {"chunk_ids": chunks, "count": len(chunks)}})
    node = await rag.chunk_entity_relation_graph.get_node(name)
    if node is None:
        return
    told = {"description": name, "source_id": SEPARATOR.join(chunks), "file_path": _files(chunks)}
    await rag.chunk_entity_relation_graph.upsert_node(name, node_data={**node, **told})
    vector = {"content": f"{name}\n{name}", "entity_name": name, "entity_type": node.get("entity_type", ""), **told}
    await rag.entities_vdb.upsert({compute_mdhash_id(name, prefix="ent-"): vector})


async def _reduce_relation(rag: Any, pair: tuple[str, str], chunks: list[str]) -> None:
    source, target = pair
    await rag.relation_chunks.upsert({SEPARATOR.join(pair): {"chunk_ids": chunks, "count": len(chunks)}})
    edge = await rag.chunk_entity_relation_graph.get_edge(source, target)
    if edge is None:
        return
    told = {
        "description": f"{source}, {target}",
        "keywords": "",
        "weight": float(len(chunks)),
        "source_id": SEPARATOR.join(chunks),
        "file_path": _files(chunks),
    }
    await rag.chunk_entity_relation_graph.upsert_edge(source, target, edge_data={**edge, **told})
    vector = {"src_id": source, "tgt_id": target, "content": f"\t{source}\n{target}\n{told['description']}", **told}
    await rag.relationships_vdb.upsert({make_relation_vdb_ids(source, target)[0]: vector})


def _pair(key: str) -> tuple[str, str]:
    source, target = key.split(SEPARATOR)
    return source, target


def _files(chunks: list[str]) -> str:
    """LightRAG's file paths of chunks: ours are the ids of their versions."""
    return SEPARATOR.join(dict.fromkeys(chunk.rpartition("-chunk-")[0] for chunk in chunks))
