"""Changes of entities that are written into their history: done at once, or by a worker where they take long."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar
from uuid import UUID, uuid4

from app.db.base import TenantId, WorkspaceId
from app.db.models import EntityChange
from app.db.session import Database, TenantSession
from app.domain.entities.repository import ChangeRepository
from app.domain.entities.service import EntityService
from app.domain.idempotency.errors import IdempotencyKeyReused
from app.domain.ingestion.leases import Step, WorkspaceLeases
from app.domain.ingestion.repository import bump
from app.domain.usage.repository import UsageLedger
from app.errors import AppError, Conflict, Unavailable
from app.jobs import ChangeEntities, enqueue
from app.providers.usage import meter_usage
from app.retrieval.contract import EngineWorkspace, Lease
from app.retrieval.entity_contract import (
    ChangeNotFound,
    ChangeRecord,
    Entities,
    EntityDetail,
    EntityNotFound,
    MergePreview,
    MergeRequest,
    RemovedWithDocuments,
    UndoBlocked,
)
from app.retrieval.entity_edit_contract import EntityEditor

Result = TypeVar("Result")

# A request should not hang: a merge takes seconds where an insert may take minutes.
LEASE_WAIT_SECONDS = 10
# A queued change holds a worker's slot while it waits, and looks again later, as purges do.
WORKER_LEASE_WAIT_SECONDS = 1.0
# Those that got the workspace: waiting for it may take long and is no fault of the change.
MAX_ATTEMPTS = 5


# What a preview reads and tells.
MAX_PREVIEW_RELATIONS = 5_000
Parts = Mapping[str, Sequence[tuple[UUID, int]]]


class PreviewTooLarge(Conflict):
    """Of a merge: more relations than an answer can show."""

    code = "preview_too_large"
    title = "The preview would be too large"


class TooManyAttempts(Conflict):
    """Of a queued change: workers died at it, or something was away each time."""

    code = "too_many_attempts"
    title = "Every attempt ended without a result"


@dataclass(frozen=True)
class Waiting:
    """How to wait for the workspace: as `WorkspaceLeases.hold`."""

    wait_seconds: float = LEASE_WAIT_SECONDS
    longest_line: int | None = None
    opening: Step | None = None


AT_ONCE = Waiting()


@dataclass(frozen=True)
class Requested:
    """Who asks for a change; `key` is a digest of the request's Idempotency-Key."""

    actor: str
    key: bytes | None = None


@dataclass(frozen=True)
class Merged:
    """A merge that is done."""

    change_id: UUID
    entity: EntityDetail


@dataclass(frozen=True)
class Split:
    """A split that is done: the entities that the parts became."""

    change_id: UUID
    entities: tuple[EntityDetail, ...]


class EntityChanges:
    """`inline_relations`: with more a change is queued for a worker."""

    def __init__(
        self,
        database: Database,
        browsing: EntityService,
        entities: Entities,
        editor: EntityEditor,
        leases: WorkspaceLeases,
        *,
        inline_relations: int,
    ) -> None:
        self._database = database
        self._browsing = browsing
        self._entities = entities
        self._editor = editor
        self._leases = leases
        self._inline_relations = inline_relations

    async def preview(self, tenant_id: TenantId, workspace_id: WorkspaceId, request: MergeRequest) -> MergePreview:
        """Raises WorkspaceNotFound, EngineOff, EntityNotFound, InvalidMerge or PreviewTooLarge."""
        workspace = await self._browsing.open(tenant_id, workspace_id)
        relations = await self._entities.count_relations(workspace, [*request.sources, request.target])
        if relations > MAX_PREVIEW_RELATIONS:
            raise PreviewTooLarge(
                f"A preview shows {MAX_PREVIEW_RELATIONS} relations at most, the entities have {relations}. "
                "The merge itself can be made, and undone.",
                relations=relations,
            )
        return await self._entities.preview_merge(workspace, request)

    async def merge(
        self, tenant_id: TenantId, workspace_id: WorkspaceId, request: MergeRequest, by: Requested
    ) -> Merged | EntityChange:
        """All or nothing of it: what was merged, or the change that a worker will make.

        Raises EntityNotFound or InvalidMerge with nothing changed, and WorkspaceBusy.
        """
        workspace = await self._browsing.open(tenant_id, workspace_id)
        asked = as_json(request)
        before = await self._made_before(workspace, by, "merge", asked)
        if before is not None:
            return await self._answer(workspace, before)
        names = [*request.sources, request.target]
        if await self._entities.count_relations(workspace, names) > self._inline_relations:
            await self._entities.preview_merge(workspace, request)
            return await self._queue(workspace, "merge", names, asked, by)
        record = ChangeRecord(request=asked, actor=by.actor, request_key=by.key)
        return Merged(record.id, await self._merge(workspace, request, record))

    async def undo(
        self, tenant_id: TenantId, workspace_id: WorkspaceId, change_id: UUID, by: Requested
    ) -> EntityChange:
        """The change that undid it, or will. Raises ChangeNotFound, UndoBlocked, RemovedWithDocuments and WorkspaceBusy."""
        workspace = await self._browsing.open(tenant_id, workspace_id)
        asked = {"change_id": str(change_id)}
        before = await self._made_before(workspace, by, "undo", asked)
        if before is not None:
            return before
        change = await self.get(tenant_id, workspace_id, change_id)
        if change.state != "done" or change.kind not in ("merge", "split"):
            raise UndoBlocked("Only a merge or a split that is done can be undone.", state=change.state)
        if change.forgotten_at is not None:
            raise RemovedWithDocuments("A name of the change was removed with the last document that spoke of it.")
        if await self._entities.count_relations(workspace, change.names) > self._inline_relations:
            return await self._queue(workspace, "undo", change.names, asked, by, undoes=change_id)
        record = ChangeRecord(request=asked, actor=by.actor, request_key=by.key)
        await self._undo(workspace, change_id, record)
        return await self.get(tenant_id, workspace_id, record.id)

    async def split(
        self, tenant_id: TenantId, workspace_id: WorkspaceId, name: str, parts: Parts, by: Requested
    ) -> Split | EntityChange:
        """What the parts became, or the change that a worker will make. Raises what `EntityEditor.split` does."""
        workspace = await self._browsing.open(tenant_id, workspace_id)
        asked = {"name": name, "parts": {to: [[str(v), n] for v, n in chunks] for to, chunks in parts.items()}}
        before = await self._made_before(workspace, by, "split", asked)
        if before is not None:
            return before
        if await self._entities.count_relations(workspace, [name]) > self._inline_relations:
            return await self._queue(workspace, "split", [name, *parts], asked, by)
        record = ChangeRecord(request=asked, actor=by.actor, request_key=by.key)
        return Split(record.id, await self._split(workspace, asked, record))

    async def get(self, tenant_id: TenantId, workspace_id: WorkspaceId, change_id: UUID) -> EntityChange:
        """Raises ChangeNotFound."""
        async with self._database.tenant(tenant_id) as session:
            found = await ChangeRepository(session).find(workspace_id, change_id)
        if found is None:
            raise ChangeNotFound(f"There is no change {change_id} in this workspace.")
        return found

    async def list(
        self, tenant_id: TenantId, workspace_id: WorkspaceId, *, name: str | None, before: int | None, limit: int
    ) -> Sequence[EntityChange]:
        """Newest first. Raises WorkspaceNotFound or EngineOff."""
        workspace = await self._browsing.open(tenant_id, workspace_id)
        names = None if name is None else await self._entities.names_of(workspace, name)
        async with self._database.tenant(tenant_id) as session:
            return await ChangeRepository(session).list(workspace_id, names=names, before=before, limit=limit)

    async def run(self, job: ChangeEntities) -> None:
        """Make a queued change. What can never be done is told by its row; what may pass is raised, and given up in the end."""
        tenant_id, workspace_id = TenantId(job.tenant_id), WorkspaceId(job.workspace_id)
        try:
            change = await self.get(tenant_id, workspace_id, job.change_id)
            workspace = await self._browsing.open(tenant_id, workspace_id)
            if change.state == "writing":
                await self.put_back(workspace, change)
                change = await self.get(tenant_id, workspace_id, job.change_id)
            if change.state == "queued" and change.forgotten_at is not None:
                raise RemovedWithDocuments("A name of the change was removed with the last document that spoke of it.")
            if change.state == "queued":
                await self._make(workspace, change)
        except Unavailable:
            raise
        except AppError as error:
            async with self._database.tenant(tenant_id) as session:
                await ChangeRepository(session).fail(job.change_id, error.reason, error.detail)

    async def put_back(self, workspace: EngineWorkspace, change: EntityChange) -> None:
        """Whoever has the lease while a change is `writing` knows that what wrote it is gone. Raises WorkspaceBusy."""
        tenant_id, workspace_id = workspace.ref.tenant_id, workspace.ref.workspace_id

        async def work(lease: Lease) -> None:
            now = await self.get(tenant_id, workspace_id, change.id)
            if now.state == "writing":
                await self._entities.put_back(workspace, now.id, now.names, lease, companions=[bump(workspace.ref)])

        await self.under_lease(workspace, work, Waiting(WORKER_LEASE_WAIT_SECONDS, longest_line=1))

    async def _make(self, workspace: EngineWorkspace, change: EntityChange) -> None:
        record = ChangeRecord(change.id, change.request, change.actor, change.request_key, is_queued=True)

        async def begin(session: TenantSession) -> None:
            if not await ChangeRepository(session).begin(change.id, max_attempts=MAX_ATTEMPTS):
                raise TooManyAttempts("Every attempt ended without a result.")

        waiting = Waiting(WORKER_LEASE_WAIT_SECONDS, longest_line=1, opening=begin)
        if change.kind == "merge":
            await self._merge(workspace, from_json(change.request), record, waiting)
        elif change.kind == "split":
            await self._split(workspace, change.request, record, waiting)
        else:
            await self._undo(workspace, UUID(change.request["change_id"]), record, waiting)

    async def _merge(
        self, workspace: EngineWorkspace, request: MergeRequest, record: ChangeRecord, waiting: Waiting = AT_ONCE
    ) -> EntityDetail:
        async def work(lease: Lease) -> EntityDetail:
            return await self._entities.merge(
                workspace, request, lease, record=record, companions=[bump(workspace.ref)]
            )

        return await self.under_lease(workspace, work, waiting)

    async def _undo(
        self, workspace: EngineWorkspace, change_id: UUID, record: ChangeRecord, waiting: Waiting = AT_ONCE
    ) -> None:
        async def work(lease: Lease) -> object:
            return await self._entities.undo(
                workspace, change_id, lease, record=record, companions=[bump(workspace.ref)]
            )

        await self.under_lease(workspace, work, waiting)

    async def _split(
        self, workspace: EngineWorkspace, asked: Mapping[str, Any], record: ChangeRecord, waiting: Waiting = AT_ONCE
    ) -> tuple[EntityDetail, ...]:
        parts = {to: [(UUID(version), n) for version, n in chunks] for to, chunks in asked["parts"].items()}

        async def work(lease: Lease) -> tuple[EntityDetail, ...]:
            return await self._editor.split(
                workspace, asked["name"], parts, lease, record=record, companions=[bump(workspace.ref)]
            )

        return await self.under_lease(workspace, work, waiting)

    async def under_lease(
        self,
        workspace: EngineWorkspace,
        work: Callable[[Lease], Awaitable[Result]],
        waiting: Waiting = AT_ONCE,
    ) -> Result:
        """Run `work` as the workspace's only writer, and note what models were called for. Raises WorkspaceBusy."""
        with meter_usage() as meter:
            async with self._leases.hold(workspace.ref, **vars(waiting)) as lease:
                result = await work(lease)
        async with self._database.tenant(workspace.ref.tenant_id) as session:
            await UsageLedger(session).add(meter, workspace.ref.workspace_id)
        return result

    async def _made_before(
        self, workspace: EngineWorkspace, by: Requested, kind: str, asked: dict[str, Any]
    ) -> EntityChange | None:
        """The change of the same request that lost its answer. Raises IdempotencyKeyReused for one of another request."""
        if by.key is None:
            return None
        async with self._database.tenant(workspace.ref.tenant_id) as session:
            found = await ChangeRepository(session).find_by_request(workspace.ref.workspace_id, by.key)
        if found is not None and (found.kind, found.request) != (kind, asked):
            raise IdempotencyKeyReused("This Idempotency-Key was used here for another request; make a new key.")
        return found

    async def _answer(self, workspace: EngineWorkspace, change: EntityChange) -> Merged | EntityChange:
        if change.state != "done":
            return change
        try:
            return Merged(change.id, await self._entities.get(workspace, change.names[-1]))
        except EntityNotFound:
            # Deleted since; the merge was made all the same.
            return change

    async def _queue(
        self,
        workspace: EngineWorkspace,
        kind: str,
        names: Sequence[str],
        asked: dict[str, Any],
        by: Requested,
        *,
        undoes: UUID | None = None,
    ) -> EntityChange:
        ref = workspace.ref
        change = EntityChange(
            tenant_id=ref.tenant_id, workspace_id=ref.workspace_id, id=uuid4(), kind=kind, state="queued",
            names=list(names), request=asked, actor=by.actor, request_key=by.key, undoes=undoes,
        )  # fmt: skip
        async with self._database.tenant(ref.tenant_id) as session:
            ChangeRepository(session).add(change)
            enqueue(session, ChangeEntities(ref.tenant_id, ref.workspace_id, change.id))
        return await self.get(ref.tenant_id, ref.workspace_id, change.id)


def as_json(request: MergeRequest) -> dict[str, Any]:
    """As it is kept in the history."""
    return {**asdict(request), "sources": list(request.sources)}


def from_json(request: dict[str, Any]) -> MergeRequest:
    return MergeRequest(**{**request, "sources": tuple(request["sources"])})
