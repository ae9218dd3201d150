"""The extraction of one version's chunks: under a time limit, chunk by chunk, and in turns while other work waits."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from time import monotonic

from app.db.session import TenantSession
from app.domain.ingestion.attempts import StageTimer, reason_of
from app.domain.ingestion.live import failure_sentence
from app.domain.ingestion.ports import Ports
from app.domain.ingestion.records import Extraction, VersionFacts
from app.domain.ingestion.repository import IngestionRepository
from app.domain.ingestion.states import Claim, IndexStates
from app.errors import AppError
from app.jobs import IndexGraph, ProcessVersion, PurgeDocument, enqueue
from app.providers.contract import ModelRejected, ModelUnavailable
from app.retrieval.contract import ChunkOutcome, EngineWorkspace, Extracted, VersionChunks

# A slot is given back between two chunks after so long, if something waits in one of these queues.
TURN_SECONDS = {PurgeDocument.queue: 3.0, ProcessVersion.queue: 3.0, IndexGraph.queue: 300.0}
LOOK_SECONDS = 1.0
# How often the outcomes of chunks are written down.
NOTE_SECONDS = 1.0


class ChunkExtraction:
    """Asks for chunks that have no answer yet."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def run(
        self,
        claim: Claim,
        facts: VersionFacts,
        workspace: EngineWorkspace,
        version: VersionChunks,
        before: Extraction,
        timer: StageTimer,
        *,
        into: Extracted,
    ) -> Extraction | None:
        """How it came out; None if the claim was handed back, for it was another one's turn.

        `into` gets what was read in the answers. The time limit holds for all attempts together. Raises ModelUnavailable while some chunks may still get an answer
        in a later attempt; what gets none fails.
        """
        limit = facts.seconds("extract_timeout_seconds", self._ports.settings.extract_timeout_seconds)
        progress = _Progress(self._ports, claim, before)
        is_in_time, stopped_by = True, None
        with timer.measure("extract"):
            async with self._turn() as is_over:
                left = limit - timer.stage_ms["extract"] / 1000
                work = self._ports.graph_index.extract(workspace, version, progress.note, until=is_over, into=into)
                try:
                    is_in_time = await within(left, work)
                except (ModelUnavailable, ModelRejected) as error:
                    stopped_by = error
        if progress.is_whole:
            return progress.whole()
        if stopped_by is None and is_in_time and is_over.is_set() and await self._pass_on(claim, timer, progress):
            return None
        return await self._give_up_pending(claim, timer, progress, limit if not is_in_time else None, stopped_by)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[asyncio.Event]:
        """An event that is set once this document has had its turn and other work waits for a slot."""
        is_over = asyncio.Event()
        watch = asyncio.create_task(self._watch(is_over))
        try:
            yield is_over
        finally:
            watch.cancel()
            await asyncio.wait([watch])

    async def _watch(self, is_over: asyncio.Event) -> None:
        began = asyncio.get_running_loop().time()
        while not is_over.is_set():
            await asyncio.sleep(LOOK_SECONDS)
            taken = asyncio.get_running_loop().time() - began
            for queue, turn in TURN_SECONDS.items():
                if taken >= turn and await self._ports.waiting(queue):
                    is_over.set()

    async def _pass_on(self, claim: Claim, timer: StageTimer, progress: "_Progress") -> bool:
        """Queue the rest behind the others; False if every chunk has been asked for already."""
        async with self._ports.database.tenant(claim.tenant_id) as session:
            await progress.write(session)
            extraction = await IngestionRepository(session).extraction(claim.version_id)
            if len(extraction.pending) == len(extraction.refused):
                return False
            states = IndexStates(session)
            await states.progress(claim, chunks=extraction.counts, stage_ms=timer.stage_ms)
            await states.hand_back(claim)
            enqueue(session, IndexGraph(claim.tenant_id, claim.workspace_id, claim.version_id))
        return True

    async def _give_up_pending(
        self,
        claim: Claim,
        timer: StageTimer,
        progress: "_Progress",
        limit: float | None,
        stopped_by: AppError | None,
    ) -> Extraction:
        """Fail the chunks without an answer, where no later attempt will ask for them; `limit` is that of a time that is over."""
        async with self._ports.database.tenant(claim.tenant_id) as session:
            repository = IngestionRepository(session)
            await progress.write(session)
            extraction = await repository.extraction(claim.version_id)
            await IndexStates(session).progress(claim, chunks=extraction.counts, stage_ms=timer.stage_ms)
            is_repeated = (
                limit is None
                and not isinstance(stopped_by, ModelRejected)
                and claim.attempt < self._ports.settings.max_attempts
            )
            if extraction.pending and not is_repeated:
                if limit is not None:
                    sentence = f"the time limit of {limit:g} seconds was over"
                    await repository.fail_pending_chunks(claim.version_id, "extract_timeout", sentence)
                else:
                    reason = reason_of(stopped_by or ModelUnavailable("the model did not answer"))
                    await repository.fail_pending_chunks(claim.version_id, *reason)
                return await repository.extraction(claim.version_id)
        if extraction.pending:
            raise ModelUnavailable(failure_sentence(extraction))
        return extraction


class _Progress:
    """Writes down how the chunks came out, so that polling shows the count; not each by itself when they come fast.

    What a crash takes was answered all the same: the next attempt finds the answers in the engine's cache.
    """

    def __init__(self, ports: Ports, claim: Claim, before: Extraction) -> None:
        self._ports = ports
        self._claim = claim
        self._total = before.total
        self._extracted = before.extracted
        self._outcomes: list[ChunkOutcome] = []
        self._written_at = monotonic()
        self._lock = asyncio.Lock()

    async def note(self, outcome: ChunkOutcome) -> None:
        # One at a time, so that the count shown never goes back.
        async with self._lock:
            self._extracted += outcome.error_code is None
            self._outcomes.append(outcome)
            if monotonic() - self._written_at >= NOTE_SECONDS:
                async with self._ports.database.tenant(self._claim.tenant_id) as session:
                    await self.write(session)
                    await IndexStates(session).progress(self._claim, chunks=(self._extracted, self._total))

    @property
    def is_whole(self) -> bool:
        """Whether every chunk is extracted."""
        return self._extracted == self._total

    def whole(self) -> Extraction:
        """For the transaction that follows in any case, be it the one that takes the lease."""
        return Extraction(self._total, frozenset(), (), unwritten=tuple(self._outcomes))

    async def write(self, session: TenantSession) -> None:
        """Write the outcomes that are not written yet."""
        outcomes, self._outcomes = self._outcomes, []
        self._written_at = monotonic()
        await IngestionRepository(session).note_outcomes(self._claim.version_id, outcomes)


async def within(seconds: float, work: Awaitable[None]) -> bool:
    """Run `work` under a time limit; False if the limit struck. A TimeoutError of its own is raised as such."""
    scope = asyncio.timeout(seconds)
    try:
        async with scope:
            await work
    except TimeoutError:
        if not scope.expired():
            raise
        return False
    return True
