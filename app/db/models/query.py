"""The query log: what was asked and answered, from which passages, and what people said of it.

Everything goes with the workspace, evidence with its document; a verdict goes with its evidence.
"""

from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Double, ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, TenantRow, tenant_reference


class LoggedQuery(Base, TenantRow):
    """One answered question. Its id is the `query_id` of the usage ledger."""

    __tablename__ = "queries"
    __table_args__ = (
        tenant_reference("workspaces", "workspace_id"),
        Index(None, "tenant_id", "workspace_id", "created_at", "id"),
        Index(None, "created_at"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[UUID]
    comparison_id: Mapped[UUID | None] = mapped_column(comment="Of queries that were compared with each other.")
    mode_asked: Mapped[str]
    mode: Mapped[str]
    kind: Mapped[str]
    text: Mapped[str | None] = mapped_column(comment="Where the workspace wants it kept.")
    milliseconds: Mapped[float] = mapped_column(Double)
    cost: Mapped[float | None] = mapped_column(Double)
    model_calls: Mapped[int]
    embedding_calls: Mapped[int]
    tokens_in: Mapped[int] = mapped_column(BigInteger)
    tokens_out: Mapped[int] = mapped_column(BigInteger)
    passages: Mapped[int]
    entities: Mapped[int]
    relations: Mapped[int]
    withheld: Mapped[int]
    created_at: Mapped[CreatedAt]


class QueryEvidence(Base, TenantRow):
    """A passage of an answer, best first from rank 1. The passage may be gone, the document is there."""

    __tablename__ = "query_evidence"
    __table_args__ = (
        tenant_reference("queries", "query_id"),
        tenant_reference("documents", "document_id"),
        Index(None, "tenant_id", "document_id"),
    )

    query_id: Mapped[UUID] = mapped_column(primary_key=True)
    passage_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    document_id: Mapped[UUID]
    rank: Mapped[int]


class QueryFeedback(Base, TenantRow):
    """What one caller thinks of an answer; a later word of the same caller replaces it."""

    __tablename__ = "query_feedback"
    __table_args__ = (
        tenant_reference("queries", "query_id"),
        CheckConstraint("rating BETWEEN 1 AND 5", name="rating"),
    )

    query_id: Mapped[UUID] = mapped_column(primary_key=True)
    caller: Mapped[str] = mapped_column(primary_key=True)
    rating: Mapped[int]
    comment: Mapped[str | None]
    created_at: Mapped[CreatedAt]
    updated_at: Mapped[CreatedAt]


class QueryVerdict(Base, TenantRow):
    """Whether a caller finds a passage of an answer relevant."""

    __tablename__ = "query_verdicts"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "query_id", "caller"],
            ["query_feedback.tenant_id", "query_feedback.query_id", "query_feedback.caller"],
            ondelete="CASCADE",
        ),
        ForeignKeyConstraint(
            ["tenant_id", "query_id", "passage_id"],
            ["query_evidence.tenant_id", "query_evidence.query_id", "query_evidence.passage_id"],
            ondelete="CASCADE",
        ),
        Index(None, "tenant_id", "query_id", "passage_id"),
    )

    query_id: Mapped[UUID] = mapped_column(primary_key=True)
    caller: Mapped[str] = mapped_column(primary_key=True)
    passage_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    is_relevant: Mapped[bool]
