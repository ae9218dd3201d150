"""LightRAG instances of a process: how one is made, and a bounded pool of them that closes what it evicts.

An instance belongs to one workspace, one index profile and one pair of models for life, and to the loop that made it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from lightrag import LightRAG
from lightrag.kg import shared_storage

from app.retrieval.contract import EngineWorkspace, IndexProfile, VersionChunks
from app.retrieval.lightrag import graph_store
from app.retrieval.lightrag.long_name_store import LongNames
from app.retrieval.lightrag.models import chat_functions, embedding_function
from app.retrieval.lightrag.pool import EngineDatabase, engine_workspace, inside
from app.retrieval.lightrag.storage.mentions import expose_extractions
from app.retrieval.lightrag.stores import Stores, register, stores_of
from app.retrieval.lightrag.tokenizer import engine_tokenizer
from app.settings import Settings

# LightRAG gives the first instance's workspace to whoever asks for a namespace without naming one.
NO_WORKSPACE = "unassigned"
DEFAULT_CONCURRENCY = 4
SUMMARY_CONTEXT_TOKENS = 12_000
SUMMARY_TOKENS = 600
MAX_FILE_PATHS = 75
# LightRAG's own cut is by a cosine that means something else for every model; ranks decide here.
NO_THRESHOLD = -1.0


@dataclass
class Instance:
    """A LightRAG and the chunks it is about to be asked for, by version."""

    rag: Any
    offered: dict[str, list[dict[str, Any]]]
    users: int = 0
    is_spoiled: bool = field(default=False)

    @contextmanager
    def offered_chunks(self, version: VersionChunks) -> Iterator[str]:
        """Keep the chunks for LightRAG's question; the given text names the version and is what LightRAG ingests.

        The text never repeats in a workspace, or LightRAG would refuse it (facts F4).
        """
        key = str(version.version_id)
        self.offered[key] = [
            {"tokens": chunk.tokens, "content": chunk.text, "chunk_order_index": chunk.ordinal}
            for chunk in version.chunks
        ]
        try:
            yield key
        finally:
            del self.offered[key]

    def spoil(self) -> None:
        """Never use this instance again: a write broke off, and its buffers hold what must not be written."""
        self.is_spoiled = True


def _build(workspace: EngineWorkspace, settings: Settings, stores: Stores, database: EngineDatabase) -> Instance:
    offered: dict[str, list[dict[str, Any]]] = {}

    def our_chunks(_tokenizer: Any, content: str, *_: Any, **__: Any) -> list[dict[str, Any]]:
        return [dict(chunk) for chunk in offered[content.strip()]]

    functions = chat_functions(workspace.chat, LongNames(database, workspace.ref).keep)
    embedding = embedding_function(workspace.embedding, workspace.vector_suffix)
    rag = LightRAG(
        **_storage_arguments(workspace, settings, stores),
        **_indexing_arguments(workspace),
        **_QUERY_ARGUMENTS,
        **_PIPELINE_ARGUMENTS,
        chunking_func=our_chunks,
        embedding_func=embedding,
        llm_model_func=functions["extract"],
    )
    # LightRAG would run model calls in long-lived tasks of its own, out of reach of the caller's cancellation and usage
    # meter, and leave those tasks behind when the instance is closed (facts F6, F11). Our clients have their own limits.
    for role, state in rag._role_llm_states.items():
        state.wrapped = functions[role]
    rag.embedding_func.func = embedding.func
    expose_extractions(rag)
    return Instance(rag, offered)


def _storage_arguments(workspace: EngineWorkspace, settings: Settings, stores: Stores) -> dict[str, Any]:
    chat = workspace.chat
    return {
        "workspace": workspace.ref.engine_name,
        "working_dir": str(settings.scratch_dir),
        "kv_storage": stores.kv,
        "vector_storage": stores.vector,
        "graph_storage": stores.graph,
        "doc_status_storage": stores.doc_status,
        "tokenizer": engine_tokenizer(),
        # Part of the extraction cache's keys: another model's answers are not ours.
        "llm_model_name": f"{chat.profile.provider}:{chat.profile.model}" if chat else "none",
        "llm_model_max_async": chat.profile.max_concurrency if chat else DEFAULT_CONCURRENCY,
    }


def _indexing_arguments(workspace: EngineWorkspace) -> dict[str, Any]:
    profile = workspace.profile
    return {
        "addon_params": _addon_params(profile),
        "entity_extract_max_gleaning": profile.gleaning,
        "entity_extract_max_records": 100,
        "entity_extract_max_entities": 40,
        "entity_extraction_use_json": False,
        "force_llm_summary_on_merge": profile.summary_after_fragments,
        "summary_max_tokens": profile.summary_max_tokens,
        "summary_length_recommended": min(SUMMARY_TOKENS, profile.summary_max_tokens),
        "summary_context_size": SUMMARY_CONTEXT_TOKENS,
        "max_source_ids_per_entity": profile.max_source_ids,
        "max_source_ids_per_relation": profile.max_source_ids,
        "source_ids_limit_method": "KEEP",
        "max_file_paths": MAX_FILE_PATHS,
        "chunk_token_size": profile.chunk_tokens,
        "chunk_overlap_token_size": 0,
    }


def _addon_params(profile: IndexProfile) -> dict[str, Any]:
    size = {"chunk_token_size": profile.chunk_tokens}
    found: dict[str, Any] = {
        "language": profile.extraction_language,
        "entity_type_prompt_file": "",
        # Our chunks are cut already; whatever is not given here LightRAG would take from the environment.
        "chunker": {
            **size,
            "fixed_token": {**size, "chunk_overlap_token_size": 0, "split_by_character": None},
            "recursive_character": {**size, "chunk_overlap_token_size": 0},
            "semantic_vector": dict(size),
            "paragraph_semantic": {**size, "chunk_overlap_token_size": 0},
        },
    }
    guidance = [
        f"- {name}: {description}" if description else f"- {name}" for name, description in profile.entity_types
    ]
    if profile.extraction_examples:
        # LightRAG formats its own examples with str.format, where a brace of ours would break it.
        guidance += ["", "Examples from this corpus:", *profile.extraction_examples]
    if guidance:
        found["entity_types_guidance"] = "\n".join(guidance)
    return found


_QUERY_ARGUMENTS: dict[str, Any] = {
    "top_k": 40,
    "chunk_top_k": 20,
    "max_entity_tokens": 6000,
    "max_relation_tokens": 8000,
    "max_total_tokens": 30000,
    "related_chunk_number": 5,
    # By vectors it would fetch those of every candidate chunk and compare them on the loop.
    "kg_chunk_pick_method": "WEIGHT",
    "enable_content_headings": False,
    "cosine_better_than_threshold": NO_THRESHOLD,
    "max_graph_nodes": 1000,
    "min_rerank_score": 0.0,
    "user_prompt_prefix": "",
}

_PIPELINE_ARGUMENTS: dict[str, Any] = {
    # Its answer cache knows nothing of changes of the corpus (facts F22); the extraction cache is what retries live on.
    "enable_llm_cache": False,
    "enable_llm_cache_for_entity_extract": True,
    "embedding_batch_num": 64,
    "embedding_func_max_async": 4,
    "embedding_chunk_overlap_token_size": 0,
    "default_embedding_timeout": 600,
    "default_llm_timeout": 3600,
    "default_rerank_timeout": 60,
    "rerank_model_max_async": 4,
    "vlm_process_enable": False,
    "max_parallel_insert": 1,
    "max_parallel_parse_native": 1,
    "max_parallel_parse_mineru": 1,
    "max_parallel_parse_docling": 1,
    "max_parallel_analyze": 1,
    "queue_size_parse": 20,
    "queue_size_analyze": 100,
    "queue_size_insert": 4,
    "pipeline_scheduling_page_size": 500,
    "pipeline_require_strict_storage_reads": False,
    "max_pending_documents": 0,
}


class InstancePool:
    """The instances of a process, at most `settings.engine_instances` beyond those in use."""

    def __init__(self, settings: Settings, database: EngineDatabase, stores: Stores) -> None:
        self._settings = settings
        self._database = database
        self._stores = stores
        self._open: OrderedDict[Hashable, Instance] = OrderedDict()
        # Spoiled instances that somebody still uses.
        self._retired: list[Instance] = []
        self._lock = asyncio.Lock()
        # Vector tables that were found in order; nothing changes or drops them while the process lives.
        self._checked: set[tuple[str, int]] = set()
        register(stores)
        # Fresh locks for this loop: LightRAG's are module globals that stay bound to the loop that first waited on them.
        shared_storage.finalize_share_data()
        shared_storage.initialize_share_data()
        shared_storage.set_default_workspace(NO_WORKSPACE)

    @asynccontextmanager
    async def use(self, workspace: EngineWorkspace) -> AsyncIterator[Instance]:
        """An instance for this workspace, inside the workspace's fence; it is not closed while it is used."""
        with inside(workspace.ref):
            instance = await self._take(workspace)
            try:
                yield instance
            finally:
                instance.users -= 1
                await asyncio.shield(self._shrink())

    async def check(self, workspace: EngineWorkspace) -> None:
        """Raise unless the workspace's vector tables are there for its embedding model; asked once a model a process."""
        model = workspace.vector_suffix, workspace.embedding.dimension
        if model not in self._checked:
            await graph_store.check_vector_tables(self._database, *model)
            self._checked.add(model)

    async def close(self) -> None:
        """Close every instance; none may be in use."""
        while self._open or self._retired:
            instance = self._open.popitem()[1] if self._open else self._retired.pop()
            await self._close(instance)

    @property
    def size(self) -> int:
        return len(self._open)

    async def _take(self, workspace: EngineWorkspace) -> Instance:
        key = _key(workspace)
        async with self._lock:
            instance = self._open.get(key)
            if instance is not None and instance.is_spoiled:
                self._retired.append(self._open.pop(key))
                instance = None
            if instance is None:
                await self.check(workspace)
                instance = _build(workspace, self._settings, stores_of(workspace.ref, self._stores), self._database)
                await instance.rag.initialize_storages()
                self._open[key] = instance
            self._open.move_to_end(key)
            instance.users += 1
            return instance

    async def _shrink(self) -> None:
        async with self._lock:
            surplus = len(self._open) - self._settings.engine_instances
            for key, instance in list(self._open.items()):
                if instance.users == 0 and (instance.is_spoiled or surplus > 0):
                    surplus -= 1
                    await self._close(self._open.pop(key))
            for instance in [retired for retired in self._retired if retired.users == 0]:
                self._retired.remove(instance)
                await self._close(instance)

    async def _close(self, instance: Instance) -> None:
        rag = instance.rag
        with engine_workspace(rag.workspace):
            if instance.is_spoiled:
                for vectors in (rag.entities_vdb, rag.relationships_vdb, rag.chunks_vdb):
                    await vectors.drop_pending_index_ops()
            await rag.finalize_storages()
        if not any(other.rag.workspace == rag.workspace for other in (*self._open.values(), *self._retired)):
            _forget_workspace(rag.workspace)


def _key(workspace: EngineWorkspace) -> Hashable:
    chat = workspace.chat.profile if workspace.chat else None
    return (
        workspace.ref.workspace_id,
        workspace.ref.graph_store,
        workspace.profile.hash,
        workspace.vector_suffix,
        workspace.embedding.profile,
        chat,
    )


def _forget_workspace(name: str) -> None:
    """Drop what LightRAG's module globals hold of a workspace; it never does so itself."""
    for store in (
        shared_storage._shared_dicts,
        shared_storage._namespace_data_cache,
        shared_storage._pipeline_ingress_local,
        shared_storage._scan_job_store_local,
        shared_storage._init_flags,
        shared_storage._update_flags,
    ):
        for key in [key for key in store or () if key.startswith(f"{name}:")]:
            del store[key]
