"""Originals are found by their digest: an upload of bytes that a workspace holds already is told so."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        op.f("ix_blobs_tenant_id_workspace_id_sha256"), "blobs", ["tenant_id", "workspace_id", "sha256"], unique=False
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_blobs_tenant_id_workspace_id_sha256"), table_name="blobs")
