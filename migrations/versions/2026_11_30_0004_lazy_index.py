"""The LLM-free index: concepts and terms of passages, and their postings."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from app.db.policies import APP_ROLE, CURRENT_TENANT, fence, fence_by_tenant

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# A tenant id in each posting makes a posting table a third larger (58 against 44 MB for 400,000), so a tenant reaches
# the numbers of its own workspaces instead. The array is made once a statement; a hashed IN took twice the time a row.
OWN_WORKSPACES = f"workspace = ANY (ARRAY(SELECT number FROM workspaces WHERE tenant_id = {CURRENT_TENANT}))"
NUMBERED_TABLES = ("lazy_passages", "concept_postings", "term_postings")


def _posting_table(name: str, *columns: str) -> None:
    op.create_table(
        name,
        sa.Column("workspace", sa.Integer(), nullable=False),
        sa.Column("key", sa.BigInteger(), nullable=False),
        sa.Column("passage_id", sa.BigInteger(), nullable=False),
        *(sa.Column(column, sa.SmallInteger(), nullable=False) for column in columns),
        sa.PrimaryKeyConstraint(
            "workspace", "key", "passage_id", name=op.f(f"pk_{name}"), postgresql_include=list(columns)
        ),
    )


def upgrade() -> None:
    op.create_table(
        "lazy_versions",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("version_id", sa.Uuid(), nullable=False),
        sa.Column("workspace", sa.Integer(), nullable=False),
        sa.Column("passages", sa.Integer(), nullable=False),
        sa.Column(
            "terms", sa.BigInteger(), nullable=False, comment="Terms of all its passages, repeated ones counted."
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "version_id"],
            ["versions.tenant_id", "versions.id"],
            name=op.f("fk_lazy_versions_tenant_id_version_id"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "version_id", name=op.f("pk_lazy_versions")),
    )
    op.create_index(
        "ix_lazy_versions_size", "lazy_versions", ["workspace"], unique=False, postgresql_include=["passages", "terms"]
    )
    op.create_table(
        "lazy_passages",
        sa.Column("workspace", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("passage_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("keys", postgresql.ARRAY(sa.BigInteger()), nullable=False, comment="Concepts: its rows in concept_postings."),
        sa.Column(
            "flags", postgresql.ARRAY(sa.SmallInteger()), nullable=False, comment="As in concept_postings, one per key."
        ),
        sa.Column(
            "sentences", postgresql.ARRAY(sa.BigInteger()), nullable=False,
            comment="One per key: bit 0 for the title, bit i for sentence i (from 1).",
        ),
        sa.Column(
            "surfaces",
            postgresql.ARRAY(sa.TEXT()),
            nullable=False,
            comment="The concepts as written, for people to read.",
        ),
        sa.Column("terms", postgresql.ARRAY(sa.BigInteger()), nullable=False, comment="Distinct terms: its rows in term_postings."),
        sa.PrimaryKeyConstraint("workspace", "passage_id", name=op.f("pk_lazy_passages")),
    )  # fmt: skip
    _posting_table("concept_postings", "flags")
    op.execute(
        "COMMENT ON COLUMN concept_postings.flags IS"
        " 'kind | in title << 2 | is title << 3 | in first sentence << 4 | selection rank << 5'"
    )
    _posting_table("term_postings", "frequency", "length")
    for statement in fence_by_tenant("lazy_versions"):
        op.execute(statement)
    for table in NUMBERED_TABLES:
        for statement in fence(table, OWN_WORKSPACES, APP_ROLE):
            op.execute(statement)
    for table in ("lazy_versions", *NUMBERED_TABLES):
        op.execute(f"GRANT SELECT, INSERT, DELETE ON {table} TO {APP_ROLE}")


def downgrade() -> None:
    for table in (*reversed(NUMBERED_TABLES), "lazy_versions"):
        op.drop_table(table)
