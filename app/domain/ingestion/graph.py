"""From chunks to the knowledge graph: extraction outside any lock, then LightRAG's insert under the workspace's lease."""

import asyncio
from collections.abc import Awaitable, Collection
from dataclasses import replace

from app.db.session import TenantSession
from app.domain.ingestion.attempts import Attempts, StageTimer, clean_up, reason_of
from app.domain.ingestion.leases import confirm
from app.domain.ingestion.live import failure_sentence, going_live
from app.domain.ingestion.ports import Ports
from app.domain.ingestion.purge import retire_superseded
from app.domain.ingestion.records import Extraction, VersionFacts
from app.domain.ingestion.repository import IngestionRepository
from app.domain.ingestion.states import WAITING, Claim, IndexStates
from app.errors import AppError, Conflict, Invalid
from app.jobs import IndexGraph
from app.providers.contract import ModelRejected, ModelUnavailable
from app.retrieval.contract import ChunkOutcome, EngineWorkspace, Lease, VersionChunks, WorkspaceBusy

# So many slots of a process wait for a busy workspace, and so long; a further version is parked once its chunks are
# extracted, so that the slot goes on with other documents, and whoever releases the lease wakes it.
LEASE_LINE = 5
LEASE_WAIT_SECONDS = 10.0
# Where one of these is all that chunks failed with, it says more than that they failed.
PROVIDER_CODES = ({ModelUnavailable.code}, {ModelRejected.code})


class ExtractionFailed(Invalid):
    """No chunk of the version could be extracted; the sentence has the reasons with their counts."""

    code = "extraction_failed"
    title = "Nothing could be extracted"


class MergeTimedOut(Conflict):
    """The insert was stopped; a store that writes in one transaction has kept nothing of it."""

    code = "merge_timeout"
    title = "The merge took too long"


class MergeCutOff(MergeTimedOut):
    """The insert was stopped half-way, and the store cannot promise that it left nothing."""

    code = "timeout_may_have_partial_index"


class GraphIndexer:
    """Does `IndexGraph` jobs. What was extracted is never paid for again: the model's answers stay in the engine's cache."""

    def __init__(self, ports: Ports, attempts: Attempts) -> None:
        self._ports = ports
        self._attempts = attempts

    async def run(self, job: IndexGraph, owner: str) -> None:
        """Raises what stops it; the caller concludes the attempt."""
        async with self._attempts.begin(job, owner) as begun:
            if begun is None:
                return
            claim, facts = begun
            workspace = await self._ports.workspaces.open(facts.ref.tenant_id, facts.ref.workspace_id)
            timer = StageTimer(extract=claim.stage_ms.get("extract", 0.0))
            version, before = await self._load(facts, workspace)
            if before.pending:
                await self._extract(claim, facts, workspace, only(version, before.pending), before, timer)
            usable = await self._usable(claim, facts, version)
            if usable is None:
                return
            try:
                async with self._ports.leases.hold(
                    facts.ref, wait_seconds=LEASE_WAIT_SECONDS, longest_line=LEASE_LINE
                ) as lease:
                    await self._merge(claim, facts, workspace, usable, lease, timer)
            except WorkspaceBusy:
                await self._park(claim, facts)

    async def _load(self, facts: VersionFacts, workspace: EngineWorkspace) -> tuple[VersionChunks, Extraction]:
        async with self._ports.database.tenant(facts.ref.tenant_id) as session:
            repository = IngestionRepository(session)
            if facts.profile_hash != workspace.profile.hash:
                # Answers are cached by prompt, so those that the changed profile does not touch are found again.
                await repository.reopen_chunks(facts.version_id)
            return await repository.load_chunks(facts), await repository.extraction(facts.version_id)

    async def _extract(
        self,
        claim: Claim,
        facts: VersionFacts,
        workspace: EngineWorkspace,
        version: VersionChunks,
        before: Extraction,
        timer: StageTimer,
    ) -> None:
        """Ask for the chunks that have no answer yet. The time limit holds for all attempts together.

        Raises ModelUnavailable while some chunks may still get an answer in a later attempt; what gets none fails.
        """
        limit = facts.seconds("extract_timeout_seconds", self._ports.settings.extract_timeout_seconds)
        progress = _Progress(self._ports, claim, before)
        await progress.begin()
        is_in_time, stopped_by = True, None
        with timer.measure("extract"):
            try:
                left = limit - timer.stage_ms["extract"] / 1000
                is_in_time = await within(left, self._ports.graph_index.extract(workspace, version, progress.note))
            except (ModelUnavailable, ModelRejected) as error:
                stopped_by = error
        await self._give_up_pending(claim, timer, limit if not is_in_time else None, stopped_by)

    async def _give_up_pending(
        self, claim: Claim, timer: StageTimer, limit: float | None, stopped_by: AppError | None
    ) -> None:
        """Fail the chunks without an answer, where no later attempt will ask for them; `limit` is that of a time that is over."""
        async with self._ports.database.tenant(claim.tenant_id) as session:
            repository = IngestionRepository(session)
            extraction = await repository.extraction(claim.version_id)
            await IndexStates(session).progress(
                claim, chunks=(extraction.extracted, extraction.total), stage_ms=timer.stage_ms
            )
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
        if extraction.pending and is_repeated:
            raise ModelUnavailable(failure_sentence(extraction))

    async def _usable(self, claim: Claim, facts: VersionFacts, version: VersionChunks) -> VersionChunks | None:
        """The chunks that can be merged; None if some are missing and the workspace keeps such graphs out.

        Raises ExtractionFailed if there are none.
        """
        async with self._ports.database.tenant(claim.tenant_id) as session:
            extraction = await IngestionRepository(session).extraction(facts.version_id)
            await IndexStates(session).progress(claim, chunks=(extraction.extracted, extraction.total))
            if extraction.extracted and extraction.failed and facts.keeps_partial_out:
                await self._keep_out(session, claim, extraction)
                return None
        if not extraction.extracted:
            codes = {outcome.error_code for outcome in extraction.failed}
            code = codes.copy().pop() if codes in PROVIDER_CODES else None
            raise ExtractionFailed(failure_sentence(extraction), code=code)
        return only(version, {chunk.ordinal for chunk in version.chunks} - {each.ordinal for each in extraction.failed})

    async def _keep_out(self, session: TenantSession, claim: Claim, extraction: Extraction) -> None:
        """Conclude without a merge; what an earlier attempt indexed under another setting is removed."""
        is_live = await IngestionRepository(session).is_live(claim.version_id, "graph")
        sentence = f"{failure_sentence(extraction)}; this workspace keeps partial graphs out"
        ended = await IndexStates(session).keep_out(claim, "partial_kept_out", sentence, may_be_in_graph=is_live)
        await clean_up(session, claim.workspace_id, claim.version_id, ended)

    async def _merge(
        self,
        claim: Claim,
        facts: VersionFacts,
        workspace: EngineWorkspace,
        version: VersionChunks,
        lease: Lease,
        timer: StageTimer,
    ) -> None:
        """Insert what was extracted (the engine first removes what an earlier attempt may have left) and make it live."""
        limit = facts.seconds("merge_timeout_seconds", self._ports.settings.merge_timeout_seconds)
        async with self._ports.database.tenant(claim.tenant_id) as session:
            repository = IngestionRepository(session)
            await confirm(session, lease)
            extraction = await repository.extraction(facts.version_id)
            displaced = await repository.find_displaced(facts, "graph", is_partial=bool(extraction.failed))
            await IndexStates(session).begin_merge(claim)
        merge = self._ports.graph_index.insert(
            workspace,
            version,
            lease,
            replaces=[displaced] if displaced is not None else [],
            companions=going_live(claim, facts, extraction, timer.stage_ms),
        )
        if not await within(limit, merge):
            raise self._timed_out(limit)
        async with self._ports.database.tenant(claim.tenant_id) as session:
            await retire_superseded(session, facts)

    def _timed_out(self, limit: float) -> MergeTimedOut:
        sentence = f"Merging into the graph took longer than {limit:g} seconds"
        if self._ports.graph_index.is_atomic:
            return MergeTimedOut(f"{sentence}; nothing of it was written, and a retry pays for no extraction again.")
        return MergeCutOff(f"{sentence}; what it may have left is being removed. Retry after that.")

    async def _park(self, claim: Claim, facts: VersionFacts) -> None:
        """Give the slot back until the workspace is free; the lease may have become free while we gave up."""
        async with self._ports.database.tenant(claim.tenant_id) as session:
            await IndexStates(session).hand_back(claim, stage=WAITING)
        await self._ports.leases.wake_next(facts.ref)


class _Progress:
    """Writes down each chunk as its outcome is known, so that a crash loses nothing and polling shows the count."""

    def __init__(self, ports: Ports, claim: Claim, before: Extraction) -> None:
        self._ports = ports
        self._claim = claim
        self._total = before.total
        self._extracted = before.extracted
        self._lock = asyncio.Lock()

    async def begin(self) -> None:
        async with self._ports.database.tenant(self._claim.tenant_id) as session:
            await IndexStates(session).progress(self._claim, stage="extracting", chunks=(self._extracted, self._total))

    async def note(self, outcome: ChunkOutcome) -> None:
        # One at a time, so that the count shown never goes back.
        async with self._lock:
            self._extracted += outcome.error_code is None
            async with self._ports.database.tenant(self._claim.tenant_id) as session:
                await IngestionRepository(session).note_outcome(self._claim.version_id, outcome)
                await IndexStates(session).progress(self._claim, chunks=(self._extracted, self._total))


def only(version: VersionChunks, ordinals: Collection[int]) -> VersionChunks:
    """The same version with these chunks."""
    return replace(version, chunks=tuple(chunk for chunk in version.chunks if chunk.ordinal in ordinals))


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
