"""What a chat model wrote about themes. A report belongs to a content, so it is found again for as long as that stands."""

from uuid import UUID

from sqlalchemy import ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, TenantEntity, TenantRow, tenant_reference


class ThemeReport(Base, TenantEntity):
    """A report of what passages said, whose digest is `content_hash`. It goes with the first version that it was made from."""

    __tablename__ = "theme_reports"
    __table_args__ = (
        tenant_reference("workspaces", "workspace_id"),
        Index(None, "tenant_id", "workspace_id", "content_hash", unique=True),
    )

    workspace_id: Mapped[UUID]
    content_hash: Mapped[bytes]
    title: Mapped[str]
    summary: Mapped[str]
    model: Mapped[str] = mapped_column(comment="The name of the chat profile that wrote it.")
    is_extractive: Mapped[bool] = mapped_column(comment="Quoted by rules, where the model is the offline one.")
    created_at: Mapped[CreatedAt]


class ThemeReportSource(Base, TenantRow):
    """A version that a report was made from; a trigger removes the report when this row goes."""

    __tablename__ = "theme_report_sources"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "report_id"], ["theme_reports.tenant_id", "theme_reports.id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(["tenant_id", "version_id"], ["versions.tenant_id", "versions.id"], ondelete="CASCADE"),
        Index(None, "tenant_id", "version_id"),
    )

    report_id: Mapped[UUID] = mapped_column(primary_key=True)
    version_id: Mapped[UUID] = mapped_column(primary_key=True)
