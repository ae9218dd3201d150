"""Names of entities in paths and queries, and what the routes of entities are given."""

from hashlib import blake2b
from typing import Annotated

from fastapi import Depends, Path, Query, Request
from pydantic import AfterValidator

from app.api.deps import ContainerDep, VerifiedCaller
from app.api.idempotency import HEADER
from app.api.v1.entities.schemas import MAX_NAME_CHARS
from app.domain.entities.changes import EntityChanges, Requested
from app.domain.entities.service import EntityService
from app.domain.workspaces.settings import without_binary

NameInPath = Annotated[
    str,
    Path(
        min_length=1, max_length=MAX_NAME_CHARS, description="Percent-encoded; may hold slashes.", examples=["Press 4"]
    ),
    AfterValidator(without_binary),
]
NameInQuery = Annotated[
    str,
    Query(min_length=1, max_length=MAX_NAME_CHARS, description="Any name of the entity, whole.", examples=["Press 4"]),
    AfterValidator(without_binary),
]


async def entity_service(container: ContainerDep) -> EntityService:
    return container.entities()


async def entity_changes(container: ContainerDep) -> EntityChanges:
    return container.entity_changes()


async def requested(request: Request, caller: VerifiedCaller) -> Requested:
    """Who asks, with a digest of the Idempotency-Key, so that what is done stands beside the key's name for good."""
    key = request.headers.get(HEADER)
    if key is None:
        return Requested(caller.name)
    named = "\0".join((caller.name, request.method, request.scope["path"], key.strip('"')))
    return Requested(caller.name, blake2b(named.encode(), digest_size=16).digest())


ServiceDep = Annotated[EntityService, Depends(entity_service)]
ChangesDep = Annotated[EntityChanges, Depends(entity_changes)]
RequestedDep = Annotated[Requested, Depends(requested)]
