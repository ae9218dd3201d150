"""The API compares the ids that clients come back with to the last one that was given out."""

from alembic import op

from app.db.policies import APP_ROLE

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(f"GRANT SELECT ON event_counters TO {APP_ROLE}")


def downgrade() -> None:
    op.execute(f"REVOKE SELECT ON event_counters FROM {APP_ROLE}")
