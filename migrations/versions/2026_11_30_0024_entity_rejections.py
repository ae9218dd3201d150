"""Pairs of names that somebody has looked at and that are different things."""

import sqlalchemy as sa
from alembic import op

from app.db.policies import APP_ROLE, ENGINE_ROLE, audit, fence_by_tenant

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "entity_rejections",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("pair", sa.LargeBinary(), nullable=False, comment="Digest of both names."),
        sa.Column("one", sa.TEXT(), nullable=False),
        sa.Column("other", sa.TEXT(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "workspace_id"],
            ["workspaces.tenant_id", "workspaces.id"],
            name=op.f("fk_entity_rejections_tenant_id_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "workspace_id", "pair", name=op.f("pk_entity_rejections")),
    )
    for statement in fence_by_tenant("entity_rejections"):
        op.execute(statement)
    op.execute(f"GRANT SELECT, INSERT, DELETE ON entity_rejections TO {APP_ROLE}")
    op.execute(f"GRANT SELECT ON entity_rejections TO {ENGINE_ROLE}")
    op.execute(audit("entity_rejections", "one", "entity_rejection"))


def downgrade() -> None:
    op.drop_table("entity_rejections")
