"""Opens a workspace for the engines: its row becomes a place, an index profile and the clients of its models."""

import time
from uuid import UUID

from app.db.base import TenantId, WorkspaceId
from app.db.models import Workspace
from app.db.session import Database
from app.db.vector_tables import require_dimension
from app.domain.models.service import ModelProfiles
from app.domain.workspaces.repository import WorkspaceRecord, WorkspaceRepository
from app.domain.workspaces.service import profile_of
from app.providers.contract import ModelProfile, RerankModel
from app.providers.factory import ModelFactory
from app.retrieval.contract import EngineWorkspace, GraphStoreName, WorkspaceRef

# Every job and every query asks for the same few rows. An operator's change is seen after so long.
REMEMBERED_SECONDS = 10.0


class WorkspaceOpener:
    """One a process: the clients of models are kept open by the factory, their profiles are remembered for a while."""

    def __init__(self, database: Database, profiles: ModelProfiles, factory: ModelFactory) -> None:
        self._database = database
        self._profiles = profiles
        self._factory = factory
        self._remembered: dict[UUID, tuple[float, ModelProfile]] = {}

    async def open(self, tenant_id: UUID, workspace_id: UUID) -> EngineWorkspace:
        """As the row says now; no transaction is left open. Raises WorkspaceNotFound or DimensionMismatch."""
        async with self._database.tenant(tenant_id) as session:
            record = await WorkspaceRepository(session).get(workspace_id)
        return await self.engine_workspace(record)

    async def engine_workspace(self, record: WorkspaceRecord) -> EngineWorkspace:
        """What the engines need of a workspace that was read already."""
        row = record.row
        embedding = await self._profile(row.embedding_profile_id)
        chat = await self._profile(row.chat_profile_id) if row.chat_profile_id else None
        return EngineWorkspace(
            ref=workspace_ref(row),
            profile=profile_of(record),
            embedding=self._factory.embedding(embedding),
            vector_suffix=embedding.table_suffix or "",
            chat=self._factory.chat(chat) if chat else None,
            corpus_version=record.corpus_version,
        )

    async def reranker(self, record: WorkspaceRecord) -> RerankModel | None:
        """None where the workspace names none."""
        profile_id = record.row.rerank_profile_id
        return self._factory.rerank(await self._profile(profile_id)) if profile_id is not None else None

    async def _profile(self, profile_id: UUID) -> ModelProfile:
        read_at, profile = self._remembered.get(profile_id, (0.0, None))
        if profile is None or time.monotonic() - read_at > REMEMBERED_SECONDS:
            profile = await self._profiles.get(profile_id)
            await self._check(profile)
            self._remembered[profile_id] = time.monotonic(), profile
        return profile

    async def _check(self, profile: ModelProfile) -> None:
        """Raises DimensionMismatch: a model that changed must not be compared with what another one has written."""
        if profile.table_suffix:
            async with self._database.system() as session:
                await require_dimension(session, profile.table_suffix, self._factory.embedding(profile).dimension)


def workspace_ref(row: Workspace) -> WorkspaceRef:
    store: GraphStoreName = "age" if row.graph_store == "age" else "table"
    return WorkspaceRef(TenantId(row.tenant_id), WorkspaceId(row.id), row.number, store)
