"""From the original to the lazy index: parse, cut, embed, then one transaction that makes the version queryable."""

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.db.session import TenantSession
from app.domain.ingestion.attempts import Attempts, Begun, StageTimer, book_usage
from app.domain.ingestion.ports import Ports
from app.domain.ingestion.purge import retire_superseded
from app.domain.ingestion.records import TextFacts, VersionFacts
from app.domain.ingestion.repository import IngestionRepository
from app.domain.ingestion.states import Claim, IndexStates
from app.jobs import IndexGraph, ProcessVersion, enqueue
from app.parsing.errors import ParseFailed
from app.parsing.job import ParseLimits
from app.parsing.service import ORIGINAL_PREFIX
from app.providers.contract import EmbeddingModel, Vectors
from app.retrieval.contract import EngineWorkspace
from app.retrieval.store.passages import StoredVersion, content_hash, indexed_text, insert_passages
from app.retrieval.store.vectors import PassageVectors
from app.text.chunks import ChunkDraft, ChunkingProfile, group_chunks
from app.text.document import SourceText
from app.text.languages import detect_language
from app.text.passages import PassageDraft, split_passages

EMBED_BATCH = 64
EMBED_CONCURRENCY = 4
# Writing fewer passages takes less time than it takes anybody to see that it is under way.
TOLD_PASSAGES = 500


@dataclass(frozen=True)
class Embedded:
    """Passages with what is embedded of each: its digest and its vector, row for row."""

    hashes: list[bytes]
    vectors: Vectors


class VersionProcessor:
    """Does `ProcessVersion` jobs. Running one twice, or after a crash, has the effect of running it once."""

    def __init__(self, ports: Ports, attempts: Attempts) -> None:
        self._ports = ports
        self._attempts = attempts

    async def run(self, job: ProcessVersion, owner: str) -> None:
        """Raises what stops it; the caller concludes the attempt."""
        async with self._attempts.begin(job, owner, stage="parsing") as begun:
            if begun is None:
                return
            claim, facts = begun.claim, begun.facts
            workspace = await self._ports.workspaces.engine_workspace(begun.workspace)
            timer = StageTimer()
            with timer.measure("parse"):
                source = await self._parse(facts)
                passages = await self._ports.run_aside(split_passages, source)
            if not passages:
                raise ParseFailed("blank_document", "The document holds no text that could be indexed.")
            with timer.measure("embed"):
                embedded = await self._embed(claim, workspace, facts, passages)
            if len(passages) > TOLD_PASSAGES:
                async with self._ports.database.tenant(claim.tenant_id) as session:
                    await IndexStates(session).progress(claim, stage="indexing")
            chunks = await self._ports.run_aside(group_chunks, passages, _chunking(workspace), embedded.vectors)
            text = TextFacts(
                language=await self._ports.run_aside(detect_language, source.text),
                page_count=source.page_count,
                char_count=len(source.text),
                passage_count=len(passages),
                chunk_count=len(chunks),
                profile_hash=workspace.profile.hash,
            )
            await self._write(begun, workspace, text, passages, embedded, chunks, timer)

    async def _parse(self, facts: VersionFacts) -> SourceText:
        settings = self._ports.settings
        limits = ParseLimits(
            timeout_seconds=facts.seconds("parse_timeout_seconds", settings.parse_timeout_seconds),
            memory_bytes=settings.parse_memory_bytes,
            max_text_chars=settings.max_text_chars,
        )
        with tempfile.TemporaryDirectory(prefix=ORIGINAL_PREFIX) as folder:
            # Nothing of the user's name is part of a path; the name itself only helps to tell the format.
            path = Path(folder) / "original"
            await self._ports.blobs.fetch(facts.blob_key, path)
            return await self._ports.parser.parse(path, facts.filename, facts.media_type, limits)

    async def _embed(
        self, claim: Claim, workspace: EngineWorkspace, facts: VersionFacts, passages: Sequence[PassageDraft]
    ) -> Embedded:
        """One vector a passage; the workspace's own ones are found by content, only the rest is computed."""
        texts = [indexed_text(facts.title, passage.heading_path, passage.text) for passage in passages]
        hashes = [content_hash(text) for text in texts]
        async with self._ports.database.tenant(facts.ref.tenant_id) as session:
            await IndexStates(session).progress(claim, stage="embedding")
            known = await PassageVectors(workspace.vector_suffix).find(session, facts.ref, hashes)
        missing = {digest: text for digest, text in zip(hashes, texts, strict=True) if digest not in known}
        known.update(await _embed_all(workspace.embedding, missing))
        return Embedded(hashes, np.stack([known[digest] for digest in hashes]))

    async def _write(
        self,
        begun: Begun,
        workspace: EngineWorkspace,
        text: TextFacts,
        passages: Sequence[PassageDraft],
        embedded: Embedded,
        chunks: Sequence[ChunkDraft],
        timer: StageTimer,
    ) -> None:
        """The one transaction that makes the version queryable, or leaves no trace of this attempt."""
        facts = begun.facts
        async with self._ports.database.tenant(facts.ref.tenant_id) as session:
            repository = IngestionRepository(session)
            with timer.measure("index"):
                await self._replace_text(session, facts, workspace, passages, embedded)
                await repository.add_chunks(facts, chunks)
            await book_usage(session, begun)
            if facts.has_graph:
                enqueue(session, IndexGraph(facts.ref.tenant_id, facts.ref.workspace_id, facts.version_id))
            # Guarded by the claim: whoever lost it rolls back all of the above.
            await repository.publish_text(begun.claim, facts, text, timer.stage_ms)
            # A version that is uploaded from now on looks for superseded ones itself.
            if facts.has_others:
                await retire_superseded(session, facts)

    async def _replace_text(
        self,
        session: TenantSession,
        facts: VersionFacts,
        workspace: EngineWorkspace,
        passages: Sequence[PassageDraft],
        embedded: Embedded,
    ) -> None:
        lazy, repository = self._ports.lazy_index, IngestionRepository(session)
        if facts.has_text:
            await lazy.remove(session, facts.ref, facts.version_id)
            await repository.remove_text(facts.version_id)
        stored = StoredVersion(facts.ref, facts.document_id, facts.version_id)
        rows = await insert_passages(session, stored, facts.title, passages)
        vectors = {
            row.id: (digest, vector)
            for row, digest, vector in zip(rows, embedded.hashes, embedded.vectors, strict=True)
        }
        await PassageVectors(workspace.vector_suffix).write(session, facts.ref, facts.version_id, vectors)
        await lazy.add(session, facts.ref, facts.title, rows, is_file_name=facts.title == facts.filename)


async def _embed_all(model: EmbeddingModel, texts: Mapping[bytes, str]) -> dict[bytes, Vectors]:
    """Vectors of `texts` by the same keys, a few batches at a time; the first error stops the others."""
    found: dict[bytes, Vectors] = {}
    slots = asyncio.Semaphore(EMBED_CONCURRENCY)

    async def embed(batch: list[bytes]) -> None:
        async with slots:
            rows = await model.embed([texts[digest] for digest in batch], role="document")
            found.update(zip(batch, rows, strict=True))

    digests = list(texts)
    try:
        async with asyncio.TaskGroup() as group:
            for start in range(0, len(digests), EMBED_BATCH):
                group.create_task(embed(digests[start : start + EMBED_BATCH]))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return found


def _chunking(workspace: EngineWorkspace) -> ChunkingProfile:
    return ChunkingProfile(workspace.profile.chunk_strategy, workspace.profile.chunk_tokens)
