"""From chunks to the knowledge graph: extraction outside any lock, then LightRAG's insert under the workspace's lease."""

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

from app.db.session import TenantSession
from app.domain.ingestion.attempts import Attempts, Begun, StageTimer, book_usage, clean_up
from app.domain.ingestion.booking_repository import Bookings
from app.domain.ingestion.extracting import ChunkExtraction, within
from app.domain.ingestion.live import failure_sentence, going_live
from app.domain.ingestion.ports import Ports
from app.domain.ingestion.purge import retire_superseded
from app.domain.ingestion.records import Extraction, VersionFacts
from app.domain.ingestion.repository import IngestionRepository
from app.domain.ingestion.states import WAITING, Claim, IndexStates
from app.domain.workspaces.service import profile_of
from app.errors import Conflict, Invalid
from app.jobs import IndexGraph, MergeDuplicates, enqueue
from app.providers.contract import ModelRejected, ModelUnavailable
from app.retrieval.contract import EngineWorkspace, Extracted, VersionChunks, WorkspaceBusy, WorkspaceRef

# All slots of a process but one may wait for a busy workspace, or write it, and so long; a further version is parked once
# its chunks are extracted, so that its slot goes on with other documents, and whoever releases the lease wakes it.
SLOTS_BESIDE_LINE = 2
LEASE_WAIT_SECONDS = 10.0
# How many chunks' readings are kept of versions that wait, some 10 kB each.
PARKED_CHUNKS = 1000
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


class Parked:
    """What was read in the answers about versions that wait for their workspace, so that it is not read again; the oldest goes
    first. Whoever finds nothing here, in another process or after a crash, reads the engine's cache."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[UUID, str], Extracted] = OrderedDict()

    def keep(self, version_id: UUID, profile_hash: str, extracted: Extracted) -> None:
        self._kept[version_id, profile_hash] = extracted
        while len(self._kept) > 1 and sum(map(len, self._kept.values())) > PARKED_CHUNKS:
            self._kept.popitem(last=False)

    def take(self, version_id: UUID, profile_hash: str) -> Extracted:
        """By ordinal; empty if there is nothing."""
        return self._kept.pop((version_id, profile_hash), {})


class GraphIndexer:
    """Does `IndexGraph` jobs. What was extracted is never paid for again: the model's answers stay in the engine's cache."""

    def __init__(self, ports: Ports, attempts: Attempts) -> None:
        self._ports = ports
        self._attempts = attempts
        self._extraction = ChunkExtraction(ports)
        self._parked = Parked()

    async def run(self, job: IndexGraph, owner: str) -> None:
        """Raises what stops it; the caller concludes the attempt."""
        loaded: list[tuple[VersionChunks, Extraction]] = []

        async def load(session: TenantSession, begun: Begun) -> None:
            loaded.append(await _load(session, begun))

        async with self._attempts.begin(job, owner, stage="extracting", opening=load) as begun:
            if begun is None:
                return
            claim, facts = begun.claim, begun.facts
            workspace = await self._ports.workspaces.engine_workspace(begun.workspace)
            timer = StageTimer(extract=claim.stage_ms.get("extract", 0.0))
            ((version, before),) = loaded
            extracted = self._parked.take(facts.version_id, workspace.profile.hash)
            extraction: Extraction | None = before
            if before.pending:
                missing = only(version, before.pending)
                extraction = await self._extraction.run(claim, facts, workspace, missing, before, timer, into=extracted)
            if extraction is None or not await self._is_usable(claim, facts, extraction):
                return
            failed = {outcome.ordinal for outcome in extraction.failed}
            usable = only(version, {chunk.ordinal for chunk in version.chunks} - failed)
            try:
                await self._merge(begun, workspace, usable, extraction, extracted, timer)
            except WorkspaceBusy:
                self._parked.keep(facts.version_id, workspace.profile.hash, extracted)
                await self._park(claim, facts, extraction, timer)

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
        begun: Begun,
        workspace: EngineWorkspace,
        version: VersionChunks,
        extraction: Extraction,
        extracted: Extracted,
        timer: StageTimer,
    ) -> None:
        """Insert what was extracted (the engine first removes what an earlier attempt may have left) and make it live.

        Raises WorkspaceBusy.
        """
        claim, facts = begun.claim, begun.facts
        limit = facts.seconds("merge_timeout_seconds", self._ports.settings.merge_timeout_seconds)
        has_others = False
        replaces: list[UUID] = []

        async def begin_merge(session: TenantSession) -> None:
            nonlocal has_others
            repository = IngestionRepository(session)
            has_others = await repository.has_other_versions(facts)
            if has_others:
                displaced = await repository.find_displaced(facts, "graph", is_partial=bool(extraction.failed))
                replaces[:] = [displaced] if displaced is not None else []
            await repository.note_outcomes(facts.version_id, extraction.unwritten)
            await IndexStates(session).begin_merge(claim, chunks=extraction.counts, stage_ms=timer.stage_ms)
            # Extraction is most of it: a crash from here on loses nothing of that.
            await book_usage(session, begun)

        line = max(1, self._ports.settings.worker_concurrency - SLOTS_BESIDE_LINE)
        booked: list[UUID] = []

        def used() -> Bookings:
            bookings = begun.to_be_booked()
            booked[:] = [booking_id for booking_id, _ in bookings]
            return bookings

        async with self._ports.leases.hold(
            facts.ref, wait_seconds=LEASE_WAIT_SECONDS, longest_line=line, opening=begin_merge
        ) as lease:
            merge = self._ports.graph_index.insert(
                workspace,
                version,
                lease,
                extracted=extracted,
                replaces=replaces,
                companions=going_live(claim, facts, extraction, timer.stage_ms, used),
            )
            with StageTimer().measure("merge"):  # the row gets its time by the database's clock
                if not await within(limit, merge):
                    raise self._timed_out(workspace.ref, limit)
            begun.confirm(booked)
        if begun.workspace.row.settings.get("merge_duplicates_above") is not None:
            async with self._ports.database.tenant(claim.tenant_id) as session:
                enqueue(session, MergeDuplicates(claim.tenant_id, claim.workspace_id))
        # A version that is uploaded from now on looks for superseded ones when it is merged itself.
        if has_others:
            async with self._ports.database.tenant(claim.tenant_id) as session:
                await retire_superseded(session, facts)

    def _timed_out(self, ref: WorkspaceRef, limit: float) -> MergeTimedOut:
        sentence = f"Merging into the graph took longer than {limit:g} seconds"
        if self._ports.graph_index.is_atomic(ref):
            return MergeTimedOut(f"{sentence}; nothing of it was written, and a retry pays for no extraction again.")
        return MergeCutOff(f"{sentence}; what it may have left is being removed. Retry after that.")

    async def _park(self, claim: Claim, facts: VersionFacts, extraction: Extraction, timer: StageTimer) -> None:
        """Give the slot back until the workspace is free; the lease may have become free while we gave up."""
        async with self._ports.database.tenant(claim.tenant_id) as session:
            await IngestionRepository(session).note_outcomes(facts.version_id, extraction.unwritten)
            states = IndexStates(session)
            await states.progress(claim, chunks=extraction.counts, stage_ms=timer.stage_ms)
            await states.hand_back(claim, stage=WAITING)
        await self._ports.leases.wake_next(facts.ref)


async def _load(session: TenantSession, begun: Begun) -> tuple[VersionChunks, Extraction]:
    """The version's chunks, and how far their extraction is."""
    facts, repository = begun.facts, IngestionRepository(session)
    is_changed = facts.profile_hash != profile_of(begun.workspace).hash
    if is_changed:
        # Answers are cached by prompt, so those that the changed profile does not touch are found again.
        await repository.reopen_chunks(facts.version_id)
    version, extraction = await repository.load_chunks(facts)
    if is_changed:
        await IndexStates(session).progress(begun.claim, chunks=extraction.counts)
    return version, extraction


def only(version: VersionChunks, ordinals: Collection[int]) -> VersionChunks:
    """The same version with these chunks."""
    return replace(version, chunks=tuple(chunk for chunk in version.chunks if chunk.ordinal in ordinals))
