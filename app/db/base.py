"""Declarative base, id types and the columns that every tenant table shares."""

from datetime import datetime
from typing import Annotated, Any, NewType
from uuid import UUID, uuid4

from sqlalchemy import DateTime, ForeignKeyConstraint, MetaData, Uuid, func, text
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, JSONB, TEXT
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

TenantId = NewType("TenantId", UUID)
WorkspaceId = NewType("WorkspaceId", UUID)

CreatedAt = Annotated[datetime, mapped_column(DateTime(timezone=True), server_default=func.now())]

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """Maps Python types to the Postgres types used throughout."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads a plain dict here
        str: TEXT,
        bytes: BYTEA,
        UUID: Uuid(),
        datetime: DateTime(timezone=True),
        dict[str, Any]: JSONB,
        list[str]: ARRAY(TEXT),
    }


class TenantRow:
    """A row that belongs to a tenant: the tenant's id is part of the primary key, so no key reaches into another tenant."""

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)


class TenantEntity(TenantRow):
    """A tenant row with an id of its own."""

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4, server_default=text("gen_random_uuid()"))


def tenant_reference(table: str, column: str, *, ondelete: str = "CASCADE") -> ForeignKeyConstraint:
    """A composite foreign key `(tenant_id, column)`: foreign key checks ignore row level security, a plain key would
    let one tenant refer to another's row."""
    return ForeignKeyConstraint(["tenant_id", column], [f"{table}.tenant_id", f"{table}.id"], ondelete=ondelete)
