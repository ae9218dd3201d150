"""Serving processes read which migrations the database has: one whose schema is too old is not ready."""

from alembic import op

from app.db.policies import APP_ROLE

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(f"GRANT SELECT ON alembic_version TO {APP_ROLE}")


def downgrade() -> None:
    op.execute(f"REVOKE SELECT ON alembic_version FROM {APP_ROLE}")
