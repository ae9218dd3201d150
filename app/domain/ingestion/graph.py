"""From chunks to the knowledge graph: extraction outside any lock, then LightRAG's insert under the workspace's lease."""

from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

from app.db.session import TenantSession
from app.domain.ingestion.attempts import Attempts, StageTimer, clean_up
from app.domain.ingestion.extracting import ChunkExtraction, within
from app.domain.ingestion.live import failure_sentence, going_live
from app.domain.ingestion.ports import Ports
from app.domain.ingestion.purge import retire_superseded
from app.domain.ingestion.records import Extraction, VersionFacts
from app.domain.ingestion.repository import IngestionRepository
from app.domain.ingestion.states import WAITING, Claim, IndexStates
from app.errors import Conflict, Invalid
from app.jobs import IndexGraph
from app.providers.contract import ModelRejected, ModelUnavailable
from app.retrieval.contract import EngineWorkspace, Extracted, VersionChunks, WorkspaceBusy

# All slots of a process but one may wait for a busy workspace, or write it, and so long; a further version is parked once
# its chunks are extracted, so that its slot goes on with other documents, and whoever releases the lease wakes it.
SLOTS_BESIDE_LINE = 2
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
        self._extraction = ChunkExtraction(ports)

    async def run(self, job: IndexGraph, owner: str) -> None:
        """Raises what stops it; the caller concludes the attempt."""
        async with self._attempts.begin(job, owner, stage="extracting") as begun:
            if begun is None:
                return
            claim, facts = begun.claim, begun.facts
            workspace = await self._ports.workspaces.engine_workspace(begun.workspace)
            timer = StageTimer(extract=claim.stage_ms.get("extract", 0.0))
            version, before = await self._load(claim, facts, workspace)
            extracted: Extracted = {}
            extraction: Extraction | None = before
            if before.pending:
                missing = only(version, before.pending)
                extraction = await self._extraction.run(claim, facts, workspace, missing, before, timer, into=extracted)
            if extraction is None or not await self._is_usable(claim, facts, extraction):
                return
            failed = {outcome.ordinal for outcome in extraction.failed}
            usable = only(version, {chunk.ordinal for chunk in version.chunks} - failed)
            try:
                await self._merge(claim, facts, workspace, usable, extraction, extracted, timer)
            except WorkspaceBusy:
                await self._park(claim, facts)

    async def _load(
        self, claim: Claim, facts: VersionFacts, workspace: EngineWorkspace
    ) -> tuple[VersionChunks, Extraction]:
        async with self._ports.database.tenant(facts.ref.tenant_id) as session:
            repository = IngestionRepository(session)
            if facts.profile_hash != workspace.profile.hash:
                # Answers are cached by prompt, so those that the changed profile does not touch are found again.
                await repository.reopen_chunks(facts.version_id)
            extraction = await repository.extraction(facts.version_id)
            await IndexStates(session).progress(claim, chunks=(extraction.extracted, extraction.total))
            return await repository.load_chunks(facts), extraction

    async def _is_usable(self, claim: Claim, facts: VersionFacts, extraction: Extraction) -> bool:
        """Whether the chunks are to be merged; False if some are missing and the workspace keeps such graphs out.

        Raises ExtractionFailed if there are none.
        """
        if not extraction.extracted:
            codes = {outcome.error_code for outcome in extraction.failed}
            code = codes.copy().pop() if codes in PROVIDER_CODES else None
            raise ExtractionFailed(failure_sentence(extraction), code=code)
        if extraction.failed and facts.keeps_partial_out:
            async with self._ports.database.tenant(claim.tenant_id) as session:
                await self._keep_out(session, claim, extraction)
            return False
        return True

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
        extraction: Extraction,
        extracted: Extracted,
        timer: StageTimer,
    ) -> None:
        """Insert what was extracted (the engine first removes what an earlier attempt may have left) and make it live.

        Raises WorkspaceBusy.
        """
        limit = facts.seconds("merge_timeout_seconds", self._ports.settings.merge_timeout_seconds)
        has_others = False
        replaces: list[UUID] = []

        async def begin_merge(session: TenantSession) -> None:
            nonlocal has_others
            repository = IngestionRepository(session)
            has_others = await repository.has_other_versions(facts)
            if has_others:
                displaced = await repository.find_displaced(facts, "graph", is_partial=bool(extraction.failed))
                replaces.extend([displaced] if displaced is not None else [])
            await IndexStates(session).begin_merge(claim)

        line = max(1, self._ports.settings.worker_concurrency - SLOTS_BESIDE_LINE)
        async with self._ports.leases.hold(
            facts.ref, wait_seconds=LEASE_WAIT_SECONDS, longest_line=line, opening=begin_merge
        ) as lease:
            merge = self._ports.graph_index.insert(
                workspace,
                version,
                lease,
                extracted=extracted,
                replaces=replaces,
                companions=going_live(claim, facts, extraction, timer.stage_ms),
            )
            if not await within(limit, merge):
                raise self._timed_out(limit)
        # A version that is uploaded from now on looks for superseded ones when it is merged itself.
        if has_others:
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


def only(version: VersionChunks, ordinals: Collection[int]) -> VersionChunks:
    """The same version with these chunks."""
    return replace(version, chunks=tuple(chunk for chunk in version.chunks if chunk.ordinal in ordinals))
