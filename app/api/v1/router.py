"""Puts version 1 together. Every route below `/v1` needs a key: the dependency stands here, not on each of them."""

from fastapi import APIRouter, Depends

from app.api.deps import authenticate, refuse_unknown_query
from app.api.idempotency import idempotent
from app.api.problems import problems
from app.api.v1.account.router import router as account
from app.api.v1.audit.router import router as audit
from app.api.v1.concepts.router import router as concepts
from app.api.v1.documents.bulk import router as bulk
from app.api.v1.documents.content import router as content
from app.api.v1.documents.estimate import router as estimate
from app.api.v1.documents.history import router as history
from app.api.v1.documents.indexing import router as indexing
from app.api.v1.documents.passages import router as passages
from app.api.v1.documents.router import router as documents
from app.api.v1.entities.changes import router as entity_changes
from app.api.v1.entities.duplicates import router as entity_duplicates
from app.api.v1.entities.editing import router as entity_editing
from app.api.v1.entities.graph import router as entity_graph
from app.api.v1.entities.router import one as entity
from app.api.v1.entities.router import router as entities
from app.api.v1.events.router import router as events
from app.api.v1.events.webhooks import router as webhooks
from app.api.v1.keys.router import router as keys
from app.api.v1.openai.router import router as openai
from app.api.v1.queries.comparing import router as comparing
from app.api.v1.queries.explaining import router as explaining
from app.api.v1.queries.log import router as query_log
from app.api.v1.queries.router import router as queries
from app.api.v1.themes.router import router as themes
from app.api.v1.usage.router import router as usage
from app.api.v1.workspaces.router import router as workspaces

# No prefix here: a route knows itself, in logs too, by the path in its own module only.
DEPENDENCIES = [Depends(authenticate), Depends(refuse_unknown_query), Depends(idempotent)]
router = APIRouter(dependencies=DEPENDENCIES, responses=problems())
# Its errors have another shape.
openai_router = APIRouter(dependencies=DEPENDENCIES)
openai_router.include_router(openai)
RESOURCES = (
    account,
    workspaces,
    estimate,
    documents,
    bulk,
    indexing,
    content,
    history,
    passages,
    queries,
    explaining,
    comparing,
    query_log,
    concepts,
    themes,
    # Before the route that takes any path for a name.
    entity_changes,
    entity_graph,
    entity_duplicates,
    entities,
    entity,
    entity_editing,
    events,
    webhooks,
    keys,
    audit,
    usage,
)
for resource in RESOURCES:
    router.include_router(resource)
