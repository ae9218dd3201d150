"""Makes entities and relations again from the chunks that are left to them, where LightRAG's own removal misses them.

It misses those that its records of a document do not name, after a merge for one (facts F16, F17).
"""

from typing import Any

from lightrag.operate import rebuild_knowledge_from_chunks
from lightrag.utils import compute_mdhash_id, make_relation_vdb_ids

from app.retrieval.lightrag.graph_store import SEPARATOR, Touched


async def rebuild(rag: Any, touched: Touched) -> None:
    """Derive what still has chunks from what the model said of those, as LightRAG itself does."""
    await rebuild_knowledge_from_chunks(
        entities_to_rebuild={name: list(chunks) for name, chunks in touched.entities.items()},
        relationships_to_rebuild={_pair(key): list(chunks) for key, chunks in touched.relations.items()},
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
