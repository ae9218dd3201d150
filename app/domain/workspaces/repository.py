"""Queries for workspaces and for the model profiles they name."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, bindparam, func, select, tuple_, update
from sqlalchemy.orm import aliased

from app.db.models import CorpusVersion, ModelProfile, Workspace, WorkspaceLease
from app.db.repository import TenantRepository
from app.domain.workspaces.errors import UnknownModel, WorkspaceNotFound

ChatProfile = aliased(ModelProfile)
EmbeddingProfile = aliased(ModelProfile)
RerankProfile = aliased(ModelProfile)


@dataclass(frozen=True)
class WorkspaceRecord:
    """A workspace with the names of its models; None where it has none of a kind."""

    row: Workspace
    embedding_model: str
    chat_model: str | None
    corpus_version: int = 0
    rerank_model: str | None = None


_RECORDS: "Select[Workspace, str, str, int, str]" = (
    select(Workspace, EmbeddingProfile.name, ChatProfile.name, CorpusVersion.version, RerankProfile.name)
    .join(
        CorpusVersion,
        (CorpusVersion.tenant_id == Workspace.tenant_id) & (CorpusVersion.workspace_id == Workspace.id),
    )
    .join(EmbeddingProfile, EmbeddingProfile.id == Workspace.embedding_profile_id)
    .outerjoin(ChatProfile, ChatProfile.id == Workspace.chat_profile_id)
    .outerjoin(RerankProfile, RerankProfile.id == Workspace.rerank_profile_id)
    .where(Workspace.tenant_id == bindparam("tenant_id"))
)
# Asked by every request and every job, and so made once.
_RECORD = _RECORDS.where(Workspace.id == bindparam("workspace_id"))
_LOCKED_RECORD = _RECORD.with_for_update(of=Workspace, key_share=True)


class WorkspaceRepository(TenantRepository):
    async def get(self, workspace_id: UUID, *, for_update: bool = False) -> WorkspaceRecord:
        """Raises WorkspaceNotFound. `for_update` makes concurrent changes of one workspace wait for each other."""
        values = {"tenant_id": self.session.tenant_id, "workspace_id": workspace_id}
        found = (await self.session.execute(_LOCKED_RECORD if for_update else _RECORD, values)).one_or_none()
        if found is None:
            raise WorkspaceNotFound.of(workspace_id)
        return WorkspaceRecord(*found)

    async def list(
        self, *, only: UUID | None, after: tuple[datetime, UUID] | None, limit: int
    ) -> "list[WorkspaceRecord]":
        """In order of creation, from the first after `after`; `only` is the workspace that the caller's key is bound to."""
        query = _RECORDS.order_by(Workspace.created_at, Workspace.id).limit(limit)
        values = {"tenant_id": self.session.tenant_id}
        if only is not None:
            query = query.where(Workspace.id == only)
        if after is not None:
            query = query.where(tuple_(Workspace.created_at, Workspace.id) > tuple_(*after))
        return [WorkspaceRecord(*row) for row in await self.session.execute(query, values)]

    async def name_is_taken(self, name: str) -> bool:
        return await self.session.scalar(self.rows(Workspace, Workspace.name == name)) is not None

    async def add(self, workspace: Workspace) -> None:
        """Store a workspace with the two small rows beside it that writers need."""
        self.session.add(workspace)
        await self.session.flush()
        self.session.add(CorpusVersion(tenant_id=workspace.tenant_id, workspace_id=workspace.id))
        self.session.add(WorkspaceLease(tenant_id=workspace.tenant_id, workspace_id=workspace.id))
        await self.session.flush()

    async def graph_store(self, workspace_id: UUID) -> str | None:
        """Where the workspace's graph is; None if there is no such workspace."""
        found: str | None = await self.session.scalar(
            select(Workspace.graph_store).where(
                Workspace.tenant_id == self.session.tenant_id, Workspace.id == workspace_id
            )
        )
        return found

    async def move_graph(self, workspace_id: UUID, to: str) -> None:
        """From now on the workspace's graph is in the store `to`."""
        await self.session.execute(
            update(Workspace)
            .where(Workspace.tenant_id == self.session.tenant_id, Workspace.id == workspace_id)
            .values(graph_store=to, updated_at=func.now())
        )

    async def model_id(self, name: str, role: str) -> UUID:
        """Raises UnknownModel, naming those there are."""
        profiles = await self.session.scalars(select(ModelProfile).where(ModelProfile.role == role))
        known = {profile.name: profile.id for profile in profiles}
        if name not in known:
            raise UnknownModel(f"There is no {role} model {name!r}.", model=name, role=role, known=sorted(known))
        return known[name]
