"""Model profiles: the chat, embedding and rerank models an operator has registered for everybody."""

from uuid import UUID, uuid4

from sqlalchemy import CheckConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt


class ModelProfile(Base):
    """One model behind one endpoint. `table_suffix` names the vector tables of an embedding profile."""

    __tablename__ = "model_profiles"
    __table_args__ = (
        CheckConstraint("role IN ('chat', 'embedding', 'rerank')", name="role"),
        CheckConstraint("provider IN ('openai', 'offline')", name="provider"),
        CheckConstraint("(role = 'embedding') = (dimension IS NOT NULL)", name="dimension"),
        CheckConstraint("(role = 'embedding') = (table_suffix IS NOT NULL)", name="table_suffix"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4, server_default=text("gen_random_uuid()"))
    name: Mapped[str] = mapped_column(unique=True)
    role: Mapped[str]
    provider: Mapped[str]
    base_url: Mapped[str | None]
    model: Mapped[str]
    api_key_encrypted: Mapped[bytes | None]
    dimension: Mapped[int | None]
    table_suffix: Mapped[str | None] = mapped_column(unique=True)
    max_concurrency: Mapped[int] = mapped_column(server_default="8")
    tokens_per_minute: Mapped[int | None]
    timeout_seconds: Mapped[float] = mapped_column(server_default="120")
    max_retries: Mapped[int] = mapped_column(server_default="4")
    price_input: Mapped[float | None] = mapped_column(comment="Money for a million input tokens.")
    price_output: Mapped[float | None] = mapped_column(comment="Money for a million output tokens.")
    created_at: Mapped[CreatedAt]
