"""Asks the model about chunks ahead of the write, outside any lease: raw answers end in LightRAG's extraction cache.

Prompts, cache keys and parsing are LightRAG's own; what it makes of the answers here is thrown away, for the later
insert reads them from the cache again.
"""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from lightrag.operate import extract_entities

from app.errors import AppError, Unavailable
from app.providers.contract import ModelRejected, ModelUnavailable
from app.retrieval.contract import ChunkOutcome, ChunkText, OnChunk, VersionChunks
from app.retrieval.lightrag.models import noted_failures
from app.retrieval.lightrag.scope import ended_with_block

# The provider says no to whoever asks, not to this chunk.
HOPELESS_STATUSES = (401, 403, 404)
# So many chunks in a row without an answer, for each call that may be under way, say that the model is away.
FAILURES_A_CALL = 2


def chunk_id(version: VersionChunks, chunk: ChunkText) -> str:
    """The chunk's id in the engine."""
    return f"{version.version_id}-chunk-{chunk.ordinal:03d}"


async def first_answer_keys(rag: Any, version: VersionChunks, chunks: Sequence[ChunkText]) -> dict[int, str]:
    """The cache key of each chunk's first extraction answer, by ordinal; neither model nor database is asked."""
    config = rag._build_global_config()
    keys: dict[int, str] = {}
    for chunk in chunks:
        probe = _CacheProbe(config)
        config["entity_extract_max_gleaning"] = 0
        await extract_entities(_as_engine_chunk(version, chunk), config, llm_response_cache=probe)
        keys[chunk.ordinal] = probe.keys[0]
    return keys


async def extract_chunks(
    rag: Any,
    version: VersionChunks,
    chunks: Sequence[ChunkText],
    on_chunk: OnChunk,
    *,
    concurrency: int,
    until: asyncio.Event | None = None,
) -> None:
    """Ask about `chunks`, several at a time, and report each. Cancelling it cancels the model calls that are under way.

    Raises `Unavailable` or `ModelRejected` where going on with other chunks is pointless, once the calls that were under
    way then have ended: they are paid for.
    """
    semaphore = asyncio.Semaphore(concurrency)
    reporting = asyncio.Lock()
    outage = _Outage(FAILURES_A_CALL * concurrency)
    config = rag._build_global_config()

    async def work(chunk: ChunkText) -> None:
        async with semaphore:
            if outage.error is not None or (until is not None and until.is_set()):
                return
            try:
                outcome = await _extract(rag, config, version, chunk)
            except AppError as error:
                outage.stop(error)
                return
        async with reporting:
            await on_chunk(outcome)
            outage.note(outcome)

    async with ended_with_block():
        try:
            async with asyncio.TaskGroup() as group:
                for chunk in chunks:
                    group.create_task(work(chunk))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
    if outage.error is not None:
        raise outage.error


class _Outage:
    """Tells failures of single chunks from a model that is away, which would only cost time for every further chunk.

    `error` is why nothing more is asked for.
    """

    def __init__(self, longest_row: int) -> None:
        self.error: AppError | None = None
        self._longest_row = longest_row
        self._row = 0

    def note(self, outcome: ChunkOutcome) -> None:
        self._row = self._row + 1 if outcome.may_pass else 0
        if self._row >= self._longest_row:
            self.stop(ModelUnavailable(outcome.error_detail or "the model does not answer"))

    def stop(self, error: AppError) -> None:
        """The first one counts."""
        self.error = self.error or error


async def _extract(rag: Any, config: dict[str, Any], version: VersionChunks, chunk: ChunkText) -> ChunkOutcome:
    with noted_failures() as failures:
        try:
            await extract_entities(_as_engine_chunk(version, chunk), config, llm_response_cache=rag.llm_response_cache)
        except (AppError, RuntimeError):
            # LightRAG makes a new error of ours, with its own words in front.
            if not failures:
                raise
            return _failed(chunk, failures[-1])
    # Nobody may be told of an answer that a crash could still take.
    await rag.llm_response_cache.index_done_callback()
    return ChunkOutcome(chunk.ordinal)


def _failed(chunk: ChunkText, error: AppError) -> ChunkOutcome:
    is_hopeless = isinstance(error, ModelRejected) and error.facts.get("status") in HOPELESS_STATUSES
    may_pass = isinstance(error, ModelUnavailable)
    if is_hopeless or (isinstance(error, Unavailable) and not may_pass):
        raise error
    return ChunkOutcome(chunk.ordinal, error.reason, error.detail, may_pass)


def _as_engine_chunk(version: VersionChunks, chunk: ChunkText) -> dict[str, dict[str, Any]]:
    name = str(version.version_id)
    return {
        chunk_id(version, chunk): {
            "tokens": chunk.tokens,
            "content": chunk.text,
            "full_doc_id": name,
            "chunk_order_index": chunk.ordinal,
            "file_path": name,
        }
    }


class _CacheProbe:
    """Stands in for LightRAG's cache to learn the keys it asks for; answers that there was nothing to extract."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.global_config = SimpleNamespace(get=config.get)
        self.keys: list[str] = []

    async def get_by_id(self, key: str) -> dict[str, Any]:
        self.keys.append(key)
        return {"return": "<|COMPLETE|>", "create_time": 0}
