"""A workspace may name a reranker."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("workspaces", sa.Column("rerank_profile_id", sa.Uuid(), nullable=True))
    op.create_foreign_key(
        "fk_workspaces_rerank_profile_id_model_profiles", "workspaces", "model_profiles", ["rerank_profile_id"], ["id"]
    )


def downgrade() -> None:
    op.drop_column("workspaces", "rerank_profile_id")
