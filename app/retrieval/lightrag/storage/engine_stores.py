"""The storages of one LightRAG instance, by role; a unit works on these."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from lightrag import LightRAG

from app.retrieval.lightrag.storage.commit import UnitDatabase
from app.retrieval.lightrag.storage.doc_status_store import UnitDocStatusStorage
from app.retrieval.lightrag.storage.extraction_cache import ExtractionCache
from app.retrieval.lightrag.storage.graph_store import UnitGraphStorage
from app.retrieval.lightrag.storage.kv_store import UnitKvStore
from app.retrieval.lightrag.storage.vector_store import UnitVectorStorage


@dataclass(frozen=True)
class EngineStores:
    """Key-value and vector storages are keyed by LightRAG's namespaces."""

    kv: dict[str, UnitKvStore]
    vectors: dict[str, UnitVectorStorage]
    graph: UnitGraphStorage
    documents: UnitDocStatusStorage
    cache: ExtractionCache
    database: UnitDatabase
    embed: Callable[..., Awaitable[Any]]
    embedding_batch: int

    @classmethod
    def of(cls, rag: LightRAG) -> "EngineStores":
        """The storages of `rag`. Raises TypeError if it was made with others than ours."""
        kv = (
            rag.full_docs,
            rag.text_chunks,
            rag.full_entities,
            rag.full_relations,
            rag.entity_chunks,
            rag.relation_chunks,
        )
        vectors = (rag.chunks_vdb, rag.entities_vdb, rag.relationships_vdb)
        for store, kind in (
            *((store, UnitKvStore) for store in kv),
            *((store, UnitVectorStorage) for store in vectors),
            (rag.chunk_entity_relation_graph, UnitGraphStorage),
            (rag.doc_status, UnitDocStatusStorage),
            (rag.llm_response_cache, ExtractionCache),
        ):
            if not isinstance(store, kind):
                raise TypeError(f"{type(store).__name__} cannot work in a unit of work")
        return cls(
            kv={store.namespace: store for store in kv},
            vectors={store.namespace: store for store in vectors},
            graph=rag.chunk_entity_relation_graph,
            documents=rag.doc_status,
            cache=rag.llm_response_cache,
            database=rag.llm_response_cache.db,
            embed=rag.embedding_func,
            embedding_batch=rag.embedding_batch_num,
        )
