"""Every table of ours, one module a topic; importing this package fills `Base.metadata`."""

from app.db.models.audit import AuditEvent
from app.db.models.document import Blob, Document, IndexState, LiveVersion, Version
from app.db.models.entity_alias import EntityAlias
from app.db.models.entity_change import (
    DuplicateDecision,
    EntityChange,
    EntityEdit,
    EntityName,
    EntitySplit,
    EntityUndoRecord,
)
from app.db.models.event import Event, EventCounter, Webhook, WebhookDelivery
from app.db.models.history import IndexTransition
from app.db.models.idempotency import IdempotencyKey
from app.db.models.lazy import ConceptPosting, LazyPassage, LazyVersion, TermPosting
from app.db.models.limits import Plan, TenantMonth, TenantTotals, TenantTurn
from app.db.models.model_profile import ModelProfile
from app.db.models.passage import Chunk, Mention, Passage
from app.db.models.query import LoggedQuery, QueryEvidence, QueryFeedback, QueryVerdict
from app.db.models.tenant import ApiKey, Tenant, TenantDeletion
from app.db.models.theme import Theme, ThemeConcept, ThemeMap, ThemePassage
from app.db.models.theme_report import ThemeReport, ThemeReportSource
from app.db.models.usage import UsageEvent
from app.db.models.workspace import CorpusVersion, Workspace, WorkspaceLease

__all__ = [
    "ApiKey",
    "AuditEvent",
    "Blob",
    "Chunk",
    "ConceptPosting",
    "CorpusVersion",
    "Document",
    "DuplicateDecision",
    "EntityAlias",
    "EntityChange",
    "EntityEdit",
    "EntityName",
    "EntitySplit",
    "EntityUndoRecord",
    "Event",
    "EventCounter",
    "IdempotencyKey",
    "IndexState",
    "IndexTransition",
    "LazyPassage",
    "LazyVersion",
    "LiveVersion",
    "LoggedQuery",
    "Mention",
    "ModelProfile",
    "Passage",
    "Plan",
    "QueryEvidence",
    "QueryFeedback",
    "QueryVerdict",
    "Tenant",
    "TenantDeletion",
    "TenantMonth",
    "TenantTotals",
    "TenantTurn",
    "TermPosting",
    "Theme",
    "ThemeConcept",
    "ThemeMap",
    "ThemePassage",
    "ThemeReport",
    "ThemeReportSource",
    "UsageEvent",
    "Version",
    "Webhook",
    "WebhookDelivery",
    "Workspace",
    "WorkspaceLease",
]
