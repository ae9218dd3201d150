"""What a document used is booked in the transaction that makes its graph ready, and never twice."""

import sqlalchemy as sa
from alembic import op

from app.db.policies import ENGINE_ROLE

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "usage_events",
        sa.Column(
            "booking_id", sa.Uuid(), nullable=True, comment="Of calls that may be booked again after a lost answer."
        ),
    )
    op.create_index(
        "uq_usage_events_booking_id",
        "usage_events",
        ["tenant_id", "booking_id", "profile_id", "purpose"],
        unique=True,
        postgresql_where=sa.text("booking_id IS NOT NULL"),
    )
    op.execute(f"GRANT SELECT, INSERT ON usage_events TO {ENGINE_ROLE}")
    op.execute(f"GRANT SELECT (id, price_input, price_output) ON model_profiles TO {ENGINE_ROLE}")


def downgrade() -> None:
    op.execute(f"REVOKE SELECT (id, price_input, price_output) ON model_profiles FROM {ENGINE_ROLE}")
    op.execute(f"REVOKE ALL ON usage_events FROM {ENGINE_ROLE}")
    op.drop_index("uq_usage_events_booking_id", "usage_events")
    op.drop_column("usage_events", "booking_id")
