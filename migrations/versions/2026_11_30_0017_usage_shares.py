"""What each query used, what it cost at the time, and how many calls are estimates."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("usage_events", sa.Column("query_id", sa.Uuid(), nullable=True))
    op.add_column("usage_events", sa.Column("estimated_calls", sa.Integer(), server_default="0", nullable=False))
    op.add_column(
        "usage_events", sa.Column("cost", sa.Double(), nullable=True, comment="At the model's prices of that time.")
    )
    op.execute("UPDATE usage_events SET estimated_calls = calls WHERE is_estimated")
    op.create_index(
        op.f("ix_usage_events_tenant_id_created_at"), "usage_events", ["tenant_id", "created_at"], unique=False
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_usage_events_tenant_id_created_at"), table_name="usage_events")
    for column in ("cost", "estimated_calls", "query_id"):
        op.drop_column("usage_events", column)
