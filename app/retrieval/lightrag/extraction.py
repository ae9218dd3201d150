"""Asks the model about chunks ahead of the write, outside any lease: raw answers end in LightRAG's extraction cache.

Prompts, cache keys and parsing are LightRAG's own. What it reads in the answers is handed to the later insert; an insert
that comes without, in another process or after a crash, reads them from the cache again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from lightrag.operate import extract_entities

from app.errors import AppError, Unavailable
from app.providers.contract import ModelRejected, ModelUnavailable
from app.retrieval.contract import ChunkOutcome, ChunkText, Extracted, OnChunk, VersionChunks
from app.retrieval.lightrag.models import Complete, noted_failures
from app.retrieval.lightrag.scope import ended_with_block
from app.retrieval.lightrag.storage.mentions import ReadChunk

# The provider says no to whoever asks, not to this chunk.
HOPELESS_STATUSES = (401, 403, 404)
# So many chunks in a row without an answer, for each call that may be under way, say that the model is away.
FAILURES_A_CALL = 2


def chunk_id(version: VersionChunks, chunk: ChunkText) -> str:
    """The chunk's id in the engine."""
    return f"{version.version_id}-chunk-{chunk.ordinal:03d}"


async def extract_chunks(
    rag: Any,
    version: VersionChunks,
    chunks: Sequence[ChunkText],
    on_chunk: OnChunk,
    *,
    concurrency: int,
    until: asyncio.Event | None = None,
    into: Extracted,
) -> None:
    """Ask about `chunks`, several at a time, report each, and put what was read `into`, by ordinal.

    Cancelling it cancels the model calls that are under way.

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
                outcome = await _extract(rag, config, version, chunk, into)
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


class _AnswerMissing(RuntimeError):
    """The cache holds no answer; LightRAG adds its own words in front, to an error of the same class."""


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


async def read_answers(rag: Any, version: VersionChunks, chunks: Sequence[ChunkText]) -> dict[int, ReadChunk]:
    """What the cached answers of `chunks` say, by ordinal; chunks without an answer are left out."""
    config = rag._build_global_config()
    ask: Complete = config["role_llm_funcs"]["extract"]

    async def ask_again_only(*arguments: Any, **options: Any) -> str:
        # A second look (gleaning) whose answer was lost is paid for again; without a first one there is nothing to see.
        if not options.get("history_messages"):
            raise _AnswerMissing
        return await ask(*arguments, **options)

    config["role_llm_funcs"] = {**config["role_llm_funcs"], "extract": ask_again_only}

    async def read(chunk: ChunkText) -> ReadChunk | None:
        try:
            return await _read(rag, config, version, chunk)
        except _AnswerMissing:
            return None

    found = await asyncio.gather(*(read(chunk) for chunk in chunks))
    return {chunk.ordinal: each for chunk, each in zip(chunks, found, strict=True) if each is not None}


async def _read(rag: Any, config: dict[str, Any], version: VersionChunks, chunk: ChunkText) -> ReadChunk:
    keys = _AnswerKeys()
    (said,) = await extract_entities(
        _as_engine_chunk(version, chunk),
        config,
        llm_response_cache=rag.llm_response_cache,
        text_chunks_storage=keys,
    )
    return ReadChunk(said, tuple(keys.found))


async def _extract(
    rag: Any, config: dict[str, Any], version: VersionChunks, chunk: ChunkText, into: Extracted
) -> ChunkOutcome:
    with noted_failures() as failures:
        try:
            found = await _read(rag, config, version, chunk)
        except (AppError, RuntimeError):
            # LightRAG makes a new error of ours, with its own words in front.
            if not failures:
                raise
            return _failed(chunk, failures[-1])
    # Nobody may be told of an answer that a crash could still take.
    await rag.llm_response_cache.index_done_callback()
    into[chunk.ordinal] = found
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


class _AnswerKeys:
    """Stands in for LightRAG's storage of chunks, where it notes which answers a chunk was extracted from."""

    def __init__(self) -> None:
        self.found: list[str] = []

    async def get_by_id(self, _chunk: str) -> dict[str, Any]:
        return {"llm_cache_list": []}

    async def upsert(self, chunks: Mapping[str, Mapping[str, Any]]) -> None:
        for chunk in chunks.values():
            self.found += chunk["llm_cache_list"]
