"""What a workspace's documents are about: one map of communities of its concept graph, built in the background.

A theme's passages are those of the leaves inside it. Leaves are numbered depth first, so a theme is a range of them
(nested sets), and no query walks the tree.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKeyConstraint, Index, SmallInteger
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, TenantEntity, TenantRow, tenant_reference


class ThemeMap(Base, TenantEntity):
    """A build. At most one is answered from; while `building`, the row is the claim of whoever is at it."""

    __tablename__ = "theme_maps"
    __table_args__ = (
        tenant_reference("workspaces", "workspace_id"),
        CheckConstraint("state IN ('building', 'ready')", name="state"),
        CheckConstraint(
            "empty_reason IN ('too_few_passages', 'too_few_concepts')", name="empty_reason"
        ),
        Index(None, "tenant_id", "workspace_id", "state", unique=True),
    )  # fmt: skip

    workspace_id: Mapped[UUID]
    state: Mapped[str] = mapped_column(server_default="building")
    building_until: Mapped[datetime | None] = mapped_column(comment="Whoever is at it says so again before then.")
    corpus_version: Mapped[int] = mapped_column(BigInteger, server_default="0", comment="As of which it was read.")
    levels: Mapped[int] = mapped_column(server_default="0")
    base_level: Mapped[int] = mapped_column(server_default="0", comment="Of the communities that were found first.")
    leaves: Mapped[int] = mapped_column(server_default="0")
    passages: Mapped[int] = mapped_column(server_default="0", comment="Trusted ones of the workspace, then.")
    used_passages: Mapped[int] = mapped_column(server_default="0")
    assigned: Mapped[int] = mapped_column(server_default="0", comment="Passages in a leaf, of those that were used.")
    is_sampled: Mapped[bool] = mapped_column(server_default="false")
    concepts: Mapped[int] = mapped_column(server_default="0")
    edges: Mapped[int] = mapped_column(server_default="0")
    empty_reason: Mapped[str | None]
    milliseconds: Mapped[float] = mapped_column(server_default="0")
    parameters: Mapped[dict[str, Any]] = mapped_column(server_default="{}")
    created_at: Mapped[CreatedAt]
    finished_at: Mapped[datetime | None]


def of_map() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant_id", "map_id"], ["theme_maps.tenant_id", "theme_maps.id"], ondelete="CASCADE"
    )  # fmt: skip


class Theme(Base, TenantRow):
    """A community. Its id lasts over refreshes while most of its passages do."""

    __tablename__ = "themes"
    __table_args__ = (of_map(), Index(None, "tenant_id", "map_id", "first_leaf"))

    map_id: Mapped[UUID] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True)
    level: Mapped[int] = mapped_column(comment="0 is the coarsest.")
    last_level: Mapped[int] = mapped_column(comment="Down to which it stands for itself, where it was not split.")
    number: Mapped[int] = mapped_column(comment="Its place by importance among those of its level, from 0.")
    parent_id: Mapped[UUID | None]
    first_leaf: Mapped[int]
    last_leaf: Mapped[int]
    passages: Mapped[int] = mapped_column(comment="As of the build, like all figures here.")
    documents: Mapped[int]
    size: Mapped[float] = mapped_column(comment="ln(1 + passages) / ln(1 + passages of the map), 0..1 like the rest.")
    distinctiveness: Mapped[float]
    coverage: Mapped[float]
    entropy: Mapped[float]
    density: Mapped[float]
    importance: Mapped[float]
    product: Mapped[float] = mapped_column(
        comment="The other formula: ln(1 + passages) * distinctiveness * (.5 + .5 * entropy)."
    )


class ThemeConcept(Base, TenantRow):
    """A concept of a theme. Those of a leaf's own community carry a weight, by which passages find their leaf."""

    __tablename__ = "theme_concepts"
    __table_args__ = (
        of_map(),
        Index(
            "ix_theme_concepts_key",
            "tenant_id",
            "map_id",
            "key",
            postgresql_include=["theme_id", "weight"],
        ),
    )

    map_id: Mapped[UUID] = mapped_column(primary_key=True)
    theme_id: Mapped[UUID] = mapped_column(primary_key=True)
    key: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    kind: Mapped[int] = mapped_column(SmallInteger)
    df: Mapped[int] = mapped_column(comment="Passages of the theme that hold it, as of the build.")
    corpus_df: Mapped[int]
    lift: Mapped[float]
    rank: Mapped[int]
    weight: Mapped[float | None] = mapped_column(comment="1 / ln(1 + corpus_df); none where it is no member.")
    surface: Mapped[str | None] = mapped_column(comment="As most passages of the theme write it; none far down.")
    degree: Mapped[int | None] = mapped_column(comment="Of a member: concepts that it is tied to in the whole graph.")
    pagerank: Mapped[float | None] = mapped_column(comment="Of a member, in the whole graph.")
    label_rank: Mapped[int | None] = mapped_column(SmallInteger, comment="Its place in the label, if it has one.")


class ThemePassage(Base, TenantRow):
    """In which leaf a passage is; it goes in the statement that removes the passage's concepts."""

    __tablename__ = "theme_passages"
    __table_args__ = (
        of_map(),
        Index(None, "tenant_id", "map_id", "theme_id"),
        Index(None, "tenant_id", "version_id"),
    )

    map_id: Mapped[UUID] = mapped_column(primary_key=True)
    passage_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    theme_id: Mapped[UUID]
    version_id: Mapped[UUID]
    document_id: Mapped[UUID]
    weight: Mapped[float] = mapped_column(comment="Of its concepts in this leaf.")
    is_placed: Mapped[bool] = mapped_column(comment="It came after the build.")
