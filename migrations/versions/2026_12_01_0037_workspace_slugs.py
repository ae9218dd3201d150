"""Workspaces are found by the name that clients of OpenAI's interface call them."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    column = sa.Column(
        "slug",
        sa.Text(),
        server_default="",
        nullable=False,
        comment="Made of its name; empty where an earlier release made the row.",
    )
    op.add_column("workspaces", column)


def downgrade() -> None:
    op.drop_column("workspaces", "slug")
