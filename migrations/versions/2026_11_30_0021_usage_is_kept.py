"""What was used is written once: the roles that serve requests and documents can neither change nor remove it."""

from alembic import op

from app.db.policies import APP_ROLE, ENGINE_ROLE

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(f"REVOKE UPDATE, DELETE ON usage_events FROM {APP_ROLE}, {ENGINE_ROLE}")


def downgrade() -> None:
    op.execute(f"GRANT UPDATE, DELETE ON usage_events TO {APP_ROLE}")
