"""Who a request comes from, and a key as the database hands it out."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from app.db.base import TenantId, WorkspaceId


class Role(StrEnum):
    """What a key may do: read and query, change documents, change workspaces and the graph."""

    READER = "reader"
    EDITOR = "editor"
    ADMIN = "admin"

    def covers(self, needed: "Role") -> bool:
        order = list(Role)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True)
class Caller:
    """Who a verified key or token is: its tenant, what it may do, and the one workspace it is bound to, if it is.

    One of `key_id` and `subject` (the user, as the token's issuer names it) is there.
    """

    key_id: UUID | None
    tenant_id: TenantId
    role: Role
    workspace_id: WorkspaceId | None
    subject: str | None = None
    requests_per_minute: int | None = None

    @property
    def name(self) -> str:
        """As the audit log names the caller: a key by its id, a user as the issuer does."""
        return f"key:{self.key_id}" if self.key_id is not None else f"user:{self.subject}"

    def may_see(self, workspace_id: UUID) -> bool:
        return self.workspace_id is None or self.workspace_id == workspace_id


@dataclass(frozen=True)
class StoredKey:
    """What `find_api_key` answers; `read_at` is the database's clock, which expiry is measured by."""

    id: UUID
    tenant_id: UUID
    tenant_status: str
    workspace_id: UUID | None
    role: str
    secret_hash: bytes
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    requests_per_minute: int | None
    read_at: datetime


@dataclass(frozen=True)
class KeyDraft:
    """What a new key should be."""

    name: str
    role: Role
    workspace_id: UUID | None = None
    expires_at: datetime | None = None
