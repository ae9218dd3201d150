"""What indexing files would ask of models, told before anything is stored or spent."""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.db.base import TenantId, WorkspaceId
from app.db.session import Database
from app.domain.documents.originals import Upload
from app.domain.limits.repository import LimitsRepository, ModelPrices, UsageRates
from app.domain.workspaces.repository import WorkspaceRepository
from app.domain.workspaces.service import refuse_deleting
from app.domain.workspaces.settings import WorkspaceSettings
from app.parsing.errors import ParseFailed
from app.parsing.job import ParseLimits
from app.parsing.service import ORIGINAL_PREFIX, FileParser
from app.retrieval.store.passages import indexed_text
from app.settings import Settings
from app.text.chunks import ChunkDraft, ChunkingProfile, group_chunks
from app.text.passages import PassageDraft, split_passages
from app.text.tokens import count_tokens

# Until a workspace has extracted something: the tokens of the prompt around a chunk, and what a model answers to one
# token of text. General figures, not measured; afterwards the averages of the workspace are used.
PROMPT_TOKENS = 2000
ANSWER_SHARE = 0.6
TOKENS_OF_PRICE = 1_000_000


@dataclass(frozen=True)
class FileEstimate:
    """What one file comes to, or why it could not be read."""

    filename: str
    passages: int = 0
    chunks: int = 0
    embedding_tokens: int = 0
    chunk_tokens: int = 0
    error: ParseFailed | None = None


@dataclass(frozen=True)
class Estimate:
    """`cost` is None where no model has a price. `is_measured`: from this workspace's own averages."""

    files: tuple[FileEstimate, ...]
    chunks: int
    model_calls: int
    tokens_in: int
    tokens_out: int
    embedding_tokens: int
    cost: float | None
    is_measured: bool
    model_tokens_left: int | None

    @property
    def fits_budget(self) -> bool:
        left = self.model_tokens_left
        return left is None or self.tokens_in + self.tokens_out + self.embedding_tokens <= left


class EstimateService:
    def __init__(self, database: Database, parser: FileParser, settings: Settings) -> None:
        self._database = database
        self._parser = parser
        self._settings = settings

    async def estimate(self, tenant_id: TenantId, workspace_id: WorkspaceId, uploads: Sequence[Upload]) -> Estimate:
        """Reads the files as indexing would and stores nothing. Raises WorkspaceNotFound or WorkspaceDeleting."""
        async with self._database.tenant(tenant_id) as session:
            record = await WorkspaceRepository(session).get(workspace_id)
            limits = LimitsRepository(session)
            rates = await limits.extraction_rates(workspace_id)
            prices = await limits.prices(record.row.embedding_profile_id, record.row.chat_profile_id)
            standing = await limits.standing()
        refuse_deleting(record.row)
        settings = WorkspaceSettings.stored(record.row.settings)
        files = tuple([await self._read(upload, settings) for upload in uploads])
        has_graph = "graph" in record.row.engines
        limit = standing.plan.model_tokens_per_month if standing.plan is not None else None
        left = max(0, limit - standing.model_tokens) if limit is not None else None
        return bill(files, settings if has_graph else None, rates, prices, left)

    async def _read(self, upload: Upload, settings: WorkspaceSettings) -> FileEstimate:
        limits = ParseLimits(
            timeout_seconds=self._settings.parse_timeout_seconds,
            memory_bytes=self._settings.parse_memory_bytes,
            max_text_chars=self._settings.max_text_chars,
        )
        try:
            with tempfile.TemporaryDirectory(prefix=ORIGINAL_PREFIX) as folder:
                path = Path(folder) / "original"
                with path.open("wb") as file:
                    async for piece in upload.open():
                        file.write(piece)
                source = await self._parser.parse(path, upload.filename, upload.content_type or "", limits)
        except ParseFailed as error:
            return FileEstimate(upload.filename, error=error)
        passages = await asyncio.to_thread(split_passages, source)
        # By topic chunks are cut with vectors, which would cost what is to be estimated; their number is about the same.
        strategy = "recursive" if settings.chunk_strategy == "semantic" else settings.chunk_strategy
        chunks = await asyncio.to_thread(group_chunks, passages, ChunkingProfile(strategy, settings.chunk_tokens))
        return await asyncio.to_thread(_counted, upload, passages, chunks)


def _counted(upload: Upload, passages: Sequence[PassageDraft], chunks: Sequence[ChunkDraft]) -> FileEstimate:
    texts = (indexed_text(upload.title, passage.heading_path, passage.text) for passage in passages)
    return FileEstimate(
        filename=upload.filename,
        passages=len(passages),
        chunks=len(chunks),
        embedding_tokens=sum(map(count_tokens, texts)),
        chunk_tokens=sum(chunk.tokens for chunk in chunks),
    )


def bill(
    files: tuple[FileEstimate, ...],
    graph: WorkspaceSettings | None,
    rates: UsageRates | None,
    prices: ModelPrices,
    model_tokens_left: int | None,
) -> Estimate:
    """The bill for `files`; `graph` is None where no chat model is asked.

    Summaries of entities that many chunks name, and the vectors of entities and relations, are not in it: they depend on
    what the model finds.
    """
    chunks, chunk_tokens = sum(file.chunks for file in files), sum(file.chunk_tokens for file in files)
    embedding_tokens = sum(file.embedding_tokens for file in files)
    calls = tokens_in = tokens_out = 0
    if graph is not None:
        embedding_tokens += chunk_tokens
        calls = chunks * (1 + graph.gleaning)
        if rates is not None:
            tokens_in, tokens_out = round(calls * rates.tokens_in), round(calls * rates.tokens_out)
        else:
            answers = round(chunk_tokens * ANSWER_SHARE)
            # A further pass is sent the first answer as well.
            tokens_in = (calls * PROMPT_TOKENS) + chunk_tokens * (1 + graph.gleaning) + answers * graph.gleaning
            tokens_out = answers * (1 + graph.gleaning)
    known = [price for price in (prices.chat_in, prices.chat_out, prices.embedding_in) if price is not None]
    spent = (
        tokens_in * (prices.chat_in or 0) + tokens_out * (prices.chat_out or 0)
        + embedding_tokens * (prices.embedding_in or 0)
    )  # fmt: skip
    return Estimate(
        files, chunks, calls, tokens_in, tokens_out, embedding_tokens,
        cost=spent / TOKENS_OF_PRICE if known else None,
        is_measured=rates is not None,
        model_tokens_left=model_tokens_left,
    )  # fmt: skip
