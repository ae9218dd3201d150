"""What was asked, by which mode it was answered, from which passages, and what people thought of it."""

import sqlalchemy as sa
from alembic import op

from app.db.policies import APP_ROLE, fence_by_tenant

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

TABLES = ("queries", "query_evidence", "query_feedback", "query_verdicts")

FORGET_QUERIES = """
CREATE FUNCTION forget_queries(older_than interval, max_rows int) RETURNS int
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH gone AS (
    DELETE FROM queries q
     WHERE (q.tenant_id, q.id) IN (
             SELECT o.tenant_id, o.id FROM queries o
              WHERE o.created_at < now() - older_than LIMIT max_rows FOR UPDATE SKIP LOCKED)
    RETURNING 1)
  SELECT count(*)::int FROM gone
$$
"""


def key(table: str, columns: list[str], target: str) -> sa.ForeignKeyConstraint:
    """To the columns of the same name, or to the id of `target`."""
    names = "_".join(columns)
    to = columns if target in ("query_evidence", "query_feedback") else ["tenant_id", "id"]
    return sa.ForeignKeyConstraint(
        columns, [f"{target}.{column}" for column in to], name=op.f(f"fk_{table}_{names}"), ondelete="CASCADE"
    )


def now(name: str) -> sa.Column[sa.DateTime]:
    return sa.Column(name, sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False)


def number(name: str, kind: type[sa.Integer] = sa.Integer) -> sa.Column[int]:
    return sa.Column(name, kind(), nullable=False)


def upgrade() -> None:
    _create_queries()
    _create_feedback()
    for table in TABLES:
        for statement in fence_by_tenant(table):
            op.execute(statement)
    op.execute(f"GRANT SELECT, INSERT, DELETE ON queries TO {APP_ROLE}")
    op.execute(f"GRANT SELECT, INSERT ON query_evidence TO {APP_ROLE}")
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON query_feedback, query_verdicts TO {APP_ROLE}")
    op.execute(FORGET_QUERIES)
    op.execute("REVOKE ALL ON FUNCTION forget_queries(interval, int) FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION forget_queries(interval, int) TO {APP_ROLE}")


def _create_queries() -> None:
    op.create_table(
        "queries",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("comparison_id", sa.Uuid(), nullable=True, comment="Of queries that were compared with each other."),
        sa.Column("mode_asked", sa.TEXT(), nullable=False),
        sa.Column("mode", sa.TEXT(), nullable=False),
        sa.Column("kind", sa.TEXT(), nullable=False),
        sa.Column("text", sa.TEXT(), nullable=True, comment="Where the workspace wants it kept."),
        sa.Column("milliseconds", sa.Double(), nullable=False),
        sa.Column("cost", sa.Double(), nullable=True),
        number("model_calls"),
        number("embedding_calls"),
        number("tokens_in", sa.BigInteger),
        number("tokens_out", sa.BigInteger),
        number("passages"),
        number("entities"),
        number("relations"),
        number("withheld"),
        now("created_at"),
        key("queries", ["tenant_id", "workspace_id"], "workspaces"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_queries")),
    )
    listed = ["tenant_id", "workspace_id", "created_at", "id"]
    op.create_index(op.f("ix_queries_tenant_id_workspace_id_created_at_id"), "queries", listed)
    op.create_index(op.f("ix_queries_created_at"), "queries", ["created_at"])
    op.create_table(
        "query_evidence",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("query_id", sa.Uuid(), nullable=False),
        sa.Column("passage_id", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        number("rank"),
        key("query_evidence", ["tenant_id", "query_id"], "queries"),
        key("query_evidence", ["tenant_id", "document_id"], "documents"),
        sa.PrimaryKeyConstraint("tenant_id", "query_id", "passage_id", name=op.f("pk_query_evidence")),
    )
    by_document = ["tenant_id", "document_id"]
    op.create_index(op.f("ix_query_evidence_tenant_id_document_id"), "query_evidence", by_document)


def _create_feedback() -> None:
    op.create_table(
        "query_feedback",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("query_id", sa.Uuid(), nullable=False),
        sa.Column("caller", sa.TEXT(), nullable=False),
        number("rating"),
        sa.Column("comment", sa.TEXT(), nullable=True),
        now("created_at"),
        now("updated_at"),
        sa.CheckConstraint("rating BETWEEN 1 AND 5", name=op.f("ck_query_feedback_rating")),
        key("query_feedback", ["tenant_id", "query_id"], "queries"),
        sa.PrimaryKeyConstraint("tenant_id", "query_id", "caller", name=op.f("pk_query_feedback")),
    )
    op.create_table(
        "query_verdicts",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("query_id", sa.Uuid(), nullable=False),
        sa.Column("caller", sa.TEXT(), nullable=False),
        sa.Column("passage_id", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("is_relevant", sa.Boolean(), nullable=False),
        key("query_verdicts", ["tenant_id", "query_id", "caller"], "query_feedback"),
        key("query_verdicts", ["tenant_id", "query_id", "passage_id"], "query_evidence"),
        sa.PrimaryKeyConstraint("tenant_id", "query_id", "caller", "passage_id", name=op.f("pk_query_verdicts")),
    )
    by_passage = ["tenant_id", "query_id", "passage_id"]
    op.create_index(op.f("ix_query_verdicts_tenant_id_query_id_passage_id"), "query_verdicts", by_passage)


def downgrade() -> None:
    op.execute("DROP FUNCTION forget_queries(interval, int)")
    for table in reversed(TABLES):
        op.drop_table(table)
