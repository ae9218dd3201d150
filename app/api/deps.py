"""What routes ask for: the container, the verified caller with enough of a role, and one unit of work a request."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

import structlog
from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.api.caller_address import caller_address
from app.api.problems import request_id_of, validation_problem
from app.bootstrap import Container
from app.db.acting import Acting, note_caller
from app.db.base import WorkspaceId
from app.db.session import TenantSession
from app.domain.tenants.oidc import looks_like_token
from app.domain.tenants.operators import verify_operator
from app.domain.tenants.records import Caller, Role
from app.domain.tenants.service import Authenticator
from app.domain.workspaces.errors import WorkspaceNotFound
from app.errors import Forbidden

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="ApiKey",
    bearerFormat="trl_<prefix>_<secret>",
    description="An API key of a tenant, or a token of the installation's issuer.",
)


operator_bearer = HTTPBearer(
    auto_error=False, scheme_name="OperatorSecret", description="TRELLIS_OPERATOR_SECRET of the installation."
)


class RoleRequired(Forbidden):
    """The key's role does not cover this."""

    code = "role_required"
    title = "This needs a key with more rights"


class KeyBoundToWorkspace(Forbidden):
    """The key is bound to one workspace and this concerns the whole tenant."""

    code = "key_bound_to_workspace"
    title = "This needs a key for the whole tenant"


async def get_container(request: Request) -> Container:
    container: Container = request.app.state.container
    return container


ContainerDep = Annotated[Container, Depends(get_container)]
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
OperatorCredentials = Annotated[HTTPAuthorizationCredentials | None, Depends(operator_bearer)]


def note_acting(request: Request, container: Container, actor: str) -> None:
    """Have what this request changes written to the audit log under `actor`."""
    address = caller_address(request, container.settings.trusted_networks)
    note_caller(Acting(actor, request.scope["route"].name, address, request_id_of(request)))


async def authenticate(request: Request, credentials: Credentials, container: ContainerDep) -> Caller:
    """Whoever the request's key or token is; raises InvalidApiKey, TokenNotMapped or TenantSuspended."""
    presented = credentials.credentials if credentials else ""
    if container.tokens is not None and looks_like_token(presented):
        caller = await container.tokens.verify(presented)
    else:
        caller = await Authenticator(container.database).verify(presented)
    structlog.contextvars.bind_contextvars(tenant_id=str(caller.tenant_id), caller=caller.name)
    note_acting(request, container, caller.name)
    await container.rates.count(caller.tenant_id, caller.requests_per_minute)
    return caller


VerifiedCaller = Annotated[Caller, Depends(authenticate)]


@dataclass(frozen=True)
class Access:
    """What a route asks of its caller. Each route under `/v1` declares exactly one, or the application does not start.

    A parameter (`caller: EditorCaller`) declares it and hands the caller over; a route that does not need to know who
    calls puts `Depends(READER)` into its `dependencies`.
    """

    role: Role
    is_whole_tenant: bool = False

    @property
    def label(self) -> str:
        return self.role.value

    async def __call__(self, caller: VerifiedCaller) -> Caller:
        if not caller.role.covers(self.role):
            raise RoleRequired(f"This needs a key with the role {self.role}; yours is {caller.role}.", role=caller.role)
        if self.is_whole_tenant and caller.workspace_id is not None:
            raise KeyBoundToWorkspace("This key is bound to one workspace; use one of the whole tenant.")
        return caller


READER = Access(Role.READER)
ReaderCaller = Annotated[Caller, Depends(READER)]
EditorCaller = Annotated[Caller, Depends(Access(Role.EDITOR))]
AdminCaller = Annotated[Caller, Depends(Access(Role.ADMIN))]
TenantReader = Annotated[Caller, Depends(Access(Role.READER, is_whole_tenant=True))]
TenantAdmin = Annotated[Caller, Depends(Access(Role.ADMIN, is_whole_tenant=True))]


@dataclass(frozen=True)
class OperatorAccess:
    """For operators of the installation: the caller needs the operator's secret, and no tenant's key will do."""

    label: str = "operator"

    async def __call__(self, request: Request, credentials: OperatorCredentials, container: ContainerDep) -> None:
        verify_operator(credentials.credentials if credentials else "", container.settings.operator_secret)
        note_acting(request, container, self.label)


OPERATOR = OperatorAccess()


async def workspace_in_path(workspace_id: UUID, caller: VerifiedCaller) -> WorkspaceId:
    """The workspace that a path names. For a key bound to another one it does not exist; the query decides the rest."""
    if not caller.may_see(workspace_id):
        raise WorkspaceNotFound.of(workspace_id)
    structlog.contextvars.bind_contextvars(workspace_id=str(workspace_id))
    return WorkspaceId(workspace_id)


WorkspaceDep = Annotated[WorkspaceId, Depends(workspace_in_path)]


async def tenant_unit(caller: VerifiedCaller, container: ContainerDep) -> AsyncIterator[TenantSession]:
    async with container.database.tenant(caller.tenant_id) as session:
        yield session


# "function": with the default scope the commit would run after the answer has been sent, and its failure be lost.
TenantUnit = Annotated[TenantSession, Depends(tenant_unit, scope="function")]


async def refuse_unknown_query(request: Request) -> None:
    """A misspelt filter would otherwise answer everything. What a route knows is what its documentation says."""
    route = request.scope["route"]
    known = request.app.state.query_names.get((request.method, route.path_format), frozenset())
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        errors = [
            {"loc": ("query", name), "msg": "Unknown query parameter", "type": "extra_forbidden"} for name in unknown
        ]
        raise validation_problem(errors)
