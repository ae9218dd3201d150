"""Small deterministic models, and a workspace with documents as ingestion would leave them."""

import asyncio
import json
import re
import zlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from sqlalchemy import text

from app.db.base import TenantId, WorkspaceId
from app.db.session import Database
from app.providers.contract import ChatMessage, ChatReply, EmbeddingRole, ModelProfile, Purpose, Vectors
from app.providers.usage import record_call
from app.retrieval.contract import (
    ChunkOutcome,
    ChunkText,
    EngineWorkspace,
    GraphStoreName,
    IndexProfile,
    Lease,
    VersionChunks,
    WorkspaceRef,
)
from app.retrieval.store.passages import content_hash, indexed_text
from app.retrieval.store.vectors import PassageVectors

DIMENSION = 32
OWNER = "test"
SUFFIX = f"double_{DIMENSION}d"
NAME = re.compile(r"\b[A-Z][\w'-]+(?: [A-Z][\w'-]+)*\b")
INPUT = re.compile(r"---Input Text---\n```\n(.*)\n```\n\n---Output---", re.DOTALL)


class WordEmbedding:
    """Bags of hashed words: texts that share words are near."""

    profile = ModelProfile(uuid4(), "double", "embedding", "offline", "double", dimension=DIMENSION)
    dimension = DIMENSION

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[str]]] = []
        self.failing = 0
        self.seconds = 0.0

    async def embed(self, texts: Sequence[str], *, role: EmbeddingRole) -> Vectors:
        self.calls.append((role, list(texts)))
        await asyncio.sleep(self.seconds)
        if self.failing:
            self.failing -= 1
            from app.providers.contract import ModelUnavailable  # noqa: PLC0415

            raise ModelUnavailable("the embedding model is down", status=503)
        purpose = Purpose.EMBED_QUERY if role == "query" else Purpose.EMBED_DOCUMENT
        record_call(self.profile, purpose, tokens_in=1, tokens_out=0, is_estimated=True)
        return np.stack([self.vector(found) for found in texts])

    def vector(self, found: str) -> Vectors:
        vector = np.zeros(DIMENSION, np.float32)
        for word in re.findall(r"\w+", found.lower()):
            vector[zlib.crc32(word.encode()) % DIMENSION] += 1
        norm = float(np.linalg.norm(vector))
        return vector / norm if norm else vector

    async def aclose(self) -> None:
        """Nothing to close."""


@dataclass
class NameChat:
    """Extracts capitalised names, each related to the next; `answers` by a word of the text overrides that."""

    profile: ModelProfile = field(default_factory=lambda: ModelProfile(uuid4(), "double", "chat", "offline", "double"))
    answers: dict[str, str | Exception] = field(default_factory=dict)
    asked: list[tuple[Purpose, str]] = field(default_factory=list)
    keywords: str | None = None
    seconds: float = 0
    cancelled: int = 0
    waiting: int = 0
    busy: asyncio.Event = field(default_factory=asyncio.Event)

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        purpose: Purpose,
        **_: Any,
    ) -> ChatReply:
        prompt = messages[-1].content
        found = INPUT.search(prompt)
        self.asked.append((purpose, found[1] if found else prompt))
        self.waiting += 1
        if self.waiting == self.profile.max_concurrency:
            self.busy.set()
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.waiting -= 1
        record_call(self.profile, purpose, tokens_in=10, tokens_out=5, is_estimated=True)
        return ChatReply(self.answer(purpose, prompt, found[1] if found else ""), 10, 5, True, "stop")

    def answer(self, purpose: Purpose, prompt: str, passage: str) -> str:
        if purpose is Purpose.KEYWORDS:
            query = prompt.rsplit("User Query:", 1)[1].split("---Output---")[0]
            names = NAME.findall(query)
            return self.keywords or json.dumps({"high_level_keywords": names, "low_level_keywords": names})
        if purpose is Purpose.SUMMARY:
            return "summary of " + " ".join(re.findall(r'"Description": "([^"]*)"', prompt))
        for word, answer in self.answers.items():
            if word in passage:
                if isinstance(answer, Exception):
                    raise answer
                return answer
        return records(passage)

    async def stream(self, messages: Sequence[ChatMessage], *, purpose: Purpose, **_: Any) -> AsyncGenerator[str, None]:
        yield (await self.complete(messages, purpose=purpose)).text

    async def aclose(self) -> None:
        """Nothing to close."""

    def count(self, purpose: Purpose) -> int:
        return sum(asked is purpose for asked, _ in self.asked)


def records(passage: str, names: Sequence[str] | None = None) -> str:
    """An extraction answer: each name described by the sentence it stands in, and related to the next one."""
    names = list(names if names is not None else dict.fromkeys(NAME.findall(passage)))

    def said(name: str) -> str:
        return next((line for line in re.split(r"(?<=\.) ", passage) if name in line), passage).replace("\n", " ")

    rows = [f"entity<|#|>{name}<|#|>Concept<|#|>{said(name)}" for name in names]
    rows += [f"relation<|#|>{a}<|#|>{b}<|#|>related<|#|>{a} and {b}: {said(b)}" for a, b in pairwise(names)]
    return "\n".join([*rows, "<|COMPLETE|>"])


async def ignore(_outcome: ChunkOutcome) -> None:
    """Nobody watches."""


@dataclass
class Corpus:
    """One workspace with a graph, and what ingestion writes of a document beside the engines."""

    database: Database
    tenant_id: TenantId
    workspace: EngineWorkspace

    @classmethod
    def of(
        cls,
        database: Database,
        tenant_id: TenantId,
        workspace_id: WorkspaceId,
        number: int,
        graph_store: GraphStoreName = "table",
        **profile: object,
    ) -> "Corpus":
        return cls(
            database,
            tenant_id,
            EngineWorkspace(
                ref=WorkspaceRef(tenant_id, workspace_id, number, graph_store),
                profile=replace(IndexProfile(), **profile),  # type: ignore[arg-type]
                embedding=WordEmbedding(),
                vector_suffix=SUFFIX,
                chat=NameChat(),
            ),
        )

    @property
    def lease(self) -> Lease:
        return Lease(self.workspace.ref, OWNER, 0)

    @property
    def chat(self) -> NameChat:
        assert isinstance(self.workspace.chat, NameChat)
        return self.workspace.chat

    @property
    def embedding(self) -> WordEmbedding:
        assert isinstance(self.workspace.embedding, WordEmbedding)
        return self.workspace.embedding

    async def add(self, *chunks: str, title: str = "a title", document_id: UUID | None = None) -> VersionChunks:
        """Rows of a version that is not live yet; every chunk is one passage."""
        document_id = document_id or uuid4()
        version = VersionChunks(
            uuid4(), document_id, tuple(ChunkText(n, chunk, len(chunk) // 4 + 1) for n, chunk in enumerate(chunks))
        )
        scope = {
            "tenant": self.tenant_id,
            "workspace": self.workspace.ref.workspace_id,
            "document": document_id,
            "version": version.version_id,
            "blob": uuid4(),
            "title": title,
        }
        async with self.database.tenant(self.tenant_id) as session:
            for statement in _DOCUMENT:
                await session.execute(text(statement), scope)
            vectors = {}
            start = 0
            for chunk in version.chunks:
                digest = content_hash(indexed_text(title, (), chunk.text))
                row = await session.scalar(
                    text(_PASSAGE),
                    scope
                    | {"ordinal": chunk.ordinal, "text": chunk.text, "start": start, "end": start + len(chunk.text)}
                    | {"hash": digest, "tokens": chunk.tokens},
                )
                await session.execute(text(_CHUNK), scope | {"ordinal": chunk.ordinal, "tokens": chunk.tokens})
                vectors[row] = (digest, self.embedding.vector(indexed_text(title, (), chunk.text)))
                start += len(chunk.text) + 1
            await PassageVectors(SUFFIX).write(session, self.workspace.ref, version.version_id, vectors)
        return version

    async def trust(self, version: VersionChunks, state: str = "ready", engine: str = "graph") -> None:
        """What the commit that makes a version ready writes."""
        scope = {
            "tenant": self.tenant_id,
            "workspace": self.workspace.ref.workspace_id,
            "document": version.document_id,
            "version": version.version_id,
            "state": state,
            "engine": engine,
        }
        async with self.database.tenant(self.tenant_id) as session:
            for statement in _TRUST:
                await session.execute(text(statement), scope)


_DOCUMENT = (
    "INSERT INTO blobs (tenant_id, workspace_id, id, key, sha256, size_bytes)"
    " VALUES (:tenant, :workspace, :blob, CAST(CAST(:blob AS uuid) AS text), ''::bytea, 1)",
    "INSERT INTO documents (tenant_id, workspace_id, id, title, filename)"
    " VALUES (:tenant, :workspace, :document, :title, 'file.txt') ON CONFLICT DO NOTHING",
    "INSERT INTO versions (tenant_id, workspace_id, id, document_id, blob_id, ordinal, media_type, index_profile_hash)"
    " VALUES (:tenant, :workspace, :version, :document, :blob, (SELECT count(*) + 1 FROM versions"
    " WHERE tenant_id = :tenant AND document_id = :document), 'text/plain', 'x')",
)
_PASSAGE = """
INSERT INTO passages (tenant_id, workspace_id, document_id, version_id, ordinal, text, tokens, char_start, char_end,
                      heading_path, content_hash)
VALUES (:tenant, :workspace, :document, :version, :ordinal, :text, :tokens, :start, :end, '{}', :hash) RETURNING id
"""
_CHUNK = """
INSERT INTO chunks (tenant_id, workspace_id, version_id, ordinal, first_passage, last_passage, tokens)
VALUES (:tenant, :workspace, :version, :ordinal, :ordinal, :ordinal, :tokens)
"""
_TRUST = (
    "INSERT INTO index_states (tenant_id, workspace_id, version_id, engine, state)"
    " VALUES (:tenant, :workspace, :version, :engine, :state)"
    " ON CONFLICT (tenant_id, version_id, engine) DO UPDATE SET state = :state",
    "INSERT INTO live_versions (tenant_id, workspace_id, document_id, engine, version_id)"
    " VALUES (:tenant, :workspace, :document, :engine, :version)"
    " ON CONFLICT (tenant_id, document_id, engine) DO UPDATE SET version_id = :version",
)
