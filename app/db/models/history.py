"""What became of an index, one row a transition; the database writes it with the change itself (migration 0010)."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import DateTime, ForeignKeyConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, TenantRow


class IndexTransition(Base, TenantRow):
    """A trigger on `index_states` writes it, so that no statement that changes a state can leave it out."""

    __tablename__ = "index_transitions"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "version_id", "engine"],
            ["index_states.tenant_id", "index_states.version_id", "index_states.engine"],
            ondelete="CASCADE",
        ),
    )

    version_id: Mapped[UUID] = mapped_column(primary_key=True)
    engine: Mapped[str] = mapped_column(primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    from_state: Mapped[str | None] = mapped_column(comment="Null for the first one.")
    to_state: Mapped[str]
    cleanliness: Mapped[str]
    stage: Mapped[str] = mapped_column(comment="What was being done when it was left.")
    attempt: Mapped[int]
    reason: Mapped[str]
    detail: Mapped[str | None]
    at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.clock_timestamp())
