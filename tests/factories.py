"""Makes rows that tests stand on, through the schema and not through the code under test."""

import secrets
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import SecretStr
from sqlalchemy import select

from app.db.base import TenantId, WorkspaceId
from app.db.models import CorpusVersion, ModelProfile, Tenant, Workspace, WorkspaceLease
from app.db.session import Database
from app.domain.models.service import ModelProfiles, NewProfile
from app.settings import Settings
from tests.fakes.stub_process import StubServer

OFFLINE_EMBEDDING = "offline-use"
OFFLINE_CHAT = "offline-extractor"


@dataclass
class Tenancy:
    """One tenant and what a test adds to it."""

    database: Database
    owner_database: Database
    tenant_id: TenantId
    workspaces: list[WorkspaceId] = field(default_factory=list)

    @classmethod
    async def create(cls, owner_database: Database, database: Database) -> "Tenancy":
        tenant = Tenant(name=f"tenant {secrets.token_hex(6)}")
        async with owner_database.system() as session:
            session.add(tenant)
            await session.flush()
            tenant_id = tenant.id
        return cls(database, owner_database, TenantId(tenant_id))

    async def add_workspace(
        self,
        *,
        engines: tuple[str, ...] = ("lazy",),
        settings: dict[str, Any] | None = None,
        embedding: str = OFFLINE_EMBEDDING,
        chat: str = OFFLINE_CHAT,
        graph_store: str = "table",
    ) -> WorkspaceId:
        """A workspace with the two small rows beside it."""
        async with self.database.tenant(self.tenant_id) as session:
            profiles = {row.name: row.id for row in await session.scalars(select(ModelProfile))}
            workspace = Workspace(
                tenant_id=self.tenant_id,
                name=f"workspace {secrets.token_hex(6)}",
                engines=list(engines),
                default_mode="mix" if "graph" in engines else "lazy",
                graph_store=graph_store,
                settings=settings or {},
                index_profile_hash="test",
                embedding_profile_id=profiles[embedding],
                chat_profile_id=profiles[chat] if "graph" in engines else None,
            )
            session.add(workspace)
            await session.flush()
            workspace_id: UUID = workspace.id
            session.add(CorpusVersion(tenant_id=self.tenant_id, workspace_id=workspace_id))
            session.add(WorkspaceLease(tenant_id=self.tenant_id, workspace_id=workspace_id))
        self.workspaces.append(WorkspaceId(workspace_id))
        return WorkspaceId(workspace_id)


async def register_stub(stub: StubServer, owner_database: Database, settings: Settings, **options: Any) -> str:
    """A new model, for chat unless told otherwise, that the stub serves, which gives up at the first failure; its name."""
    name = f"stub-{secrets.token_hex(4)}"
    profile = NewProfile(
        name=name,
        provider="openai",
        model="stub",
        base_url=stub.base_url,
        api_key=SecretStr("test"),
        **{"role": "chat", "max_retries": 0, "timeout_seconds": 20, **options},
    )
    await ModelProfiles(owner_database, settings.secret_key).register(profile)
    return name
