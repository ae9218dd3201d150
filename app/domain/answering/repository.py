"""Queries for the workspaces that a caller can name."""

from uuid import UUID

from sqlalchemy import select

from app.db.base import WorkspaceId
from app.db.models import ModelProfile, Workspace
from app.db.repository import TenantRepository
from app.domain.answering.names import NamedWorkspace, split_name


class NamedWorkspaces(TenantRepository):
    async def all(self, *, only: UUID | None, called: str | None = None) -> list[NamedWorkspace]:
        """Those that take work, in order of creation, or of these the few that the name of a model `called` so may mean;
        `only` is the workspace that the caller's key is bound to."""
        query = (
            select(Workspace.id, Workspace.name, Workspace.engines, Workspace.created_at, ModelProfile.name)
            .outerjoin(ModelProfile, ModelProfile.id == Workspace.chat_profile_id)
            .where(Workspace.tenant_id == self.session.tenant_id, Workspace.status == "active")
            .order_by(Workspace.created_at, Workspace.id)
        )
        if only is not None:
            query = query.where(Workspace.id == only)
        if called is not None:
            label, workspace_id, _ = split_name(called)
            query = query.where(Workspace.id == workspace_id if workspace_id else Workspace.slug.in_((label, "")))
        return [
            NamedWorkspace(WorkspaceId(row[0]), row[1], tuple(row[2]), row[3], row[4])
            for row in await self.session.execute(query)
        ]
