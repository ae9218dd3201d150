"""Aliases of entities: what a merge, a person or the first spelling says that a name means."""

import sqlalchemy as sa
from alembic import op

from app.db.policies import APP_ROLE, ENGINE_ROLE, fence_by_tenant

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "entity_aliases",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("alias", sa.TEXT(), nullable=False, comment="The name as it was written."),
        sa.Column("target", sa.TEXT(), nullable=False, comment="What it means; may be an alias again."),
        sa.Column("target_key", sa.LargeBinary(), nullable=False),
        sa.Column("source", sa.TEXT(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("source IN ('merge', 'manual', 'spelling')", name=op.f("ck_entity_aliases_source")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "workspace_id"],
            ["workspaces.tenant_id", "workspaces.id"],
            name=op.f("fk_entity_aliases_tenant_id_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "workspace_id", "key", name=op.f("pk_entity_aliases")),
    )
    op.create_index(
        "ix_entity_aliases_listed",
        "entity_aliases",
        ["tenant_id", "workspace_id"],
        unique=False,
        postgresql_where=sa.text("source <> 'spelling'"),
    )
    for statement in fence_by_tenant("entity_aliases"):
        op.execute(statement)
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON entity_aliases TO {ENGINE_ROLE}")
    op.execute(f"GRANT SELECT ON entity_aliases TO {APP_ROLE}")
    # A merge renames what was said of its sources.
    op.execute(f"GRANT UPDATE (name, target) ON mentions TO {ENGINE_ROLE}")


def downgrade() -> None:
    op.execute(f"REVOKE UPDATE (name, target) ON mentions FROM {ENGINE_ROLE}")
    op.drop_table("entity_aliases")
