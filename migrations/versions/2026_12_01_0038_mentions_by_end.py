"""What is said of relations is found by the name at their other end, too."""

from alembic import op
from sqlalchemy import text

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

ACCEPTED = {
    "builds an index under a lock": "No release holds mentions yet, so the table is small wherever there is one."
}


def upgrade() -> None:
    op.create_index(
        "ix_mentions_target",
        "mentions",
        ["tenant_id", "workspace_id", text("md5(target)")],
        postgresql_where=text("target IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_mentions_target", "mentions")
