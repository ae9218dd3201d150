"""A small world for the storages: two workspaces of one tenant, deterministic models in process, rows to compare."""

import asyncio
import hashlib
import json
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

import asyncpg
import numpy as np
from lightrag import LightRAG
from lightrag.utils import EmbeddingFunc, Tokenizer

from app.retrieval.contract import Lease, WorkspaceRef
from app.retrieval.lightrag.logging import quieten_engine
from app.retrieval.lightrag.pool import engine_workspace
from app.retrieval.lightrag.storage.aliases import resolved_names
from app.retrieval.lightrag.storage.mentions import expose_extractions
from app.retrieval.lightrag.storage.plugin import register_unit_stores
from app.retrieval.lightrag.storage.unit import UnitOfWork, open_unit
from app.retrieval.lightrag.stores import STOCK, register

DIMENSION = 32
MODEL = "fake-32"
SUFFIX = f"fake_32_{DIMENSION}d"
OWNER = "worker-1"
NAMESPACE = UUID("6d7a5c1e-0000-4000-8000-000000000001")
STOCK_NAMES = (STOCK.kv, STOCK.vector, STOCK.graph, STOCK.doc_status)
UNIT_NAMES = ("UnitKVStorage", "UnitVectorStorage", "UnitGraphStorage", "UnitDocStatusStorage")

KV_TABLES = (
    "lightrag_doc_full",
    "lightrag_doc_chunks",
    "lightrag_doc_status",
    "lightrag_llm_cache",
    "lightrag_full_entities",
    "lightrag_full_relations",
    "lightrag_entity_chunks",
    "lightrag_relation_chunks",
)
VECTOR_TABLES = tuple(f"lightrag_vdb_{kind}_{SUFFIX}" for kind in ("chunks", "entity", "relation"))
GRAPH_TABLES = ("lightrag_graph_nodes", "lightrag_graph_edges")
TABLES = (*KV_TABLES, *VECTOR_TABLES, *GRAPH_TABLES)
NOT_COMPARED = {"workspace", "create_time", "update_time", "created_at", "updated_at", "track_id", "original_prompt"}


class CharacterTokens:
    """Four characters a token; stateless, so that LightRAG may copy it."""

    def encode(self, text: str) -> list[int]:
        return [
            sum((ord(letter) + 1) << (21 * place) for place, letter in enumerate(text[start : start + 4]))
            for start in range(0, len(text), 4)
        ]

    def decode(self, tokens: list[int]) -> str:
        letters = []
        for token in tokens:
            while token:
                letters.append(chr((token & 0x1FFFFF) - 1))
                token >>= 21
        return "".join(letters)


@dataclass
class Calls:
    """What the models were asked, by purpose; `fail_at` makes one call of a purpose fail."""

    count: Counter[str] = field(default_factory=Counter)
    fail_at: dict[str, int] = field(default_factory=dict)

    async def note(self, purpose: str) -> None:
        self.count[purpose] += 1
        if self.fail_at.get(purpose) == self.count[purpose]:
            # Late enough for the calls beside it to be answered and kept.
            await asyncio.sleep(0.2)
            raise RuntimeError(f"a call for {purpose} fails")


def fake_models(calls: Calls) -> tuple[Any, Any]:
    """A chat and an embedding function. Every name in a chunk is an entity, neighbours are related."""

    async def chat(prompt: str, system_prompt: str | None = None, **_: Any) -> str:
        if "Description List:" in prompt:
            await calls.note("summary")
            return "Summary " + hashlib.md5(prompt.encode(), usedforsecurity=False).hexdigest()
        await calls.note("extract")
        found = re.search(r"---Input Text---\n```\n(.*)\n```\n\n---Output---", prompt, re.DOTALL)
        text = found.group(1) if found else prompt
        mark = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:8]
        names = list(dict.fromkeys(re.findall(r"\b[A-Z][a-z]+ [A-Z][a-z]+\b", text)))
        rows = [f"entity<|#|>{name}<|#|>Concept<|#|>{name} stands in {mark}." for name in names]
        rows += [
            f"relation<|#|>{one}<|#|>{other}<|#|>near, beside<|#|>{one} is near {other} in {mark}."
            for one, other in pairwise(names)
        ]
        return "\n".join([*rows, "<|COMPLETE|>"])

    async def embed(texts: list[str], **_: Any) -> np.ndarray:
        await calls.note("embed")
        rows = [np.random.default_rng(int.from_bytes(hashlib.sha256(t.encode()).digest()[:8], "big")) for t in texts]
        found = np.stack([row.standard_normal(DIMENSION) for row in rows]).astype(np.float32)
        unit: np.ndarray = found / np.linalg.norm(found, axis=1, keepdims=True)
        return unit

    return chat, embed


@dataclass
class Engine:
    """One LightRAG over one workspace."""

    rag: Any
    ref: WorkspaceRef
    chunks: dict[str, list[dict[str, Any]]]
    calls: Calls
    is_unit: bool

    @property
    def lease(self) -> Lease:
        return Lease(self.ref, OWNER, 0)

    async def insert(self, document: str) -> None:
        """Insert in LightRAG's own way, or in a unit."""
        if self.is_unit:
            async with self.unit() as unit:
                await self.insert_into(unit, document)
                await unit.commit()
            return
        with engine_workspace(self.ref.engine_name):
            await self._ingest(document)

    async def insert_into(self, unit: UnitOfWork, document: str) -> None:
        with resolved_names(self.rag.llm_response_cache.db, self.ref):
            track_id = await self._ingest(document)
        unit.require_processed(document, track_id)

    async def change(self, method: str, *arguments: Any, read_ahead: tuple[str, ...] = ()) -> Any:
        """Call one of LightRAG's other writing methods, inside a unit where this engine has units."""
        call = getattr(self.rag, method)
        if not self.is_unit:
            with engine_workspace(self.ref.engine_name):
                return await call(*arguments)
        async with self.unit() as unit:
            await unit.read_ahead_entities(read_ahead)
            with resolved_names(self.rag.llm_response_cache.db, self.ref):
                result = await call(*arguments)
            await unit.commit()
            return result

    def unit(self, **options: Any) -> Any:
        return open_unit(self.rag, self.lease, **options)

    async def _ingest(self, document: str) -> str:
        return str(await self.rag.ainsert(document, ids=[document], file_paths=[f"{document}.txt"]))


async def open_engine(ref: WorkspaceRef, folder: Path, *, is_unit: bool, calls: Calls | None = None) -> Engine:
    """An engine over the migrated tables. Without units it is LightRAG with its own storages."""
    quieten_engine()
    register(STOCK)
    register_unit_stores()
    calls = calls or Calls()
    chat, embed = fake_models(calls)
    chunks: dict[str, list[dict[str, Any]]] = {}

    def cut(_tokenizer: Any, content: str, *_: Any, **__: Any) -> list[dict[str, Any]]:
        return [dict(chunk) for chunk in chunks[content.strip()]]

    kv, vector, graph, doc_status = UNIT_NAMES if is_unit else STOCK_NAMES
    rag = LightRAG(
        working_dir=str(folder),
        workspace=ref.engine_name,
        kv_storage=kv,
        vector_storage=vector,
        graph_storage=graph,
        doc_status_storage=doc_status,
        llm_model_func=chat,
        embedding_func=EmbeddingFunc(embedding_dim=DIMENSION, func=embed, max_token_size=8192, model_name=MODEL),
        tokenizer=Tokenizer("characters", CharacterTokens()),
        chunking_func=cut,
        entity_extract_max_gleaning=0,
        enable_llm_cache=False,
        max_parallel_insert=1,
        llm_model_max_async=8,
        embedding_batch_num=64,
        force_llm_summary_on_merge=4,
    )
    await rag.initialize_storages()
    if is_unit:
        expose_extractions(rag)
    return Engine(rag, ref, chunks, calls, is_unit)


async def close_engine(engine: Engine) -> None:
    with engine_workspace(engine.ref.engine_name):
        for wrapped in engine.rag.role_llm_funcs.values():
            await wrapped.shutdown(graceful=False)
        await engine.rag.embedding_func.func.shutdown(graceful=False)
        await engine.rag.finalize_storages()


def make_documents(count: int, *, chunks: int = 3, names: int = 10, seed: int = 7) -> dict[str, list[dict[str, Any]]]:
    """Documents by id: chunks of text that share some names with each other."""
    lot = random.Random(seed)
    known = [f"{first} {last}" for first in _FIRST for last in _LAST]
    hubs = known[:6]
    documents = {}
    for number in range(count):
        key = str(uuid5(NAMESPACE, f"{seed}-{number}"))
        documents[key] = [
            {
                "tokens": 100,
                "chunk_order_index": order,
                "content": f"Passage {order} of text {number}: "
                + "; ".join([*lot.sample(hubs, 2), *lot.sample(known, names - 2)]),
            }
            for order in range(chunks)
        ]
    return documents


_FIRST = ("Amber", "Birch", "Cedar", "Delta", "Ember", "Fjord", "Grove", "Haven")
_LAST = ("Bridge", "Castle", "Forest", "Harbor", "Island", "Meadow", "Tower", "Valley", "Water", "Works")


async def table_rows(owner_url: str, workspace: str, tables: tuple[str, ...] = TABLES) -> dict[str, list[str]]:
    """What the tables hold of a workspace, row by row as sorted JSON, without times and workspace names."""
    connection = await asyncpg.connect(owner_url)
    try:
        found = {}
        for table in tables:
            rows = await connection.fetch(f"SELECT to_jsonb(t) AS row FROM {table} t WHERE workspace = $1", workspace)
            found[table] = sorted(_comparable(json.loads(row["row"]), workspace) for row in rows)
        return found
    finally:
        await connection.close()


def _comparable(row: dict[str, Any], workspace: str) -> str:
    kept = {name: value for name, value in row.items() if name not in NOT_COMPARED}
    if isinstance(kept.get("properties"), dict):
        kept["properties"].pop("created_at", None)
    if isinstance(kept.get("metadata"), dict):
        for name in [name for name in kept["metadata"] if name.endswith("_time")]:
            kept["metadata"].pop(name)
    return json.dumps(kept, sort_keys=True).replace(workspace, "workspace")


def differences(one: dict[str, list[str]], other: dict[str, list[str]]) -> dict[str, tuple[list[str], list[str]]]:
    """Rows that only one side has, by table."""
    found = {}
    for table in one:
        left, right = Counter(one[table]), Counter(other[table])
        if left != right:
            found[table] = (list((left - right).elements())[:3], list((right - left).elements())[:3])
    return found


async def hold_lease(owner_url: str, ref: WorkspaceRef, owner: str = OWNER) -> None:
    """Make the workspace's lease that of `owner`."""
    connection = await asyncpg.connect(owner_url)
    try:
        await connection.execute(
            "UPDATE workspace_leases SET owner = $1, expires_at = now() + interval '1 hour' WHERE workspace_id = $2",
            owner,
            ref.workspace_id,
        )
    finally:
        await connection.close()


async def add_version(owner_url: str, ref: WorkspaceRef, version_id: UUID, *, chunks: int) -> None:
    """The rows of ours that stand behind a document of the engine."""
    connection = await asyncpg.connect(owner_url)
    tenant, workspace = ref.tenant_id, ref.workspace_id
    try:
        document, blob = uuid4(), uuid4()
        await connection.execute(
            "INSERT INTO documents (tenant_id, workspace_id, id, title, filename) VALUES ($1, $2, $3, 't', 'f')",
            tenant,
            workspace,
            document,
        )
        await connection.execute(
            "INSERT INTO blobs (tenant_id, workspace_id, id, key, sha256, size_bytes) VALUES ($1, $2, $3, $4, '', 0)",
            tenant,
            workspace,
            blob,
            str(blob),
        )
        await connection.execute(
            "INSERT INTO versions (tenant_id, workspace_id, id, document_id, blob_id, ordinal, media_type,"
            " index_profile_hash) VALUES ($1, $2, $3, $4, $5, 1, 'text/plain', '')",
            tenant,
            workspace,
            version_id,
            document,
            blob,
        )
        await connection.execute(
            "INSERT INTO chunks (tenant_id, workspace_id, version_id, ordinal, first_passage, last_passage, tokens)"
            " SELECT $1, $2, $3, n, n, n, 1 FROM generate_series(0, $4 - 1) n",
            tenant,
            workspace,
            version_id,
            chunks,
        )
    finally:
        await connection.close()


async def space_out_answers(owner_url: str, *engines: Engine) -> None:
    """Give cached answers times of their own, in the order of their keys.

    LightRAG's rebuild orders what chunks said by the second in which they were answered, and ties by the order of a set;
    neither is the storages' doing.
    """
    connection = await asyncpg.connect(owner_url)
    try:
        for engine in engines:
            await connection.execute(_SPACE_OUT, engine.ref.engine_name)
    finally:
        await connection.close()


_SPACE_OUT = """
UPDATE lightrag_llm_cache k SET create_time = timestamp '2026-01-01' + numbered.n * interval '1 minute'
  FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM lightrag_llm_cache WHERE workspace = $1) numbered
 WHERE k.workspace = $1 AND k.id = numbered.id
"""
