"""The LLM-free index: per version its size, per passage its concepts and terms, and the postings of both.

Workspaces go by their short `number` here, for these tables have tens of rows a passage. A row belongs to one version
only, so writers of different versions never wait for each other.
"""

from uuid import UUID

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index, PrimaryKeyConstraint, SmallInteger
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, TenantRow


class LazyVersion(Base, TenantRow):
    """That a version is in the index, with what BM25's corpus length is summed from.

    The foreign key does not cascade on purpose: whoever deletes a version has to take its postings out first.
    """

    __tablename__ = "lazy_versions"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "version_id"], ["versions.tenant_id", "versions.id"]),
        Index("ix_lazy_versions_size", "workspace", postgresql_include=["passages", "terms"]),
    )

    version_id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace: Mapped[int]
    passages: Mapped[int]
    terms: Mapped[int] = mapped_column(BigInteger, comment="Terms of all its passages, repeated ones counted.")


class LazyPassage(Base):
    """What a passage holds, which is also the list of its rows in both posting tables."""

    __tablename__ = "lazy_passages"

    workspace: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    passage_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    keys: Mapped[list[int]] = mapped_column(ARRAY(BigInteger), comment="Concepts: its rows in concept_postings.")
    flags: Mapped[list[int]] = mapped_column(ARRAY(SmallInteger), comment="As in concept_postings, one per key.")
    sentences: Mapped[list[int]] = mapped_column(
        ARRAY(BigInteger), comment="One per key: bit 0 for the title, bit i for sentence i (from 1)."
    )
    surfaces: Mapped[list[str]] = mapped_column(comment="The concepts as written, for people to read.")
    terms: Mapped[list[int]] = mapped_column(ARRAY(BigInteger), comment="Distinct terms: its rows in term_postings.")


class ConceptPosting(Base):
    """That a passage holds a concept."""

    __tablename__ = "concept_postings"
    __table_args__ = (PrimaryKeyConstraint("workspace", "key", "passage_id", postgresql_include=["flags"]),)

    workspace: Mapped[int]
    key: Mapped[int] = mapped_column(BigInteger)
    passage_id: Mapped[int] = mapped_column(BigInteger)
    flags: Mapped[int] = mapped_column(
        SmallInteger, comment="kind | in title << 2 | is title << 3 | in first sentence << 4 | selection rank << 5"
    )


class TermPosting(Base):
    """How often a passage holds a term, with the passage's length, so that BM25 reads nothing but this index."""

    __tablename__ = "term_postings"
    __table_args__ = (
        PrimaryKeyConstraint("workspace", "key", "passage_id", postgresql_include=["frequency", "length"]),
    )

    workspace: Mapped[int]
    key: Mapped[int] = mapped_column(BigInteger)
    passage_id: Mapped[int] = mapped_column(BigInteger)
    frequency: Mapped[int] = mapped_column(SmallInteger)
    length: Mapped[int] = mapped_column(SmallInteger)
