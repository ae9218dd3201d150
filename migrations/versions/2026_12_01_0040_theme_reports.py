"""Reports of themes by a chat model, kept by the content they are of."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import BYTEA

from app.db.policies import APP_ROLE, fence_by_tenant

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

# Whatever is left of it would still tell what a removed version said.
REMOVE_REPORT = """
CREATE FUNCTION remove_theme_report() RETURNS trigger
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  DELETE FROM theme_reports r WHERE r.tenant_id = OLD.tenant_id AND r.id = OLD.report_id;
  RETURN NULL;
END $$
"""
TRIGGER = """
CREATE TRIGGER remove_report AFTER DELETE ON theme_report_sources
   FOR EACH ROW EXECUTE FUNCTION remove_theme_report()
"""


def reference(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", column],
        [f"{target}.tenant_id", f"{target}.id"],
        name=op.f(f"fk_{table}_tenant_id_{column}"),
        ondelete="CASCADE",
    )


def upgrade() -> None:
    op.create_table(
        "theme_reports",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("content_hash", BYTEA(), nullable=False),
        sa.Column("title", sa.TEXT(), nullable=False),
        sa.Column("summary", sa.TEXT(), nullable=False),
        sa.Column("model", sa.TEXT(), nullable=False, comment="The name of the chat profile that wrote it."),
        sa.Column(
            "is_extractive",
            sa.Boolean(),
            nullable=False,
            comment="Quoted by rules, where the model is the offline one.",
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        reference("theme_reports", "workspace_id", "workspaces"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_theme_reports")),
    )
    columns = ["tenant_id", "workspace_id", "content_hash"]
    op.create_index(op.f(f"ix_theme_reports_{'_'.join(columns)}"), "theme_reports", columns, unique=True)
    op.create_table(
        "theme_report_sources",
        sa.Column("report_id", sa.Uuid(), nullable=False),
        sa.Column("version_id", sa.Uuid(), nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        reference("theme_report_sources", "report_id", "theme_reports"),
        reference("theme_report_sources", "version_id", "versions"),
        sa.PrimaryKeyConstraint("tenant_id", "report_id", "version_id", name=op.f("pk_theme_report_sources")),
    )
    columns = ["tenant_id", "version_id"]
    op.create_index(op.f(f"ix_theme_report_sources_{'_'.join(columns)}"), "theme_report_sources", columns)
    for table in ("theme_reports", "theme_report_sources"):
        for statement in fence_by_tenant(table):
            op.execute(statement)
        op.execute(f"GRANT SELECT, INSERT, DELETE ON {table} TO {APP_ROLE}")
    op.execute(REMOVE_REPORT)
    op.execute(TRIGGER)


def downgrade() -> None:
    op.drop_table("theme_report_sources")
    op.drop_table("theme_reports")
    op.execute("DROP FUNCTION remove_theme_report()")
