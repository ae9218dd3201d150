"""Derives entities again from the model's raw answers, as the inserts of their documents would, under other names.

It goes through LightRAG's own merge, version by version in the order of their inserts, so that descriptions, weights and
the order of sources are those of a graph in which the names had always meant this. Summaries are found in the cache.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from lightrag.operate import _rebuild_from_extraction_result, merge_nodes_and_edges

from app.retrieval.entity_contract import UndoBlocked
from app.retrieval.lightrag.edits import Edit
from app.retrieval.lightrag.entities.base import chunks_behind
from app.retrieval.lightrag.entities.change_store import order_of_inserts
from app.retrieval.lightrag.graph_store import SEPARATOR, Touched
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.repair import remove_unsupported
from app.retrieval.lightrag.storage.aliases import Extraction, NameResolver, names_of
from app.retrieval.lightrag.storage.mentions import Extractions

_CHUNK = "-chunk-"


@dataclass
class Reread:
    """What the chunks behind some entities say under new names; `names` are all that they are about then."""

    versions: dict[str, list[Extraction]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def restricted(self) -> "Reread":
        """What is said of these names and of their relations only."""
        return Reread({version: [_about(self.names, said) for said in chunks] for version, chunks in self.versions.items()},
                      self.names)  # fmt: skip

    def extractions(self) -> Extractions:
        return Extractions({}, [said for chunks in self.versions.values() for said in chunks])


async def chunks_of(rag: Any, names: Iterable[str]) -> list[str]:
    """Ids of the chunks behind entities and their relations, in no order that means anything."""
    graph, wanted = rag.chunk_entity_relation_graph, sorted(names)
    nodes = await graph.get_nodes_batch(wanted)
    pairs = sorted(
        {(min(pair), max(pair)) for each in (await graph.get_nodes_edges_batch(wanted)).values() for pair in each}
    )
    edges = await graph.get_edges_batch([{"src": one, "tgt": other} for one, other in pairs])
    tracked = await rag.entity_chunks.get_by_ids(wanted)
    related = await rag.relation_chunks.get_by_ids([SEPARATOR.join(pair) for pair in pairs])
    found: dict[str, None] = {}
    for name, row in zip(wanted, tracked, strict=True):
        found |= dict.fromkeys(chunks_behind(row, nodes.get(name)))
    for pair, row in zip(pairs, related, strict=True):
        found |= dict.fromkeys(chunks_behind(row, edges.get(pair)))
    return [chunk for chunk in found if is_chunk(chunk)]


def is_chunk(name: str) -> bool:
    """Whether the id is a document's chunk; what people made has another source."""
    version, separator, ordinal = name.rpartition(_CHUNK)
    try:
        UUID(version)
    except ValueError:
        return False
    return bool(separator) and ordinal.isdigit()


async def read_answers(rag: Any, chunks: Sequence[str]) -> dict[str, Extraction]:
    """What the cached answers about each chunk say, under the names that the model gave.

    Raises `UndoBlocked` if an answer is gone.
    """
    rows = await rag.text_chunks.get_by_ids(list(chunks))
    keys = {chunk: list((row or {}).get("llm_cache_list") or ()) for chunk, row in zip(chunks, rows, strict=True)}
    wanted = list(dict.fromkeys(key for each in keys.values() for key in each))
    answers = dict(zip(wanted, await rag.llm_response_cache.get_by_ids(wanted), strict=True))
    found: dict[str, Extraction] = {}
    missing = 0
    for chunk, row in zip(chunks, rows, strict=True):
        said = [answers[key] for key in keys[chunk] if answers[key] is not None]
        if row is None or not said:
            missing += 1
            continue
        found[chunk] = await _combined(chunk, row, sorted(said, key=lambda answer: answer.get("create_time", 0)))
    if missing:
        raise UndoBlocked(
            f"What the model said of {missing} chunks is gone; index their documents again first.",
            chunks_missing=missing,
        )
    return found


async def _combined(chunk: str, row: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]) -> Extraction:
    """Of several looks at a chunk the longer description of each name counts, as in LightRAG."""
    entities: dict[str, Any] = {}
    relations: dict[tuple[str, str], Any] = {}
    for answer in answers:
        moment = int(answer.get("create_time") or 0)
        nodes, edges = await _rebuild_from_extraction_result(
            None, answer["return"], chunk, moment, chunk_data=dict(row)
        )
        for found, said in ((entities, nodes), (relations, edges)):
            for key, records in said.items():
                if key not in found or _length(records) > _length(found[key]):
                    found[key] = list(records)
    return entities, relations


def _length(records: Sequence[Mapping[str, Any]]) -> int:
    return len(records[0].get("description") or "") if records else 0


async def reread(
    rag: Any, database: EngineDatabase, workspace: str, old: NameResolver, new: NameResolver, ends: Iterable[str]
) -> Reread:
    """Read all that is behind the entities `ends` anew; raises `UndoBlocked`.

    What their chunks mean by then may be further entities, which are read as well.
    """
    names, read = set(ends), dict[str, Extraction]()
    while True:
        chunks = [chunk for chunk in await chunks_of(rag, names) if chunk not in read]
        read |= await read_answers(rag, chunks)
        ordered = await _in_order(database, workspace, read)
        raw = [read[chunk] for chunk in ordered]
        meant = await new.apply(raw)
        after = names | await _counterparts(zip(ordered, raw, strict=True), old, new, names)
        if after == names:
            break
        names = after
    found = Reread(names=names)
    by_version: defaultdict[str, list[Extraction]] = defaultdict(list)
    for chunk, said in zip(ordered, meant, strict=True):
        by_version[chunk.rpartition(_CHUNK)[0]].append(said)
    found.versions = dict(by_version)
    return found.restricted()


async def _counterparts(
    chunks: Iterable[tuple[str, Extraction]], old: NameResolver, new: NameResolver, names: set[str]
) -> set[str]:
    """What is meant now by whatever meant one of these entities."""
    found: set[str] = set()
    for chunk, raw in chunks:
        said = names_of([raw])
        before, after = await old.meanings(chunk, said), await new.meanings(chunk, said)
        found |= {after[name] for name in said if before[name] in names}
    return found


async def _in_order(database: EngineDatabase, workspace: str, chunks: Iterable[str]) -> list[str]:
    """By the insert of their versions, then by their place in it."""
    known = list(chunks)
    versions = list(dict.fromkeys(chunk.rpartition(_CHUNK)[0] for chunk in known))
    place = await order_of_inserts(database, workspace, versions)

    def key(chunk: str) -> tuple[int, str, int]:
        version, _, ordinal = chunk.rpartition(_CHUNK)
        return place.get(version, len(place)), version, int(ordinal)

    return sorted(known, key=key)


def _about(names: set[str], said: Extraction) -> Extraction:
    entities, relations = said
    return (
        {name: records for name, records in entities.items() if name in names},
        {pair: records for pair, records in relations.items() if not names.isdisjoint(pair)},
    )


async def lost_edits(rag: Any, found: Reread, edits: Sequence[Edit]) -> list[Edit]:
    """Those that would have nothing to stand on once `found` is derived again; asked before, for not all storages can
    take back what was written."""
    graph = rag.chunk_entity_relation_graph
    said = [said for chunks in found.versions.values() for said in chunks]
    pairs = {(min(pair), max(pair)) for _, relations in said for pair in relations}
    names = {name for entities, _ in said for name in entities} | {name for pair in pairs for name in pair}
    names |= {edit.name for edit in edits if edit.target is None and edit.is_created}

    async def is_there(name: str) -> bool:
        return name in names or (name not in found.names and await graph.get_node(name) is not None)

    async def stands(edit: Edit) -> bool:
        if edit.target is None:
            return await is_there(edit.name)
        if not all([await is_there(name) for name in edit.names]):
            return False
        if edit.is_created or (edit.name, edit.target) in pairs:
            return True
        return found.names.isdisjoint(edit.names) and await graph.get_edge(edit.name, edit.target) is not None

    return [edit for edit in edits if not await stands(edit)]


async def derive_again(rag: Any, found: Reread) -> None:
    """Replace the entities, with all their relations, by what `found` says of them."""
    await remove_unsupported(rag, Touched(dict.fromkeys(found.names, ()), {}))
    status: dict[str, Any] = {"latest_message": "", "history_messages": []}
    for version, chunks in found.versions.items():
        if any(entities or relations for entities, relations in chunks):
            await merge_nodes_and_edges(
                chunk_results=[_copy(said) for said in chunks],
                knowledge_graph_inst=rag.chunk_entity_relation_graph,
                entity_vdb=rag.entities_vdb,
                relationships_vdb=rag.relationships_vdb,
                global_config=rag._build_global_config(),
                pipeline_status=status,
                pipeline_status_lock=asyncio.Lock(),
                llm_response_cache=rag.llm_response_cache,
                entity_chunks_storage=rag.entity_chunks,
                relation_chunks_storage=rag.relation_chunks,
                file_path=version,
            )
            status["history_messages"] = []


def _copy(said: Extraction) -> Any:
    entities, relations = said
    return (
        {name: [dict(record) for record in records] for name, records in entities.items()},
        {pair: [dict(record) for record in records] for pair, records in relations.items()},
    )


async def correct_anchors(rag: Any, found: Reread) -> None:
    """LightRAG's lists of what each document speaks of."""
    versions = list(found.versions)
    entities = await rag.full_entities.get_by_ids(versions)
    relations = await rag.full_relations.get_by_ids(versions)
    for version, named, paired in zip(versions, entities, relations, strict=True):
        said = found.versions[version]
        if named is not None:
            names = {name for name in named.get("entity_names") or () if name not in found.names}
            names |= {name for chunk in said for name in chunk[0]}
            await rag.full_entities.upsert({version: {"entity_names": sorted(names), "count": len(names)}})
        if paired is not None:
            pairs = {tuple(pair) for pair in paired.get("relation_pairs") or () if found.names.isdisjoint(pair)}
            pairs |= {(min(pair), max(pair)) for chunk in said for pair in chunk[1]}
            rows = [list(pair) for pair in sorted(pairs)]
            await rag.full_relations.upsert({version: {"relation_pairs": rows, "count": len(rows)}})


async def add_mentioned_chunks(rag: Any, names: Sequence[str], mentioned: Mapping[str, Sequence[str]]) -> None:
    """Take chunks that are gone from the lists, and add those of mentions, so that all there is can be read again."""
    edges = await rag.chunk_entity_relation_graph.get_nodes_edges_batch(list(names))
    pairs = sorted({SEPARATOR.join(sorted(pair)) for found in edges.values() for pair in found})
    for storage, keys in ((rag.entity_chunks, list(names)), (rag.relation_chunks, pairs)):
        rows = await storage.get_by_ids(keys)
        for key, row in zip(keys, rows, strict=True):
            listed = list(dict.fromkeys([*((row or {}).get("chunk_ids") or ()), *mentioned.get(key, ())]))
            chunks = [chunk for chunk in listed if is_chunk(chunk)]
            known = await rag.text_chunks.get_by_ids(chunks)
            gone = {chunk for chunk, found in zip(chunks, known, strict=True) if found is None}
            left = [chunk for chunk in listed if chunk not in gone]
            if row is None or left != row["chunk_ids"]:
                await storage.upsert({key: {"chunk_ids": left, "count": len(left)}})
